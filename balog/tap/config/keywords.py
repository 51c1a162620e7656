"""What a schema of a config may say; all else is refused when the tap is declared, never passed over."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from balog.tap.config.formats import ANNOTATED_FORMATS, FORMATS
from balog.tap.config.json_types import MAX_DEPTH, TYPES, in_words, is_number, kind_of, target_of
from balog.tap.config.validator import RULES
from balog.tap.errors import TapError

__all__ = ["SHAPES", "refuse_unknown"]

_ANNOTATIONS = {
    *("$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly"),
    *("writeOnly", "secret", "$defs", "definitions"),
}


def refuse_unknown(schema: Any, root: Any = None, path: str = "$", depth: int = 0) -> None:
    """Refuse a schema that says what ``check`` does not look at, or that is none.

    Raises:
        TapError: with the place in the schema, and what there is instead.
    """
    root = schema if root is None else root
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise TapError(f"config schema: {path}: want a schema, got {in_words(kind_of(schema))}")
    if depth > MAX_DEPTH:
        raise TapError(f"config schema: {path}: nested more than {MAX_DEPTH} deep")
    for keyword, said in schema.items():
        place = f"{path}.{keyword}"
        if keyword not in SHAPES and keyword not in _ANNOTATIONS and not keyword.startswith("x-"):
            raise TapError(
                f"config schema: {place}: this keyword is not looked at in a config; there are "
                f"{', '.join(sorted({*SHAPES, *_ANNOTATIONS}))}"
            )
        SHAPES.get(keyword, _anything)(said, place)
        if keyword in ("properties", "patternProperties", "$defs", "definitions"):
            _want_mapping(said, place)
            for name, inner in said.items():
                refuse_unknown(inner, root, f"{place}.{name}", depth + 1)
        elif keyword in ("anyOf", "oneOf", "allOf"):
            for number, inner in enumerate(said):
                refuse_unknown(inner, root, f"{place}[{number}]", depth + 1)
        elif keyword in ("items", "additionalProperties", "propertyNames", "not"):
            refuse_unknown(said, root, place, depth + 1)
        elif keyword == "$ref":
            target_of(schema, root)


def _anything(said: Any, place: str) -> None:
    """Any value will do."""


def _want(is_right: Callable[[Any], bool], words: str) -> Callable[[Any, str], None]:
    def shape(said: Any, place: str) -> None:
        if not is_right(said):
            raise TapError(f"config schema: {place}: want {words}")

    return shape


def _is_expression(said: Any) -> bool:
    try:
        re.compile(said)
    except (re.error, TypeError, RecursionError):
        return False
    return True


def _is_names(said: Any) -> bool:
    return isinstance(said, (list, tuple)) and all(isinstance(one, str) for one in said)


def _is_types(said: Any) -> bool:
    names = [said] if isinstance(said, str) else said
    return isinstance(names, (list, tuple)) and bool(names) and all(one in TYPES for one in names)


_want_mapping = _want(lambda said: isinstance(said, Mapping), "an object of schemas by name")
_want_number = _want(is_number, "a number")
_want_count = _want(lambda said: isinstance(said, int) and not isinstance(said, bool) and said >= 0, "a count from 0")
_want_schemas = _want(lambda said: isinstance(said, (list, tuple)) and bool(said), "a list of schemas, not empty")
SHAPES: dict[str, Callable[[Any, str], None]] = {
    **dict.fromkeys(RULES, _anything),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _want_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _want_count),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _want_schemas),
    "type": _want(_is_types, f"one or more of {', '.join(TYPES)}"),
    "enum": _want(lambda said: isinstance(said, (list, tuple)) and bool(said), "a list of values, not empty"),
    "multipleOf": _want(lambda said: is_number(said) and said > 0, "a number above 0"),
    "pattern": _want(_is_expression, "a regular expression of Python's"),
    "patternProperties": _want(
        lambda said: isinstance(said, Mapping) and all(map(_is_expression, said)), "schemas by regular expressions"
    ),
    "format": _want(
        lambda said: said in FORMATS or said in ANNOTATED_FORMATS,
        f"a format that is known: {', '.join(sorted({*FORMATS, *ANNOTATED_FORMATS}))}",
    ),
    "uniqueItems": _want(lambda said: isinstance(said, bool), "true or false"),
    "required": _want(_is_names, "a list of names"),
    "dependentRequired": _want(
        lambda said: isinstance(said, Mapping) and all(map(_is_names, said.values())), "lists of names by name"
    ),
}
"""By keyword, what refuses a value that it can't have."""
