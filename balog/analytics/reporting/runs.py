"""The report's queries about runs."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from balog.analytics.reporting.model import MOST_ROWS
from balog.analytics.reporting.time_ranges import TimeRanges, read, spans_of, within
from balog.analytics.rollups.aggregates import merge_runs, run_outcome, run_seconds
from balog.analytics.rollups.frames import Rollups

_LONGEST = 1e8  # the longest plausible duration of a run in seconds, three years


def _duration() -> Column:
    """Return the duration in a run's report, or null if it is implausible: one event must not break the report."""
    return f.when(f.col("run.duration").between(0, _LONGEST), f.col("run.duration"))


def _runs(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    """Return a row for each run with events in the period or before; ``hour`` is the last hour with events."""
    ago = f.make_dt_interval(secs=_duration().cast("decimal(18,6)"))
    begun = f.coalesce(f.min(f.col("run.at") - ago), f.min("first"))
    return merge_runs(rollups.runs.where(read(ranges))).groupBy("run_id").agg(
        f.array_sort(f.slice(f.collect_set("application"), 1, 20)).alias("applications"),
        # its own clock, if that is clearly earlier than its first event
        f.when(begun < f.min("first") - f.expr("INTERVAL 1 SECOND"), begun).otherwise(f.min("first")).alias("started"),
        f.coalesce(f.max(_duration()), run_seconds()).alias("duration"),
        run_outcome().alias("outcome"),
        f.max("run.exit_code").alias("exit_code"), f.max("run.problem").alias("problem"),
        f.try_sum("run.records").alias("records"), f.try_sum("run.bytes").alias("bytes"),
        f.sum("events").alias("events"), f.coalesce(f.sum("errors"), f.lit(0)).alias("errors"),
        f.flatten(f.collect_list("run.streams")).alias("streams"),
        f.max("hour").alias("hour"),
    )  # fmt: skip


def latest_runs(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    """Return the runs that ended in the period, latest first."""
    rows = _runs(rollups, ranges).where(within(ranges.period)).drop("hour")
    streams = f.transform(
        f.slice("streams", 1, 100),
        lambda one: f.struct(
            one["stream"].alias("stream"), one["records"].alias("records"), one["bytes"].alias("bytes")
        ),
    )
    return rows.withColumn("streams", streams).orderBy(f.desc("started"), "run_id").limit(MOST_ROWS)


def outcomes(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    """Return runs by application and outcome, and over all of them (``names`` null) the p95 of their durations."""
    rows = _runs(rollups, ranges).withColumnRenamed("duration", "took")
    spans = spans_of(ranges)
    for suffix, inside in spans.items():
        rows = rows.withColumn(f"in{suffix}", f.when(inside, 1)).withColumn(
            f"duration{suffix}", f.when(inside, f.col("took"))
        )
    counts = [f.sum(f"in{suffix}").alias(f"runs{suffix}") for suffix in spans]
    slow = [f.percentile(f"duration{suffix}", 0.95).alias(f"p95{suffix}") for suffix in spans]
    # brokers take part in every run; the run belongs to the tap and its target
    others = f.array_remove("applications", "balog")
    name = f.array_join(f.when(f.size(others) > 0, others).otherwise(f.col("applications")), ", ")
    by = rows.select("*", name.alias("names")).groupingSets(
        [[f.col("names"), f.col("outcome")], [f.col("names")], [f.col("outcome")], []], f.col("names"), f.col("outcome")
    )
    found = by.agg(f.grouping_id().alias("grouping"), *counts, *slow)
    return found.orderBy(f.desc("grouping"), f.desc_nulls_last("runs")).limit(MOST_ROWS)


def run_streams(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    """Return the streams in the reports of runs, in the period."""
    rows = rollups.runs.where(within(ranges.period) & f.col("run").isNotNull())
    one = rows.select("application", f.explode("run.streams").alias("one"))
    found = one.groupBy("one.stream").agg(
        f.try_sum("one.records").alias("records"), f.try_sum("one.bytes").alias("bytes"),
        f.array_sort(f.slice(f.collect_set("application"), 1, 10)).alias("applications"),
    )  # fmt: skip
    return found.orderBy(f.desc_nulls_last("records"), "stream").limit(MOST_ROWS)
