"""The schemas of the data source as Spark types, their Arrow form, and times as literals.

Workers need them, so no session is needed.
"""

from __future__ import annotations

from datetime import datetime
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType

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


# Spark 4.1 always uses UTC; later versions take the time zone as an argument.
_ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a Spark schema."""
    return to_arrow_schema(schema, **_ZONE)


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a Spark type."""
    from pyspark.sql.types import StructField, StructType

    return arrow_schema(StructType([StructField("one", kind)])).field(0).type


def literal(moment: datetime) -> Column:
    """Return a literal for a time with a zone.

    It is passed as text: Py4J would convert a time before 1582 with the Julian calendar, which is up to ten days off.
    """
    return f.lit(moment.isoformat()).cast("timestamp")
