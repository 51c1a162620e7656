"""Rollup rows as five frames, and merged rows: one for each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.rollups.aggregates import merge_quarantine
from balog.analytics.rollups.schemas import ERRORS, EVENTS, METRICS, RUNS
from balog.analytics.rollups.sketches import merged_sketch
from balog.errors import ConfigError


class Rollups(NamedTuple):
    """Five frames with the columns of ``schemas``. Each is mergeable: it may have any number of rows for a key.

    Attributes:
        events: ``schemas.EVENTS``.
        metrics: ``schemas.METRICS``.
        errors: ``schemas.ERRORS``.
        runs: ``schemas.RUNS``.
        quarantine: ``schemas.QUARANTINE``.
    """

    events: DataFrame
    metrics: DataFrame
    errors: DataFrame
    runs: DataFrame
    quarantine: DataFrame


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
    return Rollups(of("events", EVENTS), of("metric", METRICS), of("error", ERRORS), of("run", RUNS), bad)


def merge(rollups: Rollups) -> Rollups:
    """Merge rows to one for each key; merging in several steps gives the same result as in one.

    The keys are all columns that have no aggregate. Counts and sums are added, ``first`` and ``low`` are minima,
    ``last`` and ``high`` maxima, sketches are merged, ``example`` is the earliest and ``run`` the latest. The last
    digits of sums of doubles depend on the order, and sketches of many values differ within their error.
    """
    return Rollups(
        _merged(rollups.events, EVENTS),
        _merged(rollups.metrics, METRICS),
        _merged(rollups.errors, ERRORS),
        _merged(rollups.runs, RUNS),
        merge_quarantine(rollups.quarantine),
    )


_MERGES: dict[str, Callable[[str], Column]] = {
    **dict.fromkeys(("events", "errors", "count", "sum"), f.sum),
    **dict.fromkeys(("first", "low", "example"), f.min),
    **dict.fromkeys(("last", "high", "run"), f.max),
    "sketch": merged_sketch,
}


def _merged(frame: DataFrame, columns: t.StructType) -> DataFrame:
    names = columns.fieldNames()
    keys = [name for name in names if name not in _MERGES]
    values = [_MERGES[name](name).alias(name) for name in names if name in _MERGES]
    return frame.groupBy(*keys).agg(*values).select(*names)
