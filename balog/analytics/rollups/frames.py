"""Rollup rows as the five frames that are stored and asked, and those merged to one row for each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as f

from balog.analytics.rollups.schemas import ERRORS, EVENTS, METRICS, QUARANTINE, RUNS
from balog.analytics.rollups.sketches import merged_sketch
from balog.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql import types as t

__all__ = ["Rollups", "merge", "split"]


class Rollups(NamedTuple):
    """Five frames in the columns of ``schemas``, each mergeable: any number of rows for a key, in any order.

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
    """Give rollup rows (``schemas.ROLLUP``) as five frames; they are not merged yet.

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
    """Give each of the frames with one row for each key; merging again, or with more rows, gives what one merge would.

    Keys are all columns but the merged ones: counts and sums are added, ``first`` and ``low`` are the least, ``last``
    and ``high`` the greatest, sketches are united, an example is the earliest, a run's report the latest. Sums of
    doubles and sketches of many values depend on the order in the last digits, or within the sketch's error.
    """
    return Rollups(
        _merged(rollups.events, EVENTS),
        _merged(rollups.metrics, METRICS),
        _merged(rollups.errors, ERRORS),
        _merged(rollups.runs, RUNS),
        _merged_quarantine(rollups.quarantine),
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


def _merged_quarantine(frame: DataFrame) -> DataFrame:
    first = f.min(f.struct("file", "offset")).alias("place")
    rows = frame.groupBy("reason").agg(f.sum("lines").alias("lines"), first)
    return rows.select("reason", "lines", "place.file", "place.offset").select(*QUARANTINE.fieldNames())
