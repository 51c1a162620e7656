"""The schemas of the data source as Spark types, their Arrow form, and times as literals.

Workers need them, so no session is needed.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType

PLAIN: dict[str, t.DataType] = {
    "string": t.StringType(),
    "bigint": t.LongType(),
    "int": t.IntegerType(),
    "double": t.DoubleType(),
    "boolean": t.BooleanType(),
    "timestamp": t.TimestampType(),
    "date": t.DateType(),
    "binary": t.BinaryType(),
    "variant": t.VariantType(),
    "map<string,string>": t.MapType(t.StringType(), t.StringType()),
}


def struct(columns: str, **nested: t.DataType) -> t.StructType:
    """Return the struct type of Spark's DDL, which Spark itself reads only with a session.

    Args:
        columns: ``NAME TYPE, NAME TYPE …``, of the types in ``PLAIN``.
        nested: further fields, of any type.
    """
    named = dict(column.split(" ") for column in columns.split(", "))
    kinds = {name: PLAIN[kind] for name, kind in named.items()} | nested
    return t.StructType([t.StructField(name, kind) for name, kind in kinds.items()])


QUARANTINE = struct("file string, offset bigint, reason string, raw string")
"""An invalid line: its file, its offset in bytes (decompressed), the reason, and at most its first 64 KiB."""

EVENT = "id string, channel string, timestamp timestamp, level string, schema string, composition boolean"
"""The facility layer without the context."""

DEFAULT = struct(f"{EVENT}, context map<string,string>, cls_type string, payload variant", quarantine=QUARANTINE)
"""All columns of an event: the schema of ``load`` by default."""

TEXT_EVENT = struct(f"{EVENT}, context map<string,string>, cls_type string, payload_json string", quarantine=QUARANTINE)
"""The same with the payload as its original text."""


def columns_of_statement(words: Collection[str] | None) -> t.StructType:
    """Return the columns of raw events that an SQL statement needs: those of ``TEXT_EVENT`` that it names.

    Args:
        words: the names in the statement, in lower case: with ``payload`` among them, the payload is also a variant.
            None for all columns of ``TEXT_EVENT``.
    """
    if words is None:
        return TEXT_EVENT
    # The number of rows does not depend on the columns, but there has to be one.
    fields = [field for field in TEXT_EVENT if field.name in words] or [TEXT_EVENT["id"]]
    return t.StructType(fields + [field for field in DEFAULT if field.name == "payload" and "payload" in words])


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
