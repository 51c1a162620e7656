"""The Spark SQL type of a column, from the JSON Schema of its values.

- ``string`` → string, with the format ``date-time`` timestamp, ``date`` date; ``integer`` → bigint; ``number`` →
  double; ``boolean`` → boolean; an enum or a const → the type of its values;
- an array → an array of its items; an object with properties → a struct; any other object → a map from string to the
  type of ``additionalProperties``, or to string (JSON text for values that are not strings);
- a nullable value → the type without null; a number that may also be a string with a numeric pattern → a number;
  integer and number together → double;
- any other mixture of types, a recursive type, a value without a type, and values below 64 levels → a string that
  holds JSON text.

Column names in Spark are case-insensitive. Of names that differ only by case, the first one stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from balog.registry.subschemas import type_of

_DEEPEST = 64
_FORMATS = {"date-time": "timestamp", "date": "date"}
_SCALARS = {"integer": "bigint", "number": "double", "boolean": "boolean"}

TEXT = "string"


class List(NamedTuple):
    """An array of items of one type."""

    item: Column


class Struct(NamedTuple):
    """Fields by their names, in order."""

    fields: dict[str, Column]


class Map(NamedTuple):
    """Values of one type, with string keys."""

    value: Column


Column = str | List | Struct | Map
"""``string``, ``bigint``, ``double``, ``boolean``, ``timestamp``, ``date``, or a nested type."""


def column_of(schema: Any, target: Callable[[dict[str, Any]], Any]) -> Column:
    """Return the column type for a schema.

    Args:
        target: returns the target of a schema with a ``$ref``. Its errors propagate.
    """
    return _Reader(target).read(schema, ())


class _Reader:
    def __init__(self, target: Callable[[dict[str, Any]], Any]) -> None:
        self._target = target

    def read(self, schema: Any, above: tuple[int, ...]) -> Column:
        """Return the type for a schema. ``above`` holds the ids of the enclosing schemas."""
        if not isinstance(schema, dict) or id(schema) in above or len(above) > _DEEPEST:
            return TEXT
        above = (*above, id(schema))
        if "$ref" in schema:
            return self.read(self._target(schema), above)
        parts = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(parts, list):
            parts = [part for part in parts if not _is_null(part)]
            return _common_type(parts, [self.read(part, above) for part in parts])
        if isinstance(schema.get("allOf"), list):
            return self._all(schema, above)
        names = schema.get("type", [])
        kinds = [names] if isinstance(names, str) else list(names)
        if not kinds:
            kinds = ["object"] if "properties" in schema else sorted(_valued(schema))
        kinds = [kind for kind in kinds if kind != "null"]
        columns = [self._one(kind, schema, above) for kind in kinds]
        return _common_type([{**schema, "type": kind} for kind in kinds], columns)

    def _one(self, kind: str, schema: dict[str, Any], above: tuple[int, ...]) -> Column:
        if kind == "string":
            return _FORMATS.get(str(schema.get("format")), TEXT)
        if kind == "array":
            return List(self.read(schema.get("items"), above))
        if kind != "object":
            return _SCALARS.get(kind, TEXT)
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            return Struct({name: self.read(inner, above) for name, inner in _distinct(properties.items())})
        return Map(self.read(schema.get("additionalProperties"), above))

    def _all(self, schema: dict[str, Any], above: tuple[int, ...]) -> Column:
        rest = {name: value for name, value in schema.items() if name != "allOf"}
        columns = [self.read(part, above) for part in (*schema["allOf"], *([rest] if _declares_type(rest) else []))]
        structs = [kind for kind in columns if isinstance(kind, Struct)]
        if structs:
            return Struct(dict(_distinct(field for kind in structs for field in kind.fields.items())))
        return next((kind for kind in columns if kind != TEXT), TEXT)


def _distinct(items: Any) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for name, item in items:
        if name.lower() not in seen:
            seen.add(name.lower())
            yield name, item


def _declares_type(schema: Mapping[str, Any]) -> bool:
    return bool({"type", "properties", "enum", "const", "$ref", "anyOf", "oneOf"} & set(schema))


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        schema.get("type") == "null" or ("const" in schema and schema["const"] is None)
    )


def _valued(schema: Mapping[str, Any]) -> set[str]:
    """Return the JSON types of an enum's or a const's values."""
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    return {type_of(value) for value in values if value is not None}


def _common_type(schemas: Sequence[Any], kinds: Sequence[Column]) -> Column:
    """Return the one type that holds values of all these types."""
    numbers = [kind for kind in kinds if kind in ("bigint", "double")]
    others = [
        kind for schema, kind in zip(schemas, kinds, strict=True)
        if kind not in numbers and not (numbers and _is_numeric_text(schema))
    ]  # fmt: skip
    if numbers and not others:
        return "double" if "double" in numbers else "bigint"
    if not numbers and others and all(kind == others[0] for kind in others):
        return others[0]
    return TEXT


def _is_numeric_text(schema: Any) -> bool:
    pattern = schema.get("pattern") if isinstance(schema, dict) else None
    try:
        return isinstance(pattern, str) and bool(re.search(pattern, "1")) and not re.search(pattern, "x")
    except re.error:
        return False
