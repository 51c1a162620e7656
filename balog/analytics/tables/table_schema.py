"""Schema evolution of payload types' tables: pure functions on schemas, without reading or writing.

A table has the facility's columns (``FACILITY``), ``payload_recovered``, and a column for each field of the payload:

- A new field becomes a new column, also inside structs and arrays of structs.
- A column is widened in place if old files need not be rewritten, as the Parquet readers of Spark and DuckDB support
  it.
- Values of another type that the column can't hold are a conflict. They go to the column ``<name>_recovered``, which
  has their type.
- All other values (a third type, a list of mixed types, whole numbers of more than 38 digits, and what exceeds
  ``MOST_COLUMNS`` or ``DEEPEST``) are kept in ``payload_recovered``: the JSON text of an object with only those values,
  nested as in the payload.

A column has the name of its field, with these exceptions. Characters other than letters, digits and ``_`` become ``_``
(Hive, Delta and Avro reject some of them). A field with the name of a facility column gets the prefix ``payload_``. If
names differ only in case, which Spark and Hive ignore, the later one gets a number appended. In these cases the
column's metadata has the field's name as ``field``, so a schema must be stored as its JSON, not as DDL.
"""

from __future__ import annotations

from itertools import chain, count
from typing import NamedTuple

from pyspark.sql import types as t

from balog.analytics.reading.spark_types import struct

FACILITY = struct("id string, timestamp timestamp, channel string, level string, run_id string, application string")
"""The first columns of each payload type's table; ``run_id`` and ``application`` are from the context."""

RECOVERED = "payload_recovered"
"""The column for values without a column of their own: JSON text, or null."""

MOST_COLUMNS = 500
"""Columns of one table, including nested ones: query planning depends on their number, and slows down beyond it."""

DEEPEST = 64
"""Levels of objects and lists in a payload."""

_LONGEST_NAME = 120
_RESERVED = {*FACILITY.names, RECOVERED, "date"}
_WHOLE: tuple[type[t.DataType], ...] = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)


class SchemaChange(NamedTuple):
    """The result of ``merge``: a table's new schema, and a message for each change."""

    schema: t.StructType
    lines: list[str]


def merge(have: t.StructType | None, seen: t.StructType) -> SchemaChange:
    """Return the schema that holds a table's rows and new events.

    Args:
        have: the table's schema, or None for a new table.
        seen: the payload's fields, from ``shapes.PayloadShape.struct`` or ``shapes.from_registry``.
    """
    lines: list[str] = []
    if have is None:
        have = t.StructType([*FACILITY.fields, t.StructField(RECOVERED, t.StringType())])
    room = _Room(MOST_COLUMNS - sum(map(_leaves, (field.dataType for field in payload_fields(have)))))
    return SchemaChange(_struct(have, seen, "", room, lines), lines)


def field_of(column: t.StructField) -> str:
    """Return the field of the payload that a column holds."""
    return str(column.metadata.get("field", column.name))


def payload_fields(schema: t.StructType) -> list[t.StructField]:
    """Return the columns that hold fields of the payload."""
    return [column for column in schema if "field" in column.metadata or column.name not in _RESERVED]


def needs_widening(old: t.DataType, new: t.DataType) -> bool:
    """Return whether a column, also one inside a struct or a list, has another type in the new schema."""
    if isinstance(old, t.StructType) and isinstance(new, t.StructType):
        return any(
            needs_widening(old[column.name].dataType, column.dataType) for column in new if column.name in old.names
        )
    if isinstance(old, t.ArrayType) and isinstance(new, t.ArrayType):
        return needs_widening(old.elementType, new.elementType)
    return old != new


class _Room:
    """The number of columns that the table may still get."""

    def __init__(self, columns: int) -> None:
        self._columns = columns

    def take(self) -> bool:
        """Count a column; return False if there is no room for it."""
        self._columns -= 1
        return self._columns >= 0


def _new(kind: t.DataType, path: str, room: _Room, lines: list[str]) -> t.DataType | None:
    """Return the type of a new column, with unique names inside, limited to the columns that are left."""
    if isinstance(kind, t.StructType):
        inside: list[str] = []
        struct = _struct(t.StructType(), kind, f"{path}.", room, inside)
        lines += [line for line in inside if not line.startswith("new column")]
        return struct if struct.fields else None
    if isinstance(kind, t.ArrayType):
        inner = _new(kind.elementType, f"{path}[]", room, lines)
        return None if inner is None else t.ArrayType(inner)
    return kind if room.take() else None


