"""The columns that a table gets by a JSON Schema alone, and what a new version does to them.

The same rules as those by which events are laid out as tables, written down once more without Spark, in whose names
types are said here. What the schema does not tell for sure (maps, mixed types, text that may be anything) becomes a
column by what the events hold, and is not told here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from balog.registry.comparing.document import Document, Node

__all__ = ["Column", "List", "Struct", "columns_of", "type_text"]

_DEEPEST = 64
_FORMATS = {"date-time": "timestamp", "date": "date"}
_SCALARS = {"integer": "bigint", "number": "double", "boolean": "boolean"}
_TEXT = "string"


class List(NamedTuple):
    """An array of items of one type."""

    item: Column


class Struct(NamedTuple):
    """Fields by their names, in order."""

    fields: dict[str, Column]


class _Map(NamedTuple):
    value: Column


Column = str | List | Struct | _Map


def columns_of(document: Document) -> dict[str, Column]:
    """Give the fields of a payload, ``cls_type`` aside, whose columns are sure."""
    reader = _Reader(document)
    kind = reader.sure(reader.read(document.root, ()), document.root)
    return {name: one for name, one in kind.fields.items() if name != "cls_type"} if isinstance(kind, Struct) else {}


def type_text(kind: Column) -> str:
    """Write a type as Spark's SQL does."""
    if isinstance(kind, Struct):
        return f"struct<{','.join(f'{name}:{type_text(one)}' for name, one in kind.fields.items())}>"
    if isinstance(kind, List):
        return f"array<{type_text(kind.item)}>"
    return f"map<string,{type_text(kind.value)}>" if isinstance(kind, _Map) else kind


class _Reader:
    def __init__(self, document: Document) -> None:
        self._document = document

    def read(self, schema: Node, above: tuple[int, ...]) -> Column:
        """Turn one (sub-)schema into a type; ``above`` are the ids of those it is inside of."""
        if not isinstance(schema, dict) or id(schema) in above or len(above) > _DEEPEST:
            return _TEXT
        above = (*above, id(schema))
        if "$ref" in schema:
            return self.read(self._document.target(schema), above)
        parts = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(parts, list):
            parts = [part for part in parts if not _is_null(part)]
            return _joined(parts, [self.read(part, above) for part in parts])
        if isinstance(schema.get("allOf"), list):
            return self._all(schema, above)
        names = schema.get("type", [])
        kinds = [names] if isinstance(names, str) else list(names)
        if not kinds:
            kinds = ["object"] if "properties" in schema else sorted(_valued(schema))
        kinds = [kind for kind in kinds if kind != "null"]
        made = [self._one(kind, schema, above) for kind in kinds]
        return _joined([{**schema, "type": kind} for kind in kinds], made)

    def _one(self, kind: str, schema: dict[str, Any], above: tuple[int, ...]) -> Column:
        if kind == "string":
            return _FORMATS.get(str(schema.get("format")), _TEXT)
        if kind == "array":
            return List(self.read(schema.get("items"), above))
        if kind != "object":
            return _SCALARS.get(kind, _TEXT)
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            return Struct({name: self.read(inner, above) for name, inner in _distinct(properties.items())})
        return _Map(self.read(schema.get("additionalProperties"), above))

    def _all(self, schema: dict[str, Any], above: tuple[int, ...]) -> Column:
        rest = {name: value for name, value in schema.items() if name != "allOf"}
        made = [self.read(part, above) for part in (*schema["allOf"], *([rest] if _says_type(rest) else []))]
        structs = [kind for kind in made if isinstance(kind, Struct)]
        if structs:
            return Struct(dict(_distinct(field for kind in structs for field in kind.fields.items())))
        return next((kind for kind in made if kind != _TEXT), _TEXT)

    def sure(self, kind: Column, schema: Node) -> Column | None:
        """Give a type without the parts that are there only because the schema says too little or too much."""
        schema = self._plain(schema)
        if isinstance(kind, Struct):
            properties = schema.get("properties", {})
            inner = {name: self.sure(one, properties.get(name)) for name, one in kind.fields.items()}
            kept = {name: one for name, one in inner.items() if one is not None}
            return Struct(kept) if kept else None
        if isinstance(kind, List):
            item = self.sure(kind.item, schema.get("items"))
            return None if item is None else List(item)
        if kind == _TEXT:
            names = schema.get("type")
            values = schema.get("enum", [schema.get("const")])
            is_text = names == "string" or (isinstance(names, list) and set(names) <= {"string", "null"})
            return kind if is_text or (names is None and all(isinstance(value, str) for value in values)) else None
        return None if isinstance(kind, _Map) else kind

    def _plain(self, schema: Node) -> dict[str, Any]:
        """Give what a ``$ref``, or a choice between null and one other thing, stands for."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, dict):
                break
            parts = [part for part in (schema.get("anyOf") or schema.get("oneOf") or []) if part != {"type": "null"}]
            if "$ref" in schema:
                schema = self._document.target(schema)
            elif len(parts) == 1:
                schema = parts[0]
            else:
                return schema
        return {}


def _distinct(items: Any) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for name, item in items:
        if name.lower() not in seen:
            seen.add(name.lower())
            yield name, item


def _says_type(schema: Mapping[str, Any]) -> bool:
    return bool({"type", "properties", "enum", "const", "$ref", "anyOf", "oneOf"} & set(schema))


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        schema.get("type") == "null" or ("const" in schema and schema["const"] is None)
    )


def _valued(schema: Mapping[str, Any]) -> set[str]:
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return {names[type(value)] for value in values if value is not None}


def _joined(schemas: Sequence[Any], kinds: Sequence[Column]) -> Column:
    """Give the one type for a value that may be of any of these."""
    numbers = [kind for kind in kinds if kind in ("bigint", "double")]
    others = [
        kind for schema, kind in zip(schemas, kinds, strict=True)
        if kind not in numbers and not (numbers and _is_numeric_text(schema))
    ]  # fmt: skip
    if numbers and not others:
        return "double" if "double" in numbers else "bigint"
    if not numbers and others and all(kind == others[0] for kind in others):
        return others[0]
    return _TEXT


def _is_numeric_text(schema: Any) -> bool:
    pattern = schema.get("pattern") if isinstance(schema, dict) else None
    try:
        return isinstance(pattern, str) and bool(re.search(pattern, "1")) and not re.search(pattern, "x")
    except re.error:
        return False
