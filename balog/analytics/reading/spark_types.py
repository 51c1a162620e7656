"""The schemas of the data source as Spark types, Spark types as Arrow types, and times as literals.

Workers need them, so no session is needed.
"""

from __future__ import annotations

from datetime import datetime
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema

from balog.analytics.reading import schemas
from balog.analytics.reading.projection import Projection, project
from balog.common.errors import ConfigError


def plain(name: str) -> t.DataType:
    """Return the Spark type of a name in ``schemas.PLAIN``."""
    return from_arrow_type(schemas.PLAIN[name])


def spark_struct(kind: pa.StructType) -> t.StructType:
    """Return the Spark type of a struct of ``schemas``."""
    return from_arrow_schema(pa.schema(list(kind)))


def struct(columns: str) -> t.StructType:
    """Return the struct type of Spark's DDL, which Spark itself reads only with a session; see ``schemas.struct``."""
    return spark_struct(schemas.struct(columns))


QUARANTINE, DEFAULT, TEXT_EVENT = map(spark_struct, (schemas.QUARANTINE, schemas.DEFAULT, schemas.TEXT_EVENT))


# Spark 4.1 always uses UTC; later versions take the time zone as an argument.
_ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: t.StructType) -> pa.Schema:
    """Return the Arrow schema of a Spark schema."""
    return to_arrow_schema(schema, **_ZONE)


def arrow_type(kind: t.DataType) -> pa.DataType:
    """Return the Arrow type of a Spark type."""
    return arrow_schema(t.StructType([t.StructField("one", kind)])).field(0).type


def project_spark(schema: t.StructType, cls_type: str = "") -> Projection:
    """Turn the schema of a reader into a projection; see ``project``.

    Raises:
        ConfigError: the source does not have a column, or not in this type.
    """
    try:
        fields = arrow_schema(schema)
    except PySparkException:
        raise ConfigError(f"no columns of {schema.simpleString():.500}", "the schema for format('balog')") from None
    return project(fields, cls_type)


def literal(moment: datetime) -> Column:
    """Return a literal for a time with a zone.

    It is passed as text: Py4J would convert a time before 1582 with the Julian calendar, which is up to ten days off.
    """
    return f.lit(moment.isoformat()).cast("timestamp")