def _struct(have: t.StructType, seen: t.StructType, path: str, room: _Room, lines: list[str]) -> t.StructType:
    columns = list(have.fields)
    taken = {column.name.lower() for column in columns} | ({"date"} if not path else set())
    columns_by_field: dict[str, list[int]] = {}
    for index, column in enumerate(columns):
        if path or "field" in column.metadata or column.name not in _RESERVED:
            columns_by_field.setdefault(field_of(column), []).append(index)
    for new in seen:
        field = field_of(new)
        places = columns_by_field.setdefault(field, [])
        for index in places:
            column = columns[index]
            joined = _joined(column.dataType, new.dataType, f"{path}{column.name}", room, lines)
            if joined is not None:
                columns[index] = t.StructField(column.name, joined, True, column.metadata)
                break
        else:
            where = f"{path}{columns[places[0]].name}" if places else f"{path}{field}"
            if len(places) >= 2:
                both = " and ".join(columns[index].dataType.simpleString() for index in places)
                lines.append(f"conflict: {where} is {both}, now also {_shown(new.dataType)}; kept in {RECOVERED}")
                continue
            name = _free(f"{columns[places[0]].name}_recovered" if places else _column_name(field, not path), taken)
            inside: list[str] = []
            kind = _new(new.dataType, f"{path}{name}", room, inside)
            if kind is None:
                lines.append(f"no room for {where}: {MOST_COLUMNS} columns are the most; kept in {RECOVERED}")
                continue
            metadata = {} if name == field else {"field": field}
            if places:
                had = _shown(columns[places[0]].dataType)
                lines.append(f"conflict: {where} is {had}, now also {_shown(kind)}; the latter goes to {path}{name}")
            else:
                renamed = "" if name == field else f" (for the field {field!r})"
                lines.append(f"new column {path}{name} {_shown(kind)}{renamed}")
            lines += inside
            places.append(len(columns))
            columns.append(t.StructField(name, kind, True, metadata))
    return t.StructType(columns)


def _joined(have: t.DataType, seen: t.DataType, path: str, room: _Room, lines: list[str]) -> t.DataType | None:
    """Return a type that holds both, or None."""
    if isinstance(have, t.StructType) and isinstance(seen, t.StructType):
        return _struct(have, seen, f"{path}.", room, lines)
    if isinstance(have, t.ArrayType) and isinstance(seen, t.ArrayType):
        inner = _joined(have.elementType, seen.elementType, f"{path}[]", room, lines)
        return None if inner is None else t.ArrayType(inner)
    if have == seen or _holds(have, seen):
        return have
    if _wider(have, seen):
        lines.append(f"column {path} widens from {have.simpleString()} to {seen.simpleString()}")
        return seen
    return None


def _holds(have: t.DataType, seen: t.DataType) -> bool:
    """Return whether a column can hold another type; single values that do not fit are recovered."""
    if isinstance(seen, _WHOLE):
        return isinstance(have, t.DoubleType) or _wider(seen, have) or _is_huge(have)
    if isinstance(seen, (t.TimestampType, t.DateType)):
        return isinstance(have, t.StringType)
    return _wider(seen, have)


def _is_huge(kind: t.DataType) -> bool:
    return isinstance(kind, t.DecimalType) and kind.scale == 0 and kind.precision >= 19


def _wider(old: t.DataType, new: t.DataType) -> bool:
    """Return whether a column can be widened to a type without rewriting files.

    That holds for whole numbers, floats, and digits of decimals. It does not hold for a bigint to double (Spark's
    Parquet reader does not support it), nor for a number to decimal.
    """
    if isinstance(old, (t.IntegerType, t.ShortType, t.ByteType)) and isinstance(new, (t.IntegerType, t.LongType)):
        return _WHOLE.index(type(old)) < _WHOLE.index(type(new))
    if isinstance(old, t.DecimalType) and isinstance(new, t.DecimalType):
        return new.scale == old.scale and new.precision > old.precision
    return isinstance(old, t.FloatType) and isinstance(new, t.DoubleType)


def _leaves(kind: t.DataType) -> int:
    if isinstance(kind, t.StructType):
        return sum(_leaves(column.dataType) for column in kind)
    return _leaves(kind.elementType) if isinstance(kind, t.ArrayType) else 1


def _shown(kind: t.DataType) -> str:
    text = kind.simpleString()
    return text if len(text) <= 200 else f"{text[:200]}…"


def _column_name(field: str, top: bool) -> str:
    name = "".join(char if char.isalnum() or char == "_" else "_" for char in field)[:_LONGEST_NAME] or "_"
    return f"payload_{name}" if top and name.lower() in _RESERVED else name


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or the first unused one of ``name_2``, ``name_3`` …, and mark it as used."""
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    free = next(candidate for candidate in names if candidate.lower() not in taken)
    taken.add(free.lower())
    return free
