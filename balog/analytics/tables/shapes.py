"""The shapes of payloads: the fields and types of a payload type, from events or from a registry's schema.

- An object is a struct, a list an array. A list of mixed types has no column and stays JSON text (see ``evolution``).
- Whole numbers are ``bigint``, beyond 64 bits ``decimal(38,0)``. Other numbers are ``double``, and so are whole numbers
  of the same field.
- A text with a number counts as a number if other values of the field are numbers, otherwise as text.
- Text stays text. If a value looks like a time today, the next one may not, and text keeps its zone and digits. Only
  ``date-time`` or ``date`` in a registry's schema guarantees times, and creates such columns.
- Fields that were always null, ``{}`` or ``[]`` have no type, and no column.

Objects without properties and fields without a type in a registry's schema get their columns from data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from balog.analytics.reading.registry_types import find_schema, payload_type, referred
from balog.analytics.tables.column_conversion import Columns
from balog.analytics.tables.log import read_columns
from balog.analytics.tables.placement import Inexact, is_empty, number_of
from balog.analytics.tables.store import table_name
from balog.analytics.tables.table_schema import DEEPEST, MOST_COLUMNS, merge
from balog.registry import open_registry

_SCALARS = {
    "double": t.DoubleType(),
    "bigint": t.LongType(),
    "huge": t.DecimalType(38, 0),
    "boolean": t.BooleanType(),
    "text": t.StringType(),
}
"""In the order of precedence if a field has several types within one batch."""

_MOST_SEEN = 4 * MOST_COLUMNS
"""The size limit of a shape: objects that are used as maps have ever new fields."""

_TOGETHER = 256
"""Payloads to observe before the columns are updated."""


class PayloadShape(msgspec.Struct, omit_defaults=True):
    """The types of a value so far. Shapes form a lattice, so they can be merged in any order.

    Attributes:
        kinds: names in ``_SCALARS``.
        numeric: the same, for texts with numbers.
        fields: of an object, by name.
        item: the shape of all items of a list.
    """

    kinds: set[str] = msgspec.field(default_factory=set)
    numeric: set[str] = msgspec.field(default_factory=set)
    fields: dict[str, PayloadShape] | None = None
    item: PayloadShape | None = None

    def observe(self, value: Any, level: int = 0) -> int:
        """Add a value, and return how many fields and types are new."""
        if is_empty(value) or level > DEEPEST:
            return 0
        if isinstance(value, dict):
            new, self.fields = int(self.fields is None), self.fields or {}
            for name, inner in value.items():
                if not is_empty(inner):
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
        """Merge another shape into this one."""
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
        """Return the types of the columns that hold the values; the first is the field's own column."""
        types: list[t.DataType] = []
        if self.fields is not None and (struct := self.struct()).fields:
            types.append(struct)
        if self.item is not None and len(inner := self.item.types()) == 1:
            types.append(t.ArrayType(inner[0]))
        kinds = set(self.kinds)
        if kinds & {"double", "bigint", "huge"}:
            kinds |= self.numeric
        elif self.numeric:
            kinds.add("text")
        if kinds & {"double", "huge"}:
            kinds.discard("bigint")
        return types + [_SCALARS[name] for name in _SCALARS if name in kinds]

    def struct(self) -> t.StructType:
        """Return an object's fields as a schema for ``evolution.merge``; several types make several columns."""
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
    """Observes payloads of one type for fields that need a new column or type.

    The shapes of several observers can be merged; ``evolution.merge`` takes their ``struct()``. An observer decodes
    with the columns that it knows, and looks only at values that do not fit, which extend the columns. So uniform
    payloads cost no more than decoding.

    Args:
        cls_type: the payload type.
        have: the schema of its table, or one from a registry's schema; None if there is neither.

    Attributes:
        seen: the shape of values that did not fit.
    """

    def __init__(self, cls_type: str, have: t.StructType | None) -> None:
        self.seen = PayloadShape()
        self._cls_type, self._have = cls_type, have
        self._columns = Columns(merge(have, t.StructType()).schema, cls_type)
        self._size = 0

    def observe(self, texts: Sequence[bytes]) -> None:
        """Observe payloads as JSON texts."""
        for start in range(0, len(texts), _TOGETHER):
            known = self._size
            for rest in self._columns.values_without_column(texts[start : start + _TOGETHER]):
                if self._size <= _MOST_SEEN:
                    self._size += self.seen.observe(rest)
            if self._size > known:
                self._columns = Columns(merge(self._have, self.seen.struct()).schema, self._cls_type)


