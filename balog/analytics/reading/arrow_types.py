"""Spark's types as Arrow types, with timestamps in UTC, for every version of Spark."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType

# Spark 4.1 always uses UTC; later versions take the time zone as an argument.
_ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a Spark schema."""
    return to_arrow_schema(schema, **_ZONE)


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a Spark type."""
    from pyspark.sql.types import StructField, StructType

    return arrow_schema(StructType([StructField("one", kind)])).field(0).type
