"""The columns of rollups as Spark types. Workers need them, so no session is needed."""

from __future__ import annotations

from pyspark.sql import types as t

from balog.analytics.reading.spark_types import spark_struct
from balog.analytics.rollups import schemas

FRAMES: dict[str, t.StructType] = {name: spark_struct(kind) for name, kind in schemas.FRAMES.items()}
"""``schemas.FRAMES``."""

ROLLUP = spark_struct(schemas.ROLLUP)
"""``schemas.ROLLUP``."""
