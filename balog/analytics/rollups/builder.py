"""Builds rollup rows from files, which is fastest, or from a frame of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.window import Window

from balog.analytics.reading.spark_types import QUARANTINE
from balog.analytics.rollups.frames import ROLLUP
from balog.analytics.rollups.schemas import IDS
from balog.common.errors import ConfigError

_READ = (
    "id string, channel string, timestamp timestamp, level string, context struct<application string, run_id string>, "
    f"payload_json string, quarantine {QUARANTINE.simpleString()}"
)


def from_files(spark: SparkSession, paths: Sequence[str], **options: Any) -> DataFrame:
    """Return the rollup rows (``schemas.ROLLUP``) of the events at some paths, each id counted once.

    The workers aggregate while they read the files, immediately, and the rows are kept in Spark's cache. Only if there
    are duplicate ids, the returned frame reads the files again and drops duplicates as ``from_events`` does.

    Args:
        spark: a session with the format ``balog``.
        paths: as for ``spark.read.format("balog").load``.
        options: of the data source.
    """
    reader = spark.read.format("balog").options(**options)
    rows = reader.option("rollup", True).load(list(paths)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counted = rows.where(f.col("kind") == IDS).groupBy("count").applyInArrow(_count_copies, "copies bigint")
        has_copies = not counted.where("copies > 0").isEmpty()
    except BaseException:
        rows.unpersist()
        raise
    if not has_copies:
        return rows.where(f"kind IS NULL OR kind <> '{IDS}'")
    rows.unpersist()
    return from_events(spark.read.format("balog").options(**options).schema(_READ).load(list(paths)))


def _count_copies(rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    from balog.analytics.rollups.worker import count_copies

    return pa.table({"copies": pa.array([count_copies(rows)], pa.int64())})


def from_events(events: DataFrame, *, once: bool = True) -> DataFrame:
    """Return the rollup rows (``schemas.ROLLUP``) of a frame of events: filtered, joined, from a table or a stream.

    Of events with the same id, the earliest counts, as in ``balog load``; a row of the kind ``copies`` has the number
    of the others. In a stream all events count, because Spark can't rank there.

    Args:
        events: with ``channel``, ``timestamp``, ``level``, ``context`` (a map, or a struct with ``application`` and
            ``run_id``) and the payload: ``payload_json``, or ``payload`` as JSON text, a variant or a struct. ``id``
            and ``quarantine`` are optional.
        once: False if each id is known to occur once, as in the table ``events``, which saves a shuffle.

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
    if once and "id" in events.columns and not events.isStreaming:
        # Invalid lines have no id; with one key for all of them, they would all be in one task.
        keyed = named.withColumn("key", f.coalesce("id", f.expr("uuid()")))
        rank = f.row_number().over(Window.partitionBy("key").orderBy("moment"))
        named = keyed.withColumn("copy", rank).drop("key")
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
