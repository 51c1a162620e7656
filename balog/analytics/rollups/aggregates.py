"""Aggregates of rollups that several queries share."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from balog.analytics.reading.schemas import literal
from balog.analytics.rollups.fingerprints import ERROR_LEVELS


def hours_between(frame: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    """Return the rows of the hours that begin at or after ``since`` and before ``until``."""
    frame = frame if since is None else frame.where(f.col("hour") >= literal(since))
    return frame if until is None else frame.where(f.col("hour") < literal(until))


def error_events() -> Column:
    """Return the events of a row of ``schemas.EVENTS`` if its level is ERROR or CRITICAL, otherwise 0."""
    return f.when(f.col("level").isin(*ERROR_LEVELS), f.col("events")).otherwise(0).cast("bigint")


def merge_runs(runs: DataFrame) -> DataFrame:
    """Merge rows of ``schemas.RUNS`` to one for each ``run_id`` and ``application``; ``hour`` is the last one."""
    return runs.groupBy("run_id", "application").agg(
        f.min("first").alias("first"),
        f.max("last").alias("last"),
        f.sum("events").alias("events"),
        f.sum("errors").alias("errors"),
        f.max("run").alias("run"),
        f.max("hour").alias("hour"),
    )


def run_outcome() -> Column:
    """Return the aggregate for the outcome of a run over ``merge_runs``: failed if any application failed."""
    failed = f.max(f.when(f.col("run.outcome") == "failed", True)).isNotNull()
    return f.when(failed, "failed").when(f.max("run.outcome").isNotNull(), f.max("run.outcome")).otherwise("unknown")


def run_seconds() -> Column:
    """Return the aggregate for the time from a run's first to its last event, over ``merge_runs``."""
    return f.max("last").cast("double") - f.min("first").cast("double")


def merge_quarantine(frame: DataFrame) -> DataFrame:
    """Merge rows of ``schemas.QUARANTINE`` to one for each reason, with its first line."""
    first = f.min(f.struct("file", "offset")).alias("first")
    rows = frame.groupBy("reason").agg(f.sum("lines").alias("lines"), first)
    return rows.select("reason", "lines", "first.file", "first.offset")
