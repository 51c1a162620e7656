"""The columns that a table gets by a JSON Schema alone.

What the schema does not tell for sure (maps, mixed types, text that may be anything) becomes a column by what the
events hold, and is not told here.
"""

from __future__ import annotations

from typing import Any

from balog.registry.columns import TEXT, Column, List, Map, Struct, column_of
from balog.registry.comparing.document import Node, SchemaDocument

__all__ = ["Column", "List", "Struct", "columns_of", "type_text"]

_DEEPEST = 64


def columns_of(document: SchemaDocument) -> dict[str, Column]:
    """Give the fields of a payload, ``cls_type`` aside, whose columns are sure."""
    kind = _Sure(document).part(column_of(document.root, document.target), document.root)
    return {name: one for name, one in kind.fields.items() if name != "cls_type"} if isinstance(kind, Struct) else {}


def type_text(kind: Column) -> str:
    """Write a type as Spark's SQL does."""
    if isinstance(kind, Struct):
        return f"struct<{','.join(f'{name}:{type_text(one)}' for name, one in kind.fields.items())}>"
    if isinstance(kind, List):
        return f"array<{type_text(kind.item)}>"
    return f"map<string,{type_text(kind.value)}>" if isinstance(kind, Map) else kind


class _Sure:
    def __init__(self, document: SchemaDocument) -> None:
        self._document = document

    def part(self, kind: Column, schema: Node) -> Column | None:
        """Give a type without the parts that are there only because the schema says too little or too much."""
        schema = self._plain(schema)
        if isinstance(kind, Struct):
            properties = schema.get("properties", {})
            inner = {name: self.part(one, properties.get(name)) for name, one in kind.fields.items()}
            kept = {name: one for name, one in inner.items() if one is not None}
            return Struct(kept) if kept else None
        if isinstance(kind, List):
            item = self.part(kind.item, schema.get("items"))
            return None if item is None else List(item)
        if kind == TEXT:
            names = schema.get("type")
            values = schema.get("enum", [schema.get("const")])
            is_text = names == "string" or (isinstance(names, list) and set(names) <= {"string", "null"})
            return kind if is_text or (names is None and all(isinstance(value, str) for value in values)) else None
        return None if isinstance(kind, Map) else kind

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
