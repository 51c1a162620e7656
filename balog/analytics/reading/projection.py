"""Turns the schema that a reader asks for into what DuckDB parses, and how the result becomes columns.

Spark does not tell Python sources which columns a query uses. So the schema of the reader is the projection, and only
its columns are parsed. It may have the columns of ``schemas.DEFAULT``, in any order, and:

- ``payload`` as ``string`` (its JSON text) or as ``struct<…>``. An absent value, or one of another type, is null.
  Numeric strings become numbers, other values in a string column their JSON text, and fractions are rounded for
  integers.
- ``payload_json string``, the JSON text in addition to another form of the payload.
- ``context`` as ``struct<name string, …>``: only these values, which is much faster than the map.
- ``context_json string``, the JSON text of the context, whose values may have any type.

Timestamps are truncated to microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import pyarrow as pa
from pyspark.sql import types as t

from balog.analytics.closed_duckdb import quoted, text
from balog.analytics.reading.schemas import DEFAULT, arrow_schema
from balog.errors import ConfigError

_SCALARS = {
    t.StringType: "VARCHAR",
    t.BooleanType: "BOOLEAN",
    t.ByteType: "TINYINT",
    t.ShortType: "SMALLINT",
    t.IntegerType: "INTEGER",
    t.LongType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.TimestampType: "TIMESTAMPTZ",
    t.TimestampNTZType: "TIMESTAMP",
}
_HEADER = {
    "id": ("VARCHAR", "header.id"),
    "channel": ("VARCHAR", "header.channel"),
    "timestamp": ("TIMESTAMPTZ", 'header."timestamp"'),
    "level": ("VARCHAR", "header.level"),
    "composition": ("BOOLEAN", "coalesce(header.composition, false)"),
}


class Condition(NamedTuple):
    """A condition on a column: SQL that follows the column's expression."""

    column: str
    text: str


def is_of_type(cls_type: str) -> Condition:
    """Return the condition that holds for events of one payload type."""
    return Condition("cls_type", f"= {text(cls_type)}")


@dataclass(frozen=True)
class Projection:
    """What DuckDB parses, and the columns that result.

    Attributes:
        columns: DuckDB's ``columns`` for ``read_json``, as SQL text.
        select: expressions over those columns, with the names of ``arrow``. A variant is its JSON text here.
        arrow: the Arrow schema of the batches for Spark.
        variants: the columns that have to be encoded as variants.
        texts: the columns with the payload's text, and variants.
        rest: the SQL after FROM: the conditions on rows.
        only_events: omit the rows of quarantine.
    """

    columns: str
    select: str
    arrow: pa.Schema
    variants: tuple[str, ...]
    texts: tuple[str, ...] = ()
    rest: str = ""
    only_events: bool = False


def project(schema: t.StructType, where: Sequence[Condition] = ()) -> Projection:
    """Turn the schema of a reader into a projection.

    Args:
        schema: the columns to return.
        where: conditions on the schema's columns and ``cls_type``; with conditions, rows of quarantine are omitted.

    Raises:
        ConfigError: the source does not have a column, or not in this type.
    """
    want = {field.name: field.dataType for field in schema}
    if len(want) != len(schema):
        raise ConfigError("each column can be selected once", "the schema for format('balog')")
    header: dict[str, str] = {}
    select: dict[str, str] = {}
    # A condition may use a column that is not returned.
    payload = _Payload({"cls_type": t.StringType(), **want} if where else want)
    for name, kind in want.items():
        if name in _HEADER and kind == _DEFAULTS[name]:
            header[name], select[name] = _HEADER[name]
        elif name == "schema" and kind == t.StringType():
            select[name] = '"schema"'
        elif name == "context_json" and kind == t.StringType():
            header["context"], select[name] = "JSON", "CAST(header.context AS VARCHAR)"
        elif name == "context" and kind == _DEFAULTS[name] and "context_json" in want:
            select[name] = "coalesce(TRY_CAST(header.context AS MAP(VARCHAR, VARCHAR)), MAP {})"
        elif name == "context" and kind == _DEFAULTS[name]:
            header[name], select[name] = "MAP(VARCHAR, VARCHAR)", "coalesce(header.context, MAP {})"
        elif name == "context" and _is_struct_of_strings(kind) and "context_json" not in want:
            header[name] = _struct(dict.fromkeys(kind.fieldNames(), "VARCHAR"))
            select[name] = "struct_pack({})".format(
                ", ".join(f"{quoted(field)} := header.context.{quoted(field)}" for field in kind.fieldNames())
            )
        elif name == "quarantine" and kind == _DEFAULTS[name]:
            select[name] = "NULL"
        elif name in ("payload", "payload_json", "cls_type") and payload.can(name, kind):
            select[name] = payload.select(name, kind)
        else:
            all_columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in DEFAULT)
            raise ConfigError(
                f"no column {name} of type {kind.simpleString()}; there are {all_columns}; payload may be "
                "a string or a struct of plain types, context a struct of strings",
                "the schema for format('balog')",
            )
    # Every event has `schema`, so a row without it is a line that DuckDB could not read.
    columns = {"schema": "VARCHAR"}
    if header:
        columns["header"] = _struct(header)
    if payload.column:
        columns["payload"] = payload.column
    known = {name: expression for name, expression in select.items() if name in _FILTERED}
    if where and payload.column:
        known.setdefault("cls_type", payload.select("cls_type", t.StringType()))
    conditions = " AND ".join(f"({known[column]} {condition})" for column, condition in where)
    return Projection(
        columns="{" + ", ".join(f"{text(name)}: {text(kind)}" for name, kind in columns.items()) + "}",
        select=", ".join(f"{expression} AS {quoted(name)}" for name, expression in select.items()) or "1",
        arrow=arrow_schema(schema),
        variants=tuple(name for name, kind in want.items() if isinstance(kind, t.VariantType)),
        texts=tuple(name for name in select if select[name] == _TEXT),
        rest=f"WHERE {conditions}" if where else "",
        only_events=bool(where),
    )


