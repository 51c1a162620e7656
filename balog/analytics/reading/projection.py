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
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from balog.analytics.closed_duckdb import quoted, text
from balog.analytics.reading.schemas import DEFAULT, VARIANT, names, type_name
from balog.common.errors import ConfigError

_SCALARS = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
    pa.timestamp("us"): "TIMESTAMP",
}
_TAGS = {b"variant", b"geometry", b"geography"}
"""Keys by which Spark marks a field of a struct that is a value of another type."""

_HEADER = {
    "id": ("VARCHAR", "header.id"),
    "channel": ("VARCHAR", "header.channel"),
    "timestamp": ("TIMESTAMPTZ", 'header."timestamp"'),
    "level": ("VARCHAR", "header.level"),
    "composition": ("BOOLEAN", "coalesce(header.composition, false)"),
}


@dataclass(frozen=True)
class Projection:
    """What DuckDB parses, and the columns that result.

    Attributes:
        columns: DuckDB's ``columns`` for ``read_json``, as SQL text.
        select: expressions over those columns, with the names of ``arrow``. A variant or map is its JSON text here.
        arrow: the Arrow schema of the batches for Spark.
        texts: the columns with the payload's text, and variants.
        rest: the SQL after FROM: the condition on rows; with one, rows of quarantine are omitted.
    """

    columns: str
    select: str
    arrow: pa.Schema
    texts: tuple[str, ...] = ()
    rest: str = ""


def project(fields: Iterable[pa.Field], cls_type: str = "") -> Projection:
    """Turn the schema of a reader into a projection.

    Args:
        fields: the columns to return, of the types of ``schemas``.
        cls_type: only events of this payload type, without rows of quarantine; "" for all.

    Raises:
        ConfigError: the source does not have a column, or not in this type.
    """
    schema = pa.schema(list(fields))
    requested = {field.name: field.type for field in schema}
    if len(requested) != len(schema):
        raise ConfigError("each column can be selected once", "the schema for format('balog')")
    header: dict[str, str] = {}
    select: dict[str, str] = {}
    payload = _Payload({"cls_type": pa.string(), **requested} if cls_type else requested)
    for name, kind in requested.items():
        if name in _HEADER and kind == _DEFAULTS[name]:
            header[name], select[name] = _HEADER[name]
        elif name == "schema" and kind == pa.string():
            select[name] = '"schema"'
        elif name == "context_json" and kind == pa.string():
            header["context"], select[name] = "JSON", "CAST(header.context AS VARCHAR)"
        elif name == "context" and kind == _DEFAULTS[name]:
            header[name], select[name] = "JSON", "coalesce(CAST(header.context AS VARCHAR), '{}')"
        elif name == "context" and _is_struct_of_strings(kind) and "context_json" not in requested:
            header[name] = _struct(dict.fromkeys(names(kind), "VARCHAR"))
            select[name] = "struct_pack({})".format(
                ", ".join(f"{quoted(field)} := header.context.{quoted(field)}" for field in names(kind))
            )
        elif name == "quarantine" and kind == _DEFAULTS[name]:
            select[name] = "NULL"
        elif name in ("payload", "payload_json", "cls_type") and payload.can(name, kind):
            select[name] = payload.select(name, kind)
        else:
            all_columns = ", ".join(f"{field.name} {type_name(field.type)}" for field in DEFAULT)
            raise ConfigError(
                f"no column {name} of type {type_name(kind)}; there are {all_columns}; payload may be "
                "a string or a struct of plain types, context a struct of strings",
                "the schema for format('balog')",
            )
    # Every event has `schema`, so a row without it is a line that DuckDB could not read.
    columns = {"schema": "VARCHAR"}
    if header:
        columns["header"] = _struct(header)
    if payload.column:
        columns["payload"] = payload.column
    return Projection(
        columns="{" + ", ".join(f"{text(name)}: {text(kind)}" for name, kind in columns.items()) + "}",
        select=", ".join(f"{expression} AS {quoted(name)}" for name, expression in select.items()) or "1",
        arrow=schema,
        texts=tuple(name for name in select if select[name] == _TEXT),
        rest=f"WHERE ({payload.select('cls_type', pa.string())}) = {text(cls_type)}" if cls_type else "",
    )


