"""The schemas of the data source, as Spark types: made without a session, as workers must."""

from __future__ import annotations

from pyspark.sql import types as t

__all__ = ["DEFAULT", "EVENTS", "QUARANTINE", "ROLLUP", "RUN"]

_STRING, _LONG, _DOUBLE, _TIMESTAMP = t.StringType(), t.LongType(), t.DoubleType(), t.TimestampType()


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

RUN = _struct(at=_TIMESTAMP, outcome=_STRING, duration=_DOUBLE, exit_code=t.IntegerType(), records=_LONG)
"""A run's own report; ``duration`` is in seconds."""

ROLLUP = _struct(
    channel=_STRING,
    level=_STRING,
    application=_STRING,
    run_id=_STRING,
    type=_STRING,
    metric=_STRING,
    events=_LONG,
    first=_TIMESTAMP,
    last=_TIMESTAMP,
    measured=_LONG,
    total=_DOUBLE,
    values=t.ArrayType(_DOUBLE, containsNull=False),  # Spark sorts such numbers unboxed, several times faster
    run=RUN,
    quarantine=QUARANTINE,
)
"""Rows of a rollup; ``balog.analytics.rollups.rollup`` says what they mean."""

EVENTS = _struct(
    channel=_STRING,
    timestamp=_TIMESTAMP,
    level=_STRING,
    context=_struct(application=_STRING, run_id=_STRING),
    payload=_struct(
        cls_type=_STRING,
        type=_STRING,
        metric=_STRING,
        value=_DOUBLE,
        outcome=_STRING,
        duration=_DOUBLE,
        exit_code=t.IntegerType(),
        records=_LONG,
        values=t.ArrayType(_struct(name=_STRING, value=_DOUBLE)),
    ),
    quarantine=QUARANTINE,
)
"""The projection of events that a rollup needs."""
