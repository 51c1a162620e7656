"""Validation of configs against a JSON Schema, for the keywords that configs use. It reports all mismatches.

The base install has no validator, and a config must mean the same with and without one, so taps always use this one.
``reject_unknown`` rejects schemas with any other keyword. The rules are those of JSON Schema 2020-12 (draft 7's
``definitions`` are read too); formats are asserted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from balog.suggestions import suggest
from balog.tap.errors import TapError
from balog.tap.json_schema.checks import LIMITS, is_equal
from balog.tap.json_schema.formats import ANNOTATED_FORMATS, FORMATS
from balog.tap.json_schema.keywords import (
    ANNOTATIONS,
    SHAPES,
    Shape,
    Steps,
    is_names,
    is_number,
    subschemas,
    types_of,
)
from balog.tap.json_schema.mismatch import MismatchError, json_path
from balog.tap.json_schema.references import resolve_reference

MAX_DEPTH = 60
"""Maximum nesting of a config, and of its schema."""

_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "null": ("null", lambda value: value is None),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("an integer", lambda value: is_number(value) and (isinstance(value, int) or value.is_integer())),
    "number": ("a number", is_number),
    "string": ("a text", lambda value: isinstance(value, str)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, Mapping)),
}
"""By type, the narrowest first: its words in messages, and whether a value has it."""


class ConfigMismatch(NamedTuple):
    """A place where a config breaks its schema.

    Attributes:
        path: names and indexes that lead to the value.
        reason: a clause, without any value of the config.
        is_type: the value has the wrong type.
    """

    path: Steps
    reason: str
    is_type: bool = False


class _Place(NamedTuple):
    """A schema in its document, and the path of the value that it applies to."""

    schema: Mapping[str, Any]
    root: Any
    path: Steps

    def check(self, value: Any, schema: Any, *steps: str | int) -> Iterator[ConfigMismatch]:
        return check(value, schema, self.root, (*self.path, *steps))


def check(value: Any, schema: Any, root: Any = None, path: Steps = ()) -> Iterator[ConfigMismatch]:
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
        yield ConfigMismatch(path, "nothing is allowed here")
        return
    wanted = types_of(schema)
    if wanted and not any(_is_of(value, kind) for kind in wanted):
        reason = f"want {_listed(_TYPES[kind][0] for kind in wanted)}, got {type_words(value)}"
        yield ConfigMismatch(path, reason, is_type=True)
        return
    for keyword, expected in schema.items():
        kind, rule = RULES.get(keyword, ("", None))
        if rule is not None and (not kind or _is_of(value, kind)):
            yield from rule(value, expected, _Place(schema, root, path))


def type_words(value: Any) -> str:
    """Return the words for a value's narrowest type, such as ``an integer``."""
    return next((words for words, is_one in _TYPES.values() if is_one(value)), "an object")


def _is_of(value: Any, kind: str) -> bool:
    return _TYPES[kind][1](value)


def _listed(words: Iterable[str]) -> str:
    """Join alternatives: ``one, two or three``."""
    *rest, last = words
    return f"{', '.join(rest)} or {last}" if rest else last


