"""The engine that a frame belongs to."""

from __future__ import annotations

from typing import Any

from balog.analytics.engine import QueryEngine


def engine_of(frame: Any) -> QueryEngine:
    """Return the engine that answers questions about a frame: Spark for a DataFrame of pyspark, otherwise its own."""
    if type(frame).__module__.startswith("pyspark."):
        from balog.analytics.spark_engine import SparkEngine

        return SparkEngine(frame.sparkSession)
    engine: QueryEngine = frame.engine
    return engine
