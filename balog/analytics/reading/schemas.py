"""The schemas of the data source, as Spark types. Workers need them, so no session is needed."""

from __future__ import annotations

from pyspark.sql import types as t

_STRING, _LONG, _TIMESTAMP = t.StringType(), t.LongType(), t.TimestampType()


def struct(**fields: t.DataType) -> t.StructType:
    """Return a struct type with these fields."""
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


QUARANTINE = struct(file=_STRING, offset=_LONG, reason=_STRING, raw=_STRING)
"""An invalid line: its file, its offset in bytes (decompressed), the reason, and at most its first 64 KiB."""

DEFAULT = struct(
    id=_STRING,
    channel=_STRING,
    timestamp=_TIMESTAMP,
    level=_STRING,
    schema=_STRING,
    composition=t.BooleanType(),
    context=t.MapType(_STRING, _STRING),
    cls_type=_STRING,
    payload=t.VariantType(),
    quarantine=QUARANTINE,
)
"""All columns of an event: the schema of ``load`` by default."""
