"""Short strings that match a pattern or a format: candidates for examples, which the validators then check."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from re import _parser as parser  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10
        import sre_parse as parser

FORMAT_EXAMPLES = {
    "date-time": "2020-01-01T00:00:00Z", "date": "2020-01-01", "time": "00:00:00Z", "duration": "P1D",
    "email": "a@example.com", "idn-email": "a@example.com", "hostname": "example.com", "idn-hostname": "example.com",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/", "uri-reference": "/a",
    "iri": "https://example.com/", "iri-reference": "/a", "uri-template": "/{a}", "json-pointer": "/a",
    "relative-json-pointer": "0", "regex": "a", "uuid": "00000000-0000-4000-8000-000000000000",
}  # fmt: skip
"""A string of each format."""

_MOST_REPEATS = 50
_OF_CLASSES = {"digit": "0", "word": "a", "space": " ", "not_digit": "a", "not_word": "-", "not_space": "a"}


def matching_strings(pattern: str, most: int = 4) -> list[str]:
    """Return a few strings that should match a pattern; none if the pattern is not understood."""
    try:
        tree = parser.parse(pattern)
        texts = list(dict.fromkeys(islice(_texts(tree), most * 4)))
    except (re.error, ValueError, OverflowError, RecursionError):
        return []
    return texts[:most]


def _texts(tree: Sequence[Any]) -> Iterator[str]:
    """Yield strings for a sequence: the first of each part, then the others of each part in turn."""
    parts = [list(islice(_part(str(kind).lower(), argument), 4)) or [""] for kind, argument in tree]
    yield "".join(part[0] for part in parts)
    for place, part in enumerate(parts):
        for other in part[1:]:
            yield "".join(other if one is part else one[0] for one in [*parts[:place], part, *parts[place + 1 :]])


def _part(kind: str, argument: Any) -> Iterator[str]:
    if kind == "literal":
        yield chr(argument)
    elif kind == "not_literal":
        yield "a" if argument != ord("a") else "b"
    elif kind == "any":
        yield "a"
    elif kind == "in":
        yield from _of_set(argument)
    elif kind == "branch":
        for branch in argument[1]:
            yield next(_texts(branch))
    elif kind == "subpattern":
        yield from _texts(argument[3])
    elif kind in ("max_repeat", "min_repeat", "possessive_repeat"):
        least, most, inner = argument
        for count in dict.fromkeys((least, least + 1, min(int(most), _MOST_REPEATS))):
            if least <= count <= most and count <= _MOST_REPEATS:
                yield next(_texts(inner)) * count


def _of_set(argument: Sequence[Any]) -> Iterator[str]:
    """Yield one character for each part of a set, or characters outside of a negated set."""
    if argument and str(argument[0][0]).lower() == "negate":
        ranges = [one for kind, one in argument[1:] if str(kind).lower() in ("literal", "range")]
        taken = {chr(one) for one in ranges if isinstance(one, int)}
        spans = [one for one in ranges if not isinstance(one, int)]
        yield from (c for c in "a0 -_A" if c not in taken and not any(low <= ord(c) <= high for low, high in spans))
        return
    for kind, one in argument:
        name = str(kind).lower()
        if name == "literal":
            yield chr(one)
        elif name == "range":
            yield chr(one[0])
            yield chr(one[1])
        else:
            yield _OF_CLASSES.get(str(one).lower().removeprefix("category_"), "a")
