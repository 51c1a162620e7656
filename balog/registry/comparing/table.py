"""The effect of a new version on the table of its type: new columns, and values that a column cannot hold.

No change breaks a table: rows stay as they are, and values that a column cannot hold go to a new column. Queries may
need the new columns. Columns that depend on the events (maps, mixed types, untyped text) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from balog.registry.columns import TEXT, Column, List, Map, Struct, column_of
from balog.registry.comparing.document import Node, SchemaDocument
from balog.registry.comparing.verdict import CompatibilityFinding

_FACILITY = {"id", "timestamp", "channel", "level", "run_id", "application"}
_RESERVED = {*_FACILITY, "payload_recovered", "date"}
_LONGEST_NAME = 120
_DEEPEST = 64


class TableStep(NamedTuple):
    """A column that is added: its path (``element`` is a list's item), its type, and the column that it supplements."""

    path: tuple[str, ...]
    type: str
    field: str
    instead_of: str = ""


class _Cell:
    """A column's type, which grows."""

    def __init__(self, kind: Column) -> None:
        self.scalar = "" if isinstance(kind, (Struct, List)) else type_text(kind)
        self.fields = _Fields(kind, top=False) if isinstance(kind, Struct) else None
        self.item = _Cell(kind.item) if isinstance(kind, List) else None

    def text(self) -> str:
        if self.fields is not None:
            return f"struct<{','.join(f'{name}:{cell.text()}' for name, cell in self.fields.columns())}>"
        return self.scalar if self.item is None else f"array<{self.item.text()}>"

    def take(self, kind: Column, path: tuple[str, ...], field: str) -> list[TableStep] | None:
        """Extend the column for values of another type. Return None if that is impossible."""
        if self.fields is not None and isinstance(kind, Struct):
            return list(self.fields.take(kind, path, field))
        if self.item is not None and isinstance(kind, List):
            return self.item.take(kind.item, (*path, "element"), f"{field}[*]")
        held = {"double": ("bigint",), "string": ("timestamp", "date")}.get(self.scalar, ())
        return [] if self.scalar and type_text(kind) in (self.scalar, *held) else None


class _Fields:
    def __init__(self, struct: Struct, top: bool) -> None:
        self._top = top
        self._taken = {name.lower() for name in _RESERVED} if top else set()
        # For each field one column, and a second one for values that the first cannot hold.
        self._fields: dict[str, list[tuple[str, _Cell]]] = {}
        for _ in self.take(struct, (), "$"):
            pass

    def columns(self) -> Iterator[tuple[str, _Cell]]:
        return (column for columns in self._fields.values() for column in columns)

    def take(self, struct: Struct, path: tuple[str, ...], where: str) -> Iterator[TableStep]:
        for name, kind in struct.fields.items():
            columns, here = self._fields.setdefault(name, []), f"{where}.{name}"
            for column, cell in columns:
                inner = cell.take(kind, (*path, column), here)
                if inner is not None:
                    yield from inner
                    break
            else:
                if len(columns) < 2:
                    had = columns[0] if columns else None
                    column = self._free(f"{had[0]}_recovered" if had else _named(name, self._top))
                    columns.append((column, _Cell(kind)))
                    instead_of = f"{had[0]} {had[1].text()}" if had else ""
                    yield TableStep((*path, column), columns[-1][1].text(), here, instead_of)

    def _free(self, name: str) -> str:
        free, number = name, 2
        while free.lower() in self._taken:
            free, number = f"{name}_{number}", number + 1
        self._taken.add(free.lower())
        return free


def table_steps(old: SchemaDocument, new: SchemaDocument) -> list[TableStep]:
    """Return the columns that the new version adds to the table of the old one, in order."""
    table = _Fields(Struct(columns_of(old)), top=True)
    return list(table.take(Struct(columns_of(new)), (), "$"))


def compare_tables(old: SchemaDocument, new: SchemaDocument) -> list[CompatibilityFinding]:
    """Return the changes of a table as findings."""
    findings = []
    for step in table_steps(old, new):
        reason = f"new column {'.'.join(step.path)} {step.type}"
        if step.instead_of:
            reason = f"the column {step.instead_of} can't hold {step.type}, which goes to a {reason}"
        findings.append(CompatibilityFinding(layer="table", path=step.field, reason=reason, breaks=False))
    return findings


def _named(field: str, top: bool) -> str:
    name = "".join(char if char.isalnum() or char == "_" else "_" for char in field)[:_LONGEST_NAME] or "_"
    return f"payload_{name}" if top and name.lower() in _RESERVED else name


def columns_of(document: SchemaDocument) -> dict[str, Column]:
    """Return the fields of a payload whose columns the schema determines, without ``cls_type``."""
    kind = _DeterminedColumns(document).part(column_of(document.root, document.target), document.root)
    return {name: one for name, one in kind.fields.items() if name != "cls_type"} if isinstance(kind, Struct) else {}


def type_text(kind: Column) -> str:
    """Return a type in Spark SQL."""
    if isinstance(kind, Struct):
        return f"struct<{','.join(f'{name}:{type_text(one)}' for name, one in kind.fields.items())}>"
    if isinstance(kind, List):
        return f"array<{type_text(kind.item)}>"
    return f"map<string,{type_text(kind.value)}>" if isinstance(kind, Map) else kind


class _DeterminedColumns:
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
