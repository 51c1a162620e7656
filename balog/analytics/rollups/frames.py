"""Rollup rows as five frames, and merged rows (one for each key)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.reading.spark_types import literal, spark_struct
from balog.analytics.rollups import schemas
from balog.analytics.rollups.schemas import Rollups
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