def _enum(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    if not any(is_equal(value, one) for one in expected):
        yield ConfigMismatch(place.path, f"want one of {', '.join(map(repr, expected))}")


def _const(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    if not is_equal(value, expected):
        yield ConfigMismatch(place.path, f"want {expected!r}")


def _limit(keyword: str, value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    limit = LIMITS[keyword][1](place.schema, keyword)
    try:
        if limit is not None:
            limit(value)
    except MismatchError as mismatch:
        yield ConfigMismatch(place.path, mismatch.reason)


def _format(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    known = FORMATS.get(expected)
    if known and not known.fits(value):
        yield ConfigMismatch(place.path, f"want {known.words}")


def _items(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    for number, item in enumerate(value):
        yield from place.check(item, expected, number)


def _required(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    for name in expected:
        if name not in value:
            yield ConfigMismatch(place.path, f"the field {name!r} is missing")


def _dependent(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    for name, others in expected.items():
        for other in others:
            if name in value and other not in value:
                yield ConfigMismatch(place.path, f"the field {other!r} is missing, which {name!r} wants")


def _properties(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    for name, inner in expected.items():
        if name in value:
            yield from place.check(value[name], inner, name)


def _pattern_properties(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    for expression, inner in expected.items():
        for name, item in value.items():
            if re.search(expression, name):
                yield from place.check(item, inner, name)


def _additional(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    known, patterns = place.schema.get("properties", {}), place.schema.get("patternProperties", {})
    for name, item in value.items():
        if name in known or any(re.search(one, name) for one in patterns):
            continue
        if expected is False:
            yield ConfigMismatch(place.path, f"there is no field {name!r}{suggest(name, sorted(known))}")
        else:
            yield from place.check(item, expected, name)


def _names(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    for name in value:
        for mismatch in place.check(name, expected):
            yield ConfigMismatch(place.path, f"the name {name!r}: {mismatch.reason}")


def _reference(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    if len(place.path) > MAX_DEPTH:
        yield ConfigMismatch(place.path, f"nested more than {MAX_DEPTH} deep")
    else:
        yield from place.check(value, resolve_reference(place.schema, place.root))


def _all_of(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    for one in expected:
        yield from place.check(value, one)


def _any_of(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    found = [list(place.check(value, one)) for one in expected]
    if all(found):
        yield from _nearest(found, place.path)


def _one_of(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    found = [list(place.check(value, one)) for one in expected]
    fits = sum(not mismatches for mismatches in found)
    if fits > 1:
        yield ConfigMismatch(place.path, f"fits {fits} of the forms that there are; want just one")
    elif not fits:
        yield from _nearest(found, place.path)


def _nearest(found: list[list[ConfigMismatch]], path: Steps) -> Iterator[ConfigMismatch]:
    """Yield the mismatches of the only form of the right type, else one mismatch that names all forms."""
    reasons = [mismatches[0].reason for mismatches in found]
    if all(len(mismatches) == 1 and mismatches[0].is_type and mismatches[0].path == path for mismatches in found):
        wanted = [reason.rpartition(", got ")[0].removeprefix("want ") for reason in reasons]
        yield ConfigMismatch(path, f"want {_listed(dict.fromkeys(wanted))}, got {reasons[0].rpartition(', got ')[2]}")
        return
    of_type = [mismatches for mismatches in found if not any(one.path == path and one.is_type for one in mismatches)]
    if len(of_type) == 1:
        yield from of_type[0]
    else:
        yield ConfigMismatch(path, " or ".join(dict.fromkeys(reasons)))


def _not(value: Any, expected: Any, place: _Place) -> Iterator[ConfigMismatch]:
    if not any(True for _ in place.check(value, expected)):
        yield ConfigMismatch(place.path, "fits what it must not be")


RULES: dict[str, tuple[str, Callable[..., Iterator[ConfigMismatch]]]] = {
    "enum": ("", _enum),
    "const": ("", _const),
    **{keyword: (kind, partial(_limit, keyword)) for keyword, (kind, _) in LIMITS.items()},
    "format": ("string", _format),
    "items": ("array", _items),
    "required": ("object", _required),
    "dependentRequired": ("object", _dependent),
    "properties": ("object", _properties),
    "patternProperties": ("object", _pattern_properties),
    "additionalProperties": ("object", _additional),
    "propertyNames": ("object", _names),
    "$ref": ("", _reference),
    "allOf": ("", _all_of),
    "anyOf": ("", _any_of),
    "oneOf": ("", _one_of),
    "not": ("", _not),
}
"""By keyword: the type that it applies to, "" for all, and its rule. ``check`` itself evaluates ``type`` first."""

SUPPORTED = frozenset({*RULES, "type"})
"""The keywords that restrict a config."""

_UNRESTRICTING = ANNOTATIONS | {"$schema", "$id", "secret", "$defs", "definitions"}


def _is_expression(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError, RecursionError):
        return False
    return True


def _is_types(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, (list, tuple)) and bool(names) and all(one in _TYPES for one in names)


_STRICTER: Mapping[str, Shape] = {
    "type": (f"one or more of {', '.join(_TYPES)}", _is_types),
    "enum": ("a list of values, not empty", lambda value: isinstance(value, (list, tuple)) and len(value) > 0),
    "pattern": ("a regular expression of Python's", _is_expression),
    "patternProperties": (
        "schemas by regular expressions",
        lambda value: isinstance(value, Mapping) and all(map(_is_expression, value)),
    ),
    "format": (
        f"a format that is known: {', '.join(sorted({*FORMATS, *ANNOTATED_FORMATS}))}",
        lambda value: value in FORMATS or value in ANNOTATED_FORMATS,
    ),
    "dependentRequired": (
        "lists of names by name",
        lambda value: isinstance(value, Mapping) and all(map(is_names, value.values())),
    ),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), ("a number", is_number)),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        ("a count from 0", lambda value: type(value) is int and value >= 0),
    ),
    "items": ("a schema: an object, true or false", lambda value: isinstance(value, (Mapping, bool))),
}
"""The values of keywords that configs allow, where ``SHAPES`` allows more."""


def reject_unknown(schema: Any) -> None:
    """Raise if a value is not a schema, or uses a keyword that ``check`` does not evaluate.

    Raises:
        TapError: with the place in the schema and the keywords that exist.
    """
    for steps, node in subschemas(schema):
        path = json_path(steps)
        if isinstance(node, bool):
            continue
        if not isinstance(node, Mapping):
            raise TapError(f"config schema: {path}: want a schema, got {type_words(node)}")
        if len(steps) > 2 * MAX_DEPTH:
            raise TapError(f"config schema: {path}: nested more than {MAX_DEPTH} deep")
        for keyword, value in node.items():
            if not (keyword in SUPPORTED or keyword in _UNRESTRICTING or keyword.startswith("x-")):
                raise TapError(
                    f"config schema: {path}.{keyword}: configs do not support this keyword; there are "
                    f"{', '.join(sorted(SUPPORTED | _UNRESTRICTING))}"
                )
            shape = _STRICTER.get(keyword) or SHAPES.get(keyword)
            if shape is not None and keyword not in ANNOTATIONS and not shape[1](value):
                raise TapError(f"config schema: {path}.{keyword}: want {shape[0]}")
        resolve_reference(node, schema)
