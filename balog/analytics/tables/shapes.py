"""What payloads look like: the fields and types of each payload type, out of events or out of a registry's schema.

- An object is a struct, a list an array; a list of mixed types is no column and stays JSON text (see ``evolution``).
- Whole numbers are ``bigint``, beyond 64 bits ``decimal(38,0)``; other numbers ``double``, whole ones among them too.
- Text that is a number counts as one where the field is a number elsewhere, else as text.
- Text stays text: that a value looks like a time today does not promise that the next one does, and text loses neither
  its zone nor its digits. A registry's schema that says ``date-time`` or ``date`` promises it, and makes such columns.
- What was only ever null, ``{}`` or ``[]`` has no type yet, and no column.

A registry's schema says nothing of objects without properties and of fields without a type: those grow from data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from pyspark.sql import types as t

from balog.analytics.reading.registry_types import find_schema, payload_type
from balog.analytics.tables.evolution import DEEPEST, MOST_COLUMNS, merge
from balog.analytics.tables.placement import Inexact, is_void, number_of
from balog.analytics.tables.typed_columns import Columns

__all__ = ["PayloadShape", "ShapeObserver", "from_registry"]

_SCALARS = {
    "double": t.DoubleType(),
    "bigint": t.LongType(),
    "huge": t.DecimalType(38, 0),
    "boolean": t.BooleanType(),
    "text": t.StringType(),
}
"""In the order in which several types of one field within one batch become its columns."""

_MOST_SEEN = 4 * MOST_COLUMNS
"""Things that a shape takes in: payloads whose fields are named by what they are about have ever new ones."""

_TOGETHER = 256
"""Payloads that are looked at before what they taught is of use."""


class PayloadShape(msgspec.Struct, omit_defaults=True):
    """The types that a value was seen to have: a lattice, so that shapes seen apart can be united in any order.

    Attributes:
        kinds: of ``_SCALARS``; those in ``numeric`` were texts.
        fields: an object's, by name.
        item: a list's items, all alike.
    """

    kinds: set[str] = msgspec.field(default_factory=set)
    numeric: set[str] = msgspec.field(default_factory=set)
    fields: dict[str, PayloadShape] | None = None
    item: PayloadShape | None = None

    def observe(self, value: Any, level: int = 0) -> int:
        """Take one more value in; give how many things were new."""
        if is_void(value) or level > DEEPEST:
            return 0
        if isinstance(value, dict):
            new, self.fields = int(self.fields is None), self.fields or {}
            for name, inner in value.items():
                if not is_void(inner):
                    new += name not in self.fields
                    new += self.fields.setdefault(name, PayloadShape()).observe(inner, level + 1)
            return new
        if isinstance(value, list):
            new, self.item = int(self.item is None), self.item or PayloadShape()
            return new + sum(self.item.observe(inner, level + 1) for inner in value)
        if isinstance(value, Inexact):
            value = value.nearest
            if value is None:  # no column holds it
                return 0
        number = number_of(value) if isinstance(value, str) else value
        kinds = self.numeric if isinstance(value, str) and number is not None else self.kinds
        kind = "text" if number is None else _kind(number)
        new = int(kind not in kinds)
        kinds.add(kind)
        return new

    def unite(self, other: PayloadShape) -> None:
        """Take in what another shape has seen."""
        self.kinds |= other.kinds
        self.numeric |= other.numeric
        if other.fields is not None:
            self.fields = {} if self.fields is None else self.fields
            for name, inner in other.fields.items():
                self.fields.setdefault(name, PayloadShape()).unite(inner)
        if other.item is not None:
            self.item = PayloadShape() if self.item is None else self.item
            self.item.unite(other.item)

    def types(self) -> list[t.DataType]:
        """Give the columns' types that hold the values, the first one the field's own."""
        found: list[t.DataType] = []
        if self.fields is not None and (struct := self.struct()).fields:
            found.append(struct)
        if self.item is not None and len(inner := self.item.types()) == 1:
            found.append(t.ArrayType(inner[0]))
        kinds = set(self.kinds)
        if kinds & {"double", "bigint", "huge"}:
            kinds |= self.numeric
        elif self.numeric:
            kinds.add("text")
        if kinds & {"double", "huge"}:
            kinds.discard("bigint")
        return found + [_SCALARS[name] for name in _SCALARS if name in kinds]

    def struct(self) -> t.StructType:
        """Give an object's fields as a schema for ``evolution.merge``; a field of several types comes several times."""
        columns = []
        for name, inner in (self.fields or {}).items():
            for number, kind in enumerate(inner.types()):
                column = name if not number else f"{name}_recovered"
                columns.append(t.StructField(column, kind, True, {"field": name}))
        return t.StructType(columns)


