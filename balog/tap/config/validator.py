"""Validation of configs against a JSON Schema, for the keywords that configs use.

The base install has no validator, and a config must mean the same with and without one, so taps always use this one.
``keywords`` rejects schemas with any other keyword. The rules are those of JSON Schema 2020-12 (draft 7's
``definitions`` are read too); formats are asserted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from balog.suggestions import suggest
from balog.tap.config.formats import FORMATS
from balog.tap.config.json_types import (
    MAX_DEPTH,
    TYPES,
    is_number,
    listed,
    resolve_reference,
    type_of,
    type_words,
    types_of,
)
from balog.tap.constraints import BOUNDS, SIZES, is_equal, is_multiple, repeated


class ConfigMismatch(NamedTuple):
    """A place where a config breaks its schema.

    Attributes:
        path: names and indexes that lead to the value.
        reason: a clause, without any value of the config.
        keyword: the keyword, or the words, of the broken rule.
        name: the field that is missing or unknown; "" for other rules.
    """

    path: tuple[str | int, ...]
    reason: str
    keyword: str
    name: str = ""


def check(value: Any, schema: Any, root: Any = None, path: tuple[str | int, ...] = ()) -> Iterator[ConfigMismatch]:
    """Yield the mismatches of a value, in the schema's order.

    Args:
        value: decoded JSON.
        schema: a schema that ``reject_unknown`` has accepted.
        root: the document that references point into; the schema itself when None.
        path: the place of the value.
    """
    root = schema if root is None else root
    if schema is True:
        return
    if schema is False:
        yield ConfigMismatch(path, "nothing is allowed here", "false")
        return
    wanted = types_of(schema)
    if wanted and not any(TYPES[kind](value) for kind in wanted):
        yield ConfigMismatch(path, f"want {listed(map(type_words, wanted))}, got {type_words(type_of(value))}", "type")
        return
    for keyword, expected in schema.items():
        rule = RULES.get(keyword)
        if rule is not None:
            yield from rule(value, expected, schema, root, path)


def _enum(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if not any(is_equal(value, one) for one in expected):
        yield ConfigMismatch(path, f"want one of {', '.join(map(repr, expected))}", "enum")


def _const(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if not is_equal(value, expected):
        yield ConfigMismatch(path, f"want {expected!r}", "const")


def _bound(words: str, is_kept: Callable[[Any, Any], bool]) -> Callable[..., Iterator[ConfigMismatch]]:
    def rule(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
        if is_number(value) and not is_kept(value, expected):
            yield ConfigMismatch(path, f"want a number {words} {expected}", words)

    return rule


def _size(kind: str, words: str, is_kept: Callable[[int, int], bool]) -> Callable[..., Iterator[ConfigMismatch]]:
    def rule(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
        if TYPES[kind](value) and not is_kept(len(value), expected):
            yield ConfigMismatch(path, f"want {words} {expected} {_UNITS[kind]}, got {len(value)}", words)

    return rule


def _pattern(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if isinstance(value, str) and not re.search(expected, value):
        yield ConfigMismatch(path, f"want a text that matches {expected}", "pattern")


def _format(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    known = FORMATS.get(expected)
    if known and isinstance(value, str) and not known.fits(value):
        yield ConfigMismatch(path, f"want {known.words}", "format")


def _items(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from check(item, expected, root, (*path, number))


def _unique(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if expected and isinstance(value, list):
        for number in repeated(value):
            yield ConfigMismatch((*path, number), "it repeats an earlier item", "uniqueItems")


def _required(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if isinstance(value, Mapping):
        for name in expected:
            if name not in value:
                yield ConfigMismatch(path, f"the field {name!r} is missing", "required", name)


def _dependent(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if isinstance(value, Mapping):
        for name, others in expected.items():
            for other in others:
                if name in value and other not in value:
                    reason = f"the field {other!r} is missing, which {name!r} wants"
                    yield ConfigMismatch(path, reason, "dependentRequired")


def _properties(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if isinstance(value, Mapping):
        for name, inner in expected.items():
            if name in value:
                yield from check(value[name], inner, root, (*path, name))


def _pattern_properties(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if isinstance(value, Mapping):
        for expression, inner in expected.items():
            for name, item in value.items():
                if re.search(expression, name):
                    yield from check(item, inner, root, (*path, name))


def _additional(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if isinstance(value, Mapping):
        patterns = schema.get("patternProperties", {})
        for name, item in value.items():
            if name in schema.get("properties", {}) or any(re.search(one, name) for one in patterns):
                continue
            if expected is False:
                known = sorted(schema.get("properties", {}))
                hint = suggest(name, known)
                yield ConfigMismatch(path, f"there is no field {name!r}{hint}", "additionalProperties", name)
            else:
                yield from check(item, expected, root, (*path, name))


def _names(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if isinstance(value, Mapping):
        for name in value:
            for fault in check(name, expected, root, path):
                yield ConfigMismatch(path, f"the name {name!r}: {fault.reason}", "propertyNames")


def _reference(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if len(path) > MAX_DEPTH:
        yield ConfigMismatch(path, f"nested more than {MAX_DEPTH} deep", "$ref")
        return
    yield from check(value, resolve_reference(schema, root), root, path)


def _all_of(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    for one in expected:
        yield from check(value, one, root, path)


def _any_of(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    found = [list(check(value, one, root, path)) for one in expected]
    if all(found):
        yield from _nearest(found, path, "anyOf")


def _one_of(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    found = [list(check(value, one, root, path)) for one in expected]
    fits = sum(not faults for faults in found)
    if fits > 1:
        yield ConfigMismatch(path, f"fits {fits} of the forms that there are; want just one", "oneOf")
    elif not fits:
        yield from _nearest(found, path, "oneOf")


def _nearest(found: list[list[ConfigMismatch]], path: Any, keyword: str) -> Iterator[ConfigMismatch]:
    """Yield the mismatches of the only form of the right type, else one mismatch that names all forms."""
    if all(len(faults) == 1 and faults[0].keyword == "type" and faults[0].path == path for faults in found):
        wanted = [faults[0].reason.rpartition(", got ")[0].removeprefix("want ") for faults in found]
        yield ConfigMismatch(
            path, f"want {listed(dict.fromkeys(wanted))}, got {found[0][0].reason.rpartition(', got ')[2]}", keyword
        )
        return
    of_type = [faults for faults in found if not any(one.path == path and one.keyword == "type" for one in faults)]
    if len(of_type) == 1:
        yield from of_type[0]
        return
    ways = dict.fromkeys(faults[0].reason for faults in found if faults)
    yield ConfigMismatch(path, " or ".join(ways) or "nothing fits", keyword)


def _not(value: Any, expected: Any, schema: Any, root: Any, path: Any) -> Iterator[ConfigMismatch]:
    if not any(True for _ in check(value, expected, root, path)):
        yield ConfigMismatch(path, "fits what it must not be", "not")


_UNITS = {"string": "characters", "array": "items", "object": "fields"}
RULES: dict[str, Callable[..., Iterator[ConfigMismatch]]] = {
    "enum": _enum,
    "const": _const,
    "minimum": _bound("of at least", BOUNDS["minimum"]),
    "maximum": _bound("of at most", BOUNDS["maximum"]),
    "exclusiveMinimum": _bound("above", BOUNDS["exclusiveMinimum"]),
    "exclusiveMaximum": _bound("below", BOUNDS["exclusiveMaximum"]),
    "multipleOf": _bound("that is a multiple of", is_multiple),
    **{keyword: _size(*size) for keyword, size in SIZES.items()},
    "pattern": _pattern,
    "format": _format,
    "items": _items,
    "uniqueItems": _unique,
    "required": _required,
    "dependentRequired": _dependent,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "$ref": _reference,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
}
"""By keyword. ``check`` itself evaluates ``type``, before all others."""