_TEXT = "CAST(payload AS VARCHAR)"


_DEFAULTS = {field.name: field.type for field in DEFAULT}


class _Payload:
    """How the payload is parsed: as typed fields, or as text (and fields from that) if a column needs the text."""

    def __init__(self, requested: dict[str, pa.DataType]) -> None:
        self.kind = requested.get("payload")
        self.as_text = "payload_json" in requested or self.kind in (pa.string(), VARIANT)
        self.column = ""
        self._is_type_json = False
        if self.as_text:
            self.column = "JSON"
        elif self.kind is not None and pa.types.is_struct(self.kind):
            # Scalars are parsed as text and cast afterwards, so that a value of another type is null, not an error.
            kinds = {field.name: field.type for field in self.kind}
            fields = {name: "VARCHAR" if _is_scalar(kind) else sql_type(kind) for name, kind in kinds.items()}
            if "cls_type" in requested:
                self._is_type_json = fields.get("cls_type", "VARCHAR") == "VARCHAR"
                if self._is_type_json:
                    fields["cls_type"] = "JSON"
            self.column = _struct(fields)
        elif "cls_type" in requested:
            self._is_type_json = True
            self.column = _struct({"cls_type": "JSON"})

    def can(self, name: str, kind: pa.DataType) -> bool:
        if name == "payload" and pa.types.is_struct(kind) and kind != VARIANT:
            return _is_plain(kind)
        return kind == pa.string() or (name == "payload" and kind == VARIANT)

    def select(self, name: str, kind: pa.DataType) -> str:
        if name == "cls_type":
            if self._is_type_json or self.as_text:  # a type's name is always a string
                expression = "json_extract(payload, '$.cls_type')" if self.as_text else "payload.cls_type"
                return f"CASE WHEN json_type({expression}) = 'VARCHAR' THEN {expression} ->> '$' END"
            return "payload.cls_type"
        if pa.types.is_struct(kind) and kind != VARIANT:
            source = "payload"
            if self.as_text:
                fields = {field.name: "VARCHAR" if _is_scalar(field.type) else _spec(field.type) for field in kind}
                source = f"json_transform(payload, {text(json.dumps(fields))})"
            is_json = self._is_type_json and not self.as_text
            casts = [
                f"{quoted(field.name)} := {_cast(source, field, is_json=is_json and field.name == 'cls_type')}"
                for field in kind
            ]
            return f"struct_pack({', '.join(casts)})"
        return _TEXT


def _is_struct_of_strings(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and _is_plain(kind) and {field.type for field in kind} == {pa.string()}


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        keys = [name.lower() for name in names(kind)]
        if any(_TAGS & (field.metadata or {}).keys() for field in kind):
            return False
        return bool(keys) and len(set(keys)) == len(keys) and all(_is_plain(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _is_plain(kind.value_type)
    if pa.types.is_map(kind):
        return bool(kind.key_type == pa.string()) and _is_plain(kind.item_type)
    return kind in _SCALARS or pa.types.is_decimal128(kind)


def sql_type(kind: pa.DataType) -> str:
    """Return a type in DuckDB's SQL."""
    if pa.types.is_struct(kind):
        return _struct({field.name: sql_type(field.type) for field in kind})
    if pa.types.is_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP(VARCHAR, {sql_type(kind.item_type)})"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _SCALARS.get(kind, "VARCHAR")  # a type that is not plain is rejected later


def _is_scalar(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _cast(source: str, field: pa.Field, *, is_json: bool = False) -> str:
    value = f"({source}).{quoted(field.name)}"
    if is_json:
        value = f"({value} ->> '$')"
    if not _is_scalar(field.type) or field.type == pa.string():
        return value
    return f"TRY_CAST({value} AS {sql_type(field.type)})"


def _spec(kind: pa.DataType) -> Any:
    """Return a type as ``json_transform`` needs it."""
    if pa.types.is_struct(kind):
        return {field.name: _spec(field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_spec(kind.value_type)]
    return sql_type(kind)


def _struct(fields: dict[str, str]) -> str:
    return "STRUCT(" + ", ".join(f"{quoted(name)} {kind}" for name, kind in fields.items()) + ")"