def _kind(number: bool | int | float) -> str:
    if isinstance(number, bool):
        return "boolean"
    if isinstance(number, float):
        return "double"
    return "bigint" if -(1 << 63) <= number < 1 << 63 else "huge"


class ShapeObserver:
    """Looks at payloads of one type for what no column would hold: it sees the fields that need a new column or type.

    Shapes that several watchers have seen are united; their ``struct()`` is what ``evolution.merge`` takes. A watcher
    decodes by the columns that it knows so far; only what does not fit is looked into, and makes it know more. So
    payloads that are alike cost what decoding them costs.

    Args:
        cls_type: the payloads' type.
        have: the schema of its table, or of one that is made by a registry's; None knows nothing.

    Attributes:
        seen: the shape of what did not fit.
    """

    def __init__(self, cls_type: str, have: t.StructType | None) -> None:
        self.seen = PayloadShape()
        self._cls_type, self._have = cls_type, have
        self._columns = Columns(merge(have, t.StructType()).schema, cls_type)
        self._size = 0

    def look(self, texts: Sequence[bytes]) -> None:
        """Look at the JSON texts of some payloads."""
        for start in range(0, len(texts), _TOGETHER):
            known = self._size
            for rest in self._columns.rests(texts[start : start + _TOGETHER]):
                if self._size <= _MOST_SEEN:
                    self._size += self.seen.observe(rest)
            if self._size > known:
                self._columns = Columns(merge(self._have, self.seen.struct()).schema, self._cls_type)


def from_registry(cls_type: str, version: str | None = None, place: str | None = None) -> t.StructType | None:
    """Give the fields that the registry's schema of a payload type tells for sure; None when it has no schema.

    Arguments and errors are those of ``reading.registry_types.payload_type``.
    """
    kind = payload_type(cls_type, version, place)
    found = find_schema(cls_type, version, place)
    if kind is None or found is None:
        return None
    sure = _sure(kind, found[1], found[1])
    fields = [] if not isinstance(sure, t.StructType) else [field for field in sure if field.name != "cls_type"]
    return t.StructType([t.StructField(field.name, field.dataType, True, {"field": field.name}) for field in fields])


def _sure(kind: t.DataType, schema: Any, root: Any) -> t.DataType | None:
    """Give a type without the parts that are there only because the schema says too little or too much."""
    schema = _plain(schema, root)
    if isinstance(kind, t.StructType):
        properties = schema.get("properties", {})
        inner = [(field, _sure(field.dataType, properties.get(field.name), root)) for field in kind]
        kept = [t.StructField(field.name, one) for field, one in inner if one is not None]
        return t.StructType(kept) if kept else None
    if isinstance(kind, t.ArrayType):
        item = _sure(kind.elementType, schema.get("items"), root)
        return None if item is None else t.ArrayType(item)
    if isinstance(kind, t.StringType):
        names = schema.get("type")
        values = schema.get("enum", [schema.get("const")])
        is_text = names == "string" or (isinstance(names, list) and set(names) <= {"string", "null"})
        return kind if is_text or (names is None and all(isinstance(value, str) for value in values)) else None
    return None if isinstance(kind, t.MapType) else kind


def _plain(schema: Any, root: Any) -> dict[str, Any]:
    """Give what a ``$ref``, or a choice between null and one other thing, stands for; ``spark_type`` has checked it."""
    for _ in range(DEEPEST):  # one that leads to itself alone stands for nothing
        if not isinstance(schema, dict):
            break
        parts = [part for part in (schema.get("anyOf") or schema.get("oneOf") or []) if part != {"type": "null"}]
        if "$ref" in schema:
            target = root
            for step in str(schema["$ref"]).split("/")[1:]:
                target = target[step.replace("~1", "/").replace("~0", "~")]
            schema = target
        elif len(parts) == 1:
            schema = parts[0]
        else:
            return schema
    return {}
