"""Rollup rows of files, which is fastest, or of a frame of events; as five frames, and merged: one row for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.window import Window

from balog.analytics.reading.spark_types import QUARANTINE, literal, spark_struct
from balog.analytics.rollups import schemas
from balog.analytics.rollups.schemas import IDS, Rollups
from balog.analytics.sketches import K
from balog.common.errors import ConfigError

FRAMES: dict[str, t.StructType] = {name: spark_struct(kind) for name, kind in schemas.FRAMES.items()}
"""``schemas.FRAMES`` as Spark types. Workers need them, so no session is needed."""

ROLLUP = spark_struct(schemas.ROLLUP)
"""``schemas.ROLLUP``."""


def merged_sketch(column: str) -> Column:
    """Return the aggregate that merges sketches; null if all are null."""
    united = f.kll_merge_agg_double(column, K)
    return f.when(f.count(column) > 0, united)


_MERGES: dict[str, Callable[[str], Column]] = {
    **dict.fromkeys(("events", "errors", "lines", "count", "sum"), f.sum),
    **dict.fromkeys(("first", "low", "example"), f.min),
    **dict.fromkeys(("last", "high", "run"), f.max),
    "sketch": merged_sketch,
}


def merged(*names: str) -> list[Column]:
    """Return the aggregates that merge columns of rollups, by their names: sums, minima, maxima, merged sketches."""
    return [_MERGES[name](name).alias(name) for name in names]


def hours_between(frame: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    """Return the rows of the hours that begin at or after ``since`` and before ``until``; all rows without hours."""
    if "hour" not in frame.columns:
        return frame
    frame = frame if since is None else frame.where(f.col("hour") >= literal(since))
    return frame if until is None else frame.where(f.col("hour") < literal(until))


def merge_quarantine(frame: DataFrame) -> DataFrame:
    """Merge rows of ``schemas.QUARANTINE`` to one for each reason, with its first line."""
    first = f.min(f.struct("file", "offset")).alias("first")
    rows = frame.groupBy("reason").agg(*merged("lines"), first)
    return rows.select("reason", "lines", "first.file", "first.offset")


def split(rows: DataFrame) -> Rollups:
    """Separate rollup rows (``schemas.ROLLUP``) into five frames, without merging.

    Raises:
        ConfigError: a column is missing.
    """
    missing = {"kind", "sketch", "example", "run", "quarantine"} - set(rows.columns)
    if missing:
        raise ConfigError(f"no column {', '.join(sorted(missing))}; make them with from_events", "a frame of rollups")

    def of(kind: str, columns: t.StructType) -> DataFrame:
        return rows.where(f.col("kind") == kind).select(*columns.fieldNames())

    bad = rows.where("quarantine IS NOT NULL").select(
        "quarantine.reason", f.lit(1).cast("bigint").alias("lines"), "quarantine.file", "quarantine.offset"
    )
    kinds = {"events": "events", "metric": "metrics", "error": "errors", "run": "runs"}
    return Rollups(**{name: of(kind, FRAMES[name]) for kind, name in kinds.items()}, quarantine=bad)


def merge(rollups: Rollups) -> Rollups:
    """Merge rows to one for each key; merging in several steps gives the same result as in one.

    The keys are all columns that have no aggregate. Counts and sums are added, ``first`` and ``low`` are minima,
    ``last`` and ``high`` maxima, sketches are merged, ``example`` is the earliest and ``run`` the latest. The last
    digits of sums of doubles depend on the order, and sketches of many values differ within their error.
    """
    hourly = {name: merge_hours(name, frame) for name, frame in rollups._asdict().items() if name != "quarantine"}
    return Rollups(**hourly, quarantine=merge_quarantine(rollups.quarantine))


def merge_hours(name: str, frame: DataFrame) -> DataFrame:
    """Merge the rows of one frame of ``Rollups``, by its name."""
    names = FRAMES[name].fieldNames()
    keys = [name for name in names if name not in _MERGES]
    return frame.groupBy(*keys).agg(*merged(*(name for name in names if name in _MERGES))).select(*names)


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
        "timestamp",
        _context(events, "application"),
        _context(events, "run_id"),
        _payload(events).alias("payload_json"),
        bad.cast(QUARANTINE).alias("quarantine"),
    )
    if once and "id" in events.columns and not events.isStreaming:
        # Invalid lines have no id; with one key for all of them, they would all be in one task.
        keyed = named.withColumn("key", f.coalesce("id", f.expr("uuid()")))
        rank = f.row_number().over(Window.partitionBy("key").orderBy("timestamp"))
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
