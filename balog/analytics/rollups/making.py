"""Rollup rows out of files, which is quickest, or out of a frame of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.reading.schemas import QUARANTINE
from balog.analytics.rollups.schemas import ROLLUP
from balog.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["from_events", "from_files"]


def from_files(spark: SparkSession, paths: Sequence[str], **options: Any) -> DataFrame:
    """Give the rollup rows (``schemas.ROLLUP``) of the events at these paths; the workers count while they read.

    Args:
        spark: a session that knows the format ``balog``.
        paths: as ``spark.read.format("balog").load`` takes them.
        options: of the data source.
    """
    return spark.read.format("balog").options(**options).option("rollup", True).load(list(paths))


def from_events(events: DataFrame) -> DataFrame:
    """Give the rollup rows (``schemas.ROLLUP``) of a frame of events: filtered, joined, out of a table or a stream.

    Args:
        events: with ``channel``, ``timestamp``, ``level``, ``context`` (a map, or a struct with ``application`` and
            ``run_id``) and the payload: ``payload_json``, or ``payload`` as JSON text, a variant or a struct. ``id``
            and ``quarantine`` may be there.

    Raises:
        ConfigError: a column is missing or of another type.
    """
    missing = {"channel", "timestamp", "level", "context"} - set(events.columns)
    if not {"payload", "payload_json"} & set(events.columns):
        missing.add("payload_json")
    if missing:
        raise ConfigError(
            f"no column {', '.join(sorted(missing))}; read them with spark.read.format('balog')", "a frame of events"
        )
    bad = f.col("quarantine") if "quarantine" in events.columns else f.lit(None)
    named = events.select(
        (f.col("id") if "id" in events.columns else f.lit(None)).cast("string").alias("id"),
        "channel",
        "level",
        f.col("timestamp").alias("moment"),
        _context(events, "application"),
        _context(events, "run_id"),
        _payload(events).alias("payload_json"),
        bad.cast(QUARANTINE).alias("quarantine"),
    )
    return named.mapInArrow(_roll, ROLLUP)


def _context(events: DataFrame, name: str) -> Column:
    kind = events.schema["context"].dataType
    is_there = isinstance(kind, t.MapType) or (isinstance(kind, t.StructType) and name in kind.fieldNames())
    return (f.col("context")[name] if is_there else f.lit(None)).cast("string").alias(name)


def _payload(events: DataFrame) -> Column:
    if "payload_json" in events.columns:
        return f.col("payload_json")
    if isinstance(events.schema["payload"].dataType, t.StringType):
        return f.col("payload")
    return f.to_json("payload")


def _roll(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from balog.analytics.rollups.worker import roll_batches

    return roll_batches(batches)
