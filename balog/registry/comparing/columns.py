"""The columns of a table that a JSON Schema determines by itself.

Columns that depend on the events (maps, mixed types, untyped text) are left out.
"""

from __future__ import annotations

from typing import Any

from balog.registry.columns import TEXT, Column, List, Map, Struct, column_of
from balog.registry.comparing.document import Node, SchemaDocument

_DEEPEST = 64


def columns_of(document: SchemaDocument) -> dict[str, Column]:
    """Return the fields of a payload whose columns the schema determines, without ``cls_type``."""
    kind = _Sure(document).part(column_of(document.root, document.target), document.root)
    return {name: one for name, one in kind.fields.items() if name != "cls_type"} if isinstance(kind, Struct) else {}


def type_text(kind: Column) -> str:
    """Return a type in Spark SQL."""
    if isinstance(kind, Struct):
        return f"struct<{','.join(f'{name}:{type_text(one)}' for name, one in kind.fields.items())}>"
    if isinstance(kind, List):
        return f"array<{type_text(kind.item)}>"
    return f"map<string,{type_text(kind.value)}>" if isinstance(kind, Map) else kind


class _Sure:
    def __init__(self, document: SchemaDocument) -> None:
        self._document = document

    def part(self, kind: Column, schema: Node) -> Column | None:
        """Return a type without the parts that the schema does not determine."""
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
        """Return the target of a ``$ref``, or the other alternative of a nullable schema."""
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
