"""The schemas of the data source, as Spark types: made without a session, as workers must."""

from __future__ import annotations

from pyspark.sql import types as t

__all__ = ["DEFAULT", "QUARANTINE"]

_STRING, _LONG, _TIMESTAMP = t.StringType(), t.LongType(), t.TimestampType()


def _struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


QUARANTINE = _struct(file=_STRING, offset=_LONG, reason=_STRING, raw=_STRING)
"""A bad line: its file, where it begins in bytes (decompressed), why it is bad, and at most its first 64 KiB."""

DEFAULT = _struct(
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
"""All columns of an event: what ``load`` gives when no schema is asked for."""
