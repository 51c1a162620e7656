"""The report over an archive: a pass of Spark over the files, and four tables out of the rollup that it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from pyspark import StorageLevel

from balog.analytics.reading.files import find
from balog.analytics.rollups.rollup import channels, metrics, quarantine, runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "BadLines",
    "Channel",
    "Metric",
    "Report",
    "Run",
    "empty_report",
    "encode",
    "make_report",
    "read_rollup",
    "tables",
]


class Channel(Struct, kw_only=True):
    """Events of one channel and level; ``errors`` are those of level ERROR and CRITICAL."""

    channel: str
    level: str | None
    events: int
    errors: int


class Metric(Struct, kw_only=True):
    """One metric over all events; percentiles are null for counters. Timers are in seconds."""

    metric: str
    type: str | None
    count: int
    sum: float
    p50: float | None
    p95: float | None
    p99: float | None


class Run(Struct, kw_only=True):
    """One run; ``duration`` is in seconds, ``records`` null and ``outcome`` unknown when it left no report."""

    run_id: str
    applications: list[str]
    started: datetime
    duration: float
    outcome: str
    records: int | None
    events: int
    errors: int


class BadLines(Struct, kw_only=True):
    """Lines that are not events, by what is wrong with them; the first begins at byte ``offset`` of ``file``."""

    reason: str
    lines: int
    file: str
    offset: int


class Report(Struct, kw_only=True):
    """All numbers of the report; ``files`` is how many files were read."""

    made: datetime
    paths: list[str]
    files: int
    events: int
    errors: int
    quarantined: int
    channels: list[Channel]
    metrics: list[Metric]
    runs: list[Run]
    quarantine: list[BadLines]


def read_rollup(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Give the rollup of the events below these paths (see ``balog.analytics.rollups.rollup``)."""
    return spark.read.format("balog").option("rollup", True).load(list(paths))


def tables(rollup: DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Give the rows of ``channels``, ``metrics``, ``runs`` and ``quarantine``; the files are read once for all."""
    kept = rollup.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        few = kept.coalesce(1)  # a rollup is small: one task without a shuffle is done before several are shared out
        frames = {"channels": channels(few), "metrics": metrics(few), "runs": runs(few), "quarantine": quarantine(few)}
        kept.count()
        with ThreadPoolExecutor(len(frames)) as threads:
            found = threads.map(lambda frame: [row.asDict(recursive=True) for row in frame.collect()], frames.values())
            return dict(zip(frames, found))
    finally:
        kept.unpersist(blocking=True)  # else a stop right behind it prints traces


def make_report(spark: SparkSession, paths: Sequence[str]) -> Report:
    """Read everything below these paths and count it.

    Raises:
        ConfigError: a path that does not exist.
    """
    files = find(paths)
    rows = tables(read_rollup(spark, paths))
    for row in rows["runs"]:
        row["started"] = row["started"].astimezone(timezone.utc)
    return _summed(paths, len(files), rows)


def empty_report(paths: Sequence[str]) -> Report:
    """Give the report of paths that hold no file; it takes no Spark."""
    return _summed(paths, 0, {name: [] for name in ("channels", "metrics", "runs", "quarantine")})


def _summed(paths: Sequence[str], files: int, rows: dict[str, list[dict[str, Any]]]) -> Report:
    totals = {
        "events": sum(row["events"] for row in rows["channels"]),
        "errors": sum(row["errors"] for row in rows["channels"]),
        "quarantined": sum(row["lines"] for row in rows["quarantine"]),
    }
    made = datetime.now(timezone.utc)
    return msgspec.convert({"made": made, "paths": list(paths), "files": files, **totals, **rows}, Report)


def encode(report: Report) -> str:
    """Write a report as one JSON document, laid out for people."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