_TEXT = "CAST(payload AS VARCHAR)"
_FILTERED = ("timestamp", "channel", "level", "cls_type")


_DEFAULTS = {field.name: field.dataType for field in DEFAULT}


class _Payload:
    """How the payload is parsed: as typed fields, or as text (and fields from that) if a column needs the text."""

    def __init__(self, want: dict[str, t.DataType]) -> None:
        self.kind = want.get("payload")
        self.as_text = "payload_json" in want or isinstance(self.kind, (t.StringType, t.VariantType))
        self.column = ""
        self._is_type_json = False
        if self.as_text:
            self.column = "JSON"
        elif isinstance(self.kind, t.StructType):
            # Scalars are parsed as text and cast afterwards, so that a value of another type is null, not an error.
            kinds = {field.name: field.dataType for field in self.kind}
            fields = {name: "VARCHAR" if _is_scalar(kind) else _sql(kind) for name, kind in kinds.items()}
            if "cls_type" in want:
                self._is_type_json = fields.get("cls_type", "VARCHAR") == "VARCHAR"
                if self._is_type_json:
                    fields["cls_type"] = "JSON"
            self.column = _struct(fields)
        elif "cls_type" in want:
            self._is_type_json = True
            self.column = _struct({"cls_type": "JSON"})

    def can(self, name: str, kind: t.DataType) -> bool:
        if name == "payload" and isinstance(kind, t.StructType):
            return _is_plain(kind)
        return kind == t.StringType() or (name == "payload" and isinstance(kind, t.VariantType))

    def select(self, name: str, kind: t.DataType) -> str:
        if name == "cls_type":
            if self._is_type_json or self.as_text:  # a type's name is always a string
                found = "json_extract(payload, '$.cls_type')" if self.as_text else "payload.cls_type"
                return f"CASE WHEN json_type({found}) = 'VARCHAR' THEN {found} ->> '$' END"
            return "payload.cls_type"
        if isinstance(kind, t.StructType):
            source = "payload"
            if self.as_text:
                fields = {
                    field.name: "VARCHAR" if _is_scalar(field.dataType) else _spec(field.dataType) for field in kind
                }
                source = f"json_transform(payload, {text(json.dumps(fields))})"
            is_json = self._is_type_json and not self.as_text
            casts = [
                f"{quoted(field.name)} := {_cast(source, field, is_json=is_json and field.name == 'cls_type')}"
                for field in kind
            ]
            return f"struct_pack({', '.join(casts)})"
        return _TEXT


def _is_struct_of_strings(kind: t.DataType) -> TypeGuard[t.StructType]:
    return isinstance(kind, t.StructType) and _is_plain(kind) and {field.dataType for field in kind} == {t.StringType()}


def _is_plain(kind: t.DataType) -> bool:
    if isinstance(kind, t.StructType):
        names = [field.name.lower() for field in kind]
        return bool(names) and len(set(names)) == len(names) and all(_is_plain(field.dataType) for field in kind)
    if isinstance(kind, t.ArrayType):
        return _is_plain(kind.elementType)
    if isinstance(kind, t.MapType):
        return kind.keyType == t.StringType() and _is_plain(kind.valueType)
    return type(kind) in _SCALARS or isinstance(kind, t.DecimalType)


def _sql(kind: t.DataType) -> str:
    if isinstance(kind, t.StructType):
        return _struct({field.name: _sql(field.dataType) for field in kind})
    if isinstance(kind, t.ArrayType):
        return f"{_sql(kind.elementType)}[]"
    if isinstance(kind, t.MapType):
        return f"MAP(VARCHAR, {_sql(kind.valueType)})"
    if isinstance(kind, t.DecimalType):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _SCALARS[type(kind)]


def _is_scalar(kind: t.DataType) -> bool:
    return not isinstance(kind, (t.StructType, t.ArrayType, t.MapType))


def _cast(source: str, field: t.StructField, *, is_json: bool = False) -> str:
    value = f"({source}).{quoted(field.name)}"
    if is_json:
        value = f"({value} ->> '$')"
    if not _is_scalar(field.dataType) or field.dataType == t.StringType():
        return value
    return f"TRY_CAST({value} AS {_sql(field.dataType)})"


def _spec(kind: t.DataType) -> Any:
    """Return a type as ``json_transform`` needs it."""
    if isinstance(kind, t.StructType):
        return {field.name: _spec(field.dataType) for field in kind}
    if isinstance(kind, t.ArrayType):
        return [_spec(kind.elementType)]
    return _sql(kind)


def _struct(fields: dict[str, str]) -> str:
    return "STRUCT(" + ", ".join(f"{quoted(name)} {kind}" for name, kind in fields.items()) + ")"