def from_registry(cls_type: str) -> t.StructType | None:
    """Return the fields that a registry's schema guarantees for a payload type, or None if it has no schema.

    See ``reading.registry_types.payload_type`` for errors.
    """
    schema = find_schema(cls_type)
    kind = None if schema is None else payload_type(cls_type)
    if kind is None or schema is None:
        return None
    sure = _sure(kind, schema[1], schema[1])
    fields = [] if not isinstance(sure, t.StructType) else [field for field in sure if field.name != "cls_type"]
    return t.StructType([t.StructField(field.name, field.dataType, True, {"field": field.name}) for field in fields])


def _sure(kind: t.DataType, schema: Any, root: Any) -> t.DataType | None:
    """Return a type without the parts that the schema does not guarantee."""
    schema = _plain(schema, root)
    if isinstance(kind, t.StructType):
        properties = schema.get("properties", {})
        inner = [(field, _sure(field.dataType, properties.get(field.name), root)) for field in kind]
        kept = [t.StructField(field.name, data_type) for field, data_type in inner if data_type is not None]
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
    """Resolve a ``$ref``, or a choice between null and one other schema; ``spark_type`` has checked it."""
    for _ in range(DEEPEST):  # a reference to itself stands for nothing
        if not isinstance(schema, dict):
            break
        parts = [part for part in (schema.get("anyOf") or schema.get("oneOf") or []) if part != {"type": "null"}]
        if "$ref" in schema:
            schema = referred(root, schema["$ref"], "a JSON Schema")
        elif len(parts) == 1:
            schema = parts[0]
        else:
            return schema
    return {}


_MOST_TYPES = 1000  # types that one worker observes, the first ones; tables of others keep fields as JSON
_MOST_COUNTED = 20_000  # types that one worker counts


class Shapes:
    """Observes the payloads of each type.

    Args:
        schemas: the tables' columns, by name, as Spark's JSON.

    Attributes:
        unseen: the number of events of further types.
    """

    def __init__(self, schemas: Mapping[str, str]) -> None:
        self._schemas = schemas
        self._watchers: dict[str, ShapeObserver] = {}
        self._rows: Counter[str] = Counter()
        self.unseen = 0

    def observe(self, events: pa.Table) -> None:
        """Observe events with ``cls_type`` and ``payload_json``."""
        types = events.column("cls_type")
        counted = {entry["values"]: entry["counts"] for entry in pc.value_counts(types).to_pylist()}
        for name, rows in counted.items():
            if name is None:
                continue
            if name not in self._rows and len(self._rows) >= _MOST_COUNTED:
                self.unseen += rows
                continue
            self._rows[name] += rows
            if name in self._watchers or len(self._watchers) < _MOST_TYPES:
                self._watch(name, events.column("payload_json").filter(pc.equal(types, name)))

    def _watch(self, name: str, texts: pa.ChunkedArray) -> None:
        if name not in self._watchers:
            known = self._schemas.get(table_name(name))
            schema = read_columns(known) if known else first_schema(name)
            self._watchers[name] = ShapeObserver(name, schema)
        self._watchers[name].observe(texts.cast(pa.binary()).to_pylist())

    def seen(self) -> list[tuple[str, int, bytes]]:
        """Return the number of events and the ``shapes.PayloadShape``, as JSON, of each type."""
        watchers = ((name, self._watchers.get(name)) for name in self._rows)
        return [
            (name, self._rows[name], msgspec.json.encode(PayloadShape() if watcher is None else watcher.seen))
            for name, watcher in watchers
        ]


@lru_cache(maxsize=1)
def _types_of_balog() -> frozenset[str]:
    with open_registry() as registry:
        return frozenset(registry.types())


def first_schema(cls_type: str) -> t.StructType | None:
    """Return the first columns of a payload type's table, or None if balog has no schema of the type."""
    if cls_type not in _types_of_balog():  # asking the registry about each of many types takes long
        return None
    registered = from_registry(cls_type)
    return None if registered is None else merge(None, registered).schema
