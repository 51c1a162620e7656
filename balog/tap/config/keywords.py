"""The keywords that a config's schema may use. A tap's declaration rejects any other keyword; none is ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from balog.tap.config.formats import ANNOTATED_FORMATS, FORMATS
from balog.tap.config.json_types import MAX_DEPTH, TYPES, is_number, resolve_reference, type_of, type_words
from balog.tap.config.validator import RULES
from balog.tap.errors import TapError

_ANNOTATIONS = {
    *("$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly"),
    *("writeOnly", "secret", "$defs", "definitions"),
}


def reject_unknown(schema: Any, root: Any = None, path: str = "$", depth: int = 0) -> None:
    """Raise if a value is not a schema, or uses a keyword that ``check`` does not evaluate.

    Raises:
        TapError: with the place in the schema and the keywords that exist.
    """
    root = schema if root is None else root
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise TapError(f"config schema: {path}: want a schema, got {type_words(type_of(schema))}")
    if depth > MAX_DEPTH:
        raise TapError(f"config schema: {path}: nested more than {MAX_DEPTH} deep")
    for keyword, value in schema.items():
        place = f"{path}.{keyword}"
        if keyword not in SHAPES and keyword not in _ANNOTATIONS and not keyword.startswith("x-"):
            raise TapError(
                f"config schema: {place}: configs do not support this keyword; there are "
                f"{', '.join(sorted({*SHAPES, *_ANNOTATIONS}))}"
            )
        SHAPES.get(keyword, _anything)(value, place)
        if keyword in ("properties", "patternProperties", "$defs", "definitions"):
            _want_mapping(value, place)
            for name, inner in value.items():
                reject_unknown(inner, root, f"{place}.{name}", depth + 1)
        elif keyword in ("anyOf", "oneOf", "allOf"):
            for number, inner in enumerate(value):
                reject_unknown(inner, root, f"{place}[{number}]", depth + 1)
        elif keyword in ("items", "additionalProperties", "propertyNames", "not"):
            reject_unknown(value, root, place, depth + 1)
        elif keyword == "$ref":
            resolve_reference(schema, root)


def _anything(value: Any, place: str) -> None:
    """Accept any value."""


def _want(is_right: Callable[[Any], bool], words: str) -> Callable[[Any, str], None]:
    def shape(value: Any, place: str) -> None:
        if not is_right(value):
            raise TapError(f"config schema: {place}: want {words}")

    return shape


def _is_expression(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError, RecursionError):
        return False
    return True


def _is_names(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)


def _is_types(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, (list, tuple)) and bool(names) and all(one in TYPES for one in names)


_want_mapping = _want(lambda value: isinstance(value, Mapping), "an object of schemas by name")
_want_number = _want(is_number, "a number")
_want_count = _want(
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0, "a count from 0"
)
_want_schemas = _want(lambda value: isinstance(value, (list, tuple)) and bool(value), "a list of schemas, not empty")
SHAPES: dict[str, Callable[[Any, str], None]] = {
    **dict.fromkeys(RULES, _anything),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _want_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _want_count),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _want_schemas),
    "type": _want(_is_types, f"one or more of {', '.join(TYPES)}"),
    "enum": _want(lambda value: isinstance(value, (list, tuple)) and bool(value), "a list of values, not empty"),
    "multipleOf": _want(lambda value: is_number(value) and value > 0, "a number above 0"),
    "pattern": _want(_is_expression, "a regular expression of Python's"),
    "patternProperties": _want(
        lambda value: isinstance(value, Mapping) and all(map(_is_expression, value)), "schemas by regular expressions"
    ),
    "format": _want(
        lambda value: value in FORMATS or value in ANNOTATED_FORMATS,
        f"a format that is known: {', '.join(sorted({*FORMATS, *ANNOTATED_FORMATS}))}",
    ),
    "uniqueItems": _want(lambda value: isinstance(value, bool), "true or false"),
    "required": _want(_is_names, "a list of names"),
    "dependentRequired": _want(
        lambda value: isinstance(value, Mapping) and all(map(_is_names, value.values())), "lists of names by name"
    ),
}
"""By keyword: the function that rejects values which the keyword cannot have."""
