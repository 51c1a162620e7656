"""The schemas of the data source as Arrow types; ``spark_types`` has them as Spark types."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
"""A variant as Spark exchanges it."""

PLAIN: dict[str, pa.DataType] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "binary": pa.binary(),
    "variant": VARIANT,
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
"""Arrow types by their names in Spark."""

_NAMES = {kind: name for name, kind in PLAIN.items()} | {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.float32(): "float",
    pa.timestamp("us"): "timestamp_ntz",
}


def struct(columns: str, **nested: pa.DataType) -> pa.StructType:
    """Return the type of some columns.

    Args:
        columns: ``NAME TYPE, NAME TYPE …``, of the types in ``PLAIN``.
        nested: further fields, of any type.
    """
    named = dict(column.split(" ") for column in columns.split(", "))
    return pa.struct({name: PLAIN[kind] for name, kind in named.items()} | nested)


def names(fields: Iterable[pa.Field]) -> list[str]:
    """Return the names of a type's or schema's columns."""
    return [field.name for field in fields]


def list_of(kind: pa.DataType) -> pa.ListType:
    """Return the type of lists, whose field has Spark's name."""
    return pa.list_(pa.field("element", kind))


def type_name(kind: pa.DataType) -> str:
    """Return the name of a type in Spark; of others than Spark's, Arrow's name."""
    if name := _NAMES.get(kind):
        return name
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    return f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else str(kind)


QUARANTINE = struct("file string, offset bigint, reason string, raw string")
"""An invalid line: its file, its offset in bytes (decompressed), the reason, and at most its first 64 KiB."""

EVENT = "id string, channel string, timestamp timestamp, level string, schema string, composition boolean"
"""The facility layer without the context."""

DEFAULT = struct(f"{EVENT}, context map<string,string>, cls_type string, payload variant", quarantine=QUARANTINE)
"""All columns of an event: the schema of ``load`` by default."""

TEXT_EVENT = struct(f"{EVENT}, context map<string,string>, cls_type string, payload_json string", quarantine=QUARANTINE)
"""The same with the payload as its original text."""


def columns_of_statement(words: Collection[str] | None) -> pa.StructType:
    """Return the columns of raw events that an SQL statement needs: those of ``TEXT_EVENT`` that it names.

    Args:
        words: the names in the statement, in lower case: with ``payload`` among them, the payload is also a variant.
            None for all columns of ``TEXT_EVENT``.
    """
    if words is None:
        return TEXT_EVENT
    # The number of rows does not depend on the columns, but there has to be one.
    fields = [field for field in TEXT_EVENT if field.name in words] or [TEXT_EVENT.field("id")]
    return pa.struct(fields + [field for field in DEFAULT if field.name == "payload" and "payload" in words])
