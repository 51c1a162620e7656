"""The report's queries on rollups, in Spark: bounded lists, of the period and of the two times compared.

Each query is one small Spark job over hourly rows; they run concurrently. An hour belongs to every time that it
overlaps. Lists end at ``MOST_ROWS``, so only the work grows with the archive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.reading.schemas import literal
from balog.analytics.reporting import time_ranges
from balog.analytics.reporting.model import MOST_ROWS
from balog.analytics.reporting.query import EPOCH, HOUR, Period, later
from balog.analytics.reporting.time_ranges import SHORT, TimeRanges, by_step, finite, read, spans_of, within
from balog.analytics.rollups.frames import (
    Rollups,
    each,
    error_events,
    merge_quarantine,
    merge_runs,
    merged,
    merged_sketch,
    quantiles,
    run_outcome,
    run_seconds,
)

REQUESTS = "http_request_duration"
RECORDS = "record_count"
WAITS = {"pipe_read_wait_seconds": "read", "pipe_write_wait_seconds": "write"}

Row = dict[str, Any]
Rows = dict[str, list[Row]]

_MOST_RUNS_OF_A_FAILURE = 20


class Bounds(NamedTuple):
    """The hours with events, including the last one: those up to a day ahead of now, and all."""

    usual: Period
    all: Period


def bounds(rollups: Rollups) -> tuple[Bounds | None, int]:
    """Return the hours with events (None without events), and the number of rows of events and metrics.

    Hours more than a day ahead of now are counted, but are not part of ``usual`` if there are others: one wrong clock
    must not decide what "now" is.
    """
    ahead = datetime.now(timezone.utc) + timedelta(days=1)
    hour = f.when(f.col("hour") < literal(ahead), f.col("hour"))
    metrics = rollups.metrics.select(f.lit(None).cast("timestamp").alias("hour"))
    rows = rollups.events.select("hour").unionAll(metrics)
    ends = [f.min(hour), f.max(hour), f.min("hour"), f.max("hour")]
    *found, count = rows.agg(*map(f.unix_micros, ends), f.count(f.lit(1))).collect()[0]
    if found[2] is None:
        return None, count
    whole = _hours(*found[2:])
    return Bounds(whole if found[0] is None else _hours(*found[:2]), whole), count


def axes(rollups: Rollups, period: Period, usual: Period) -> Period:
    """Return the part of the period that axes show; see ``time_ranges.axis_period``.

    Args:
        rollups: the data.
        period: the whole period.
        usual: plausible hours; others are outside.
    """
    inside = Period(max(period.since, usual.since), min(period.until, usual.until))
    if inside.length <= timedelta(0):
        return period
    if inside.length <= SHORT:
        return inside
    rows = rollups.events.where(within(inside))
    events = rows.agg(f.sum("events")).collect()[0][0]
    if not events:
        return period
    seconds = f.unix_seconds("hour")
    first, last = rows.agg(f.percentile(seconds, list(time_ranges.ranks(events)), f.col("events"))).collect()[0][0]
    # ranks are doubles, so a percentile may be off by seconds; hours begin at the same minute as the period's
    begins = (inside.since - EPOCH).total_seconds()
    middle = Period(*(inside.since + round((end - begins) / 3600) * HOUR for end in (first, last)))
    return time_ranges.axis_period(inside, Period(middle.since, later(middle.until, HOUR)))


def _hours(first: int, last: int) -> Period:
    return Period(_moment(first), later(_moment(last), HOUR))


def ask(rollups: Rollups, ranges: TimeRanges) -> Rows:
    """Return the rows of every list, by name; times are in UTC."""
    queries: dict[str, Callable[[Rollups, TimeRanges], DataFrame]] = {
        "events": _events, "throughput": _throughput, "records": _records, "metrics": _metrics, "failures": _failures,
        "runs": latest_runs, "outcomes": outcomes, "run_streams": run_streams, "quarantine": _quarantine,
    }  # fmt: skip
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda query: _rows(query(rollups, ranges)), queries.values())
        rows = dict(zip(queries, found))
    many = len(rows["failures"]) == MOST_ROWS
    rows["all_failures"] = [{"count": _all_failures(rollups, ranges).count() if many else len(rows["failures"])}]
    return rows


def hourly(rollups: Rollups, ranges: TimeRanges, keys: Sequence[tuple[str, str | None, str | None]]) -> list[Row]:
    """Return ``metric, stream, endpoint, hour, count, p95`` of a few metrics, over the times compared."""
    if not keys or ranges.compared.before is None:
        return []
    wanted = f.lit(False)
    for metric, stream, endpoint in keys:
        places = f.col("stream").eqNullSafe(f.lit(stream)) & f.col("endpoint").eqNullSafe(f.lit(endpoint))
        wanted |= (f.col("metric") == metric) & places
    both = within(ranges.compared.before) | within(ranges.compared.now)
    # a stream is aggregated over all endpoints, an endpoint over all streams
    by_stream, by_endpoint = ([key[0] for key in keys if key[place] is not None] for place in (1, 2))
    rows = rollups.metrics.where(both).withColumns({
        "stream": f.when(f.col("metric").isin(by_stream), f.col("stream")),
        "endpoint": f.when(f.col("metric").isin(by_endpoint), f.col("endpoint")),
    })  # fmt: skip
    hours = rows.where(wanted).groupBy("metric", "stream", "endpoint", "hour").agg(*merged("count", "sketch"))
    return _rows(hours.select("*", quantiles(f.col("sketch"), (0.95,))[0].alias("p95")).drop("sketch"))


# -- the queries -------------------------------------------------------------------------------------------------


def _events(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    rows, counts = _counts(rollups, ranges)
    found = rows.groupBy("channel", "level", "application").agg(*counts)
    return found.orderBy(f.desc("events"), "channel", "level").limit(MOST_ROWS)


def _throughput(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    rows, counts = _counts(rollups, ranges)
    return rows.groupBy(*by_step(ranges)).agg(*counts).orderBy("side", "at")


def _counts(rollups: Rollups, ranges: TimeRanges) -> tuple[DataFrame, list[Column]]:
    """Return the rows of events to read, and the sums of events and of errors with the first and the last event."""
    counts = [
        f.coalesce(f.sum(f.when(span, f.col(name))), f.lit(0)).alias(f"{name}{suffix}")
        for suffix, span in spans_of(ranges).items()
        for name in ("events", "errors")
    ]
    inside = within(ranges.period)
    counts += [f.min(f.when(inside, f.col("first"))).alias("first"), f.max(f.when(inside, f.col("last"))).alias("last")]
    return rollups.events.where(read(ranges)).withColumn("errors", error_events()), counts


def _records(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    """Return records by step and application, from counters (``counted``) and from runs' reports (``reported``)."""
    wanted = read(ranges)
    counted = rollups.metrics.where(wanted & (f.col("metric") == RECORDS) & (f.col("type") == "counter"))
    reported = rollups.runs.where(wanted & f.col("run.records").isNotNull())
    pairs = (("counted", counted, f.col("sum")), ("reported", reported, f.col("run.records").cast("double")))
    parts = [
        frame.select(*by_step(ranges), "hour", "application", f.lit(kind).alias("kind"), number.alias("number"))
        for kind, frame, number in pairs
    ]
    rows = parts[0].unionByName(parts[1])
    spans = spans_of(ranges).items()
    sums = [finite(f.sum(f.when(span, f.col("number")))).alias(f"records{suffix}") for suffix, span in spans]
    return rows.groupBy("at", "side", "application", "kind").agg(*sums)


def _metrics(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    """Return metrics alone, by stream, by endpoint and status, and by stage, as ``grouping`` says."""
    rows = rollups.metrics.where(read(ranges))
    spans = spans_of(ranges)
    request = f.col("metric") == REQUESTS
    rows = rows.select(
        "metric", "type", "stream", "stage", "application",
        f.when(request, f.col("endpoint")).alias("endpoint"), f.when(request, f.col("status")).alias("status"),
        *(f.when(inside, f.col(name)).alias(f"{name}{suffix}")
          for suffix, inside in spans.items() for name in ("count", "sum", "low", "high", "sketch")),
    )  # fmt: skip
    one = ["metric", "type"]
    sets = [one, [*one, "stream"], [*one, "endpoint", "status"], [*one, "endpoint"], [*one, "stage"]]
    merges: list[Column] = [f.array_sort(f.slice(f.collect_set("application"), 1, 10)).alias("applications")]
    for suffix in spans:
        merges += [*each(f.sum, f"count{suffix}"), finite(f.sum(f"sum{suffix}")).alias(f"sum{suffix}")]
        merges += [*each(f.min, f"low{suffix}"), *each(f.max, f"high{suffix}"), *each(merged_sketch, f"sketch{suffix}")]
    groups = rows.groupingSets(
        [[f.col(name) for name in names] for names in sets],
        *(f.col(name) for name in ("metric", "type", "stream", "endpoint", "status", "stage")),
    ).agg(f.grouping_id().alias("grouping"), *merges)
    # Bits of the grouping, from the left: metric, type, stream, endpoint, status, stage; 1 means aggregated.
    kinds = {0b001111: "metric", 0b000111: "stream", 0b001001: "request", 0b001011: "endpoint", 0b001110: "stage"}
    kind = f.create_map(*(part for bits, name in kinds.items() for part in (f.lit(bits), f.lit(name))))
    groups = groups.withColumn("grouping", f.element_at(kind, f.col("grouping").cast("int")))
    wanted = f.col("grouping") == "metric"
    for name in ("stream", "stage"):
        wanted |= (f.col("grouping") == name) & f.col(name).isNotNull()
    wanted |= f.col("grouping").isin("request", "endpoint") & (f.col("metric") == REQUESTS)
    shares = []
    for suffix in spans:
        found = zip(quantiles(f.col(f"sketch{suffix}")), ("p50", "p95", "p99"))
        shares += [column.alias(f"{name}{suffix}") for column, name in found]
    kept = [name for name in groups.columns if not name.startswith("sketch")]
    return groups.where(wanted).select(*kept, *shares).orderBy(f.desc_nulls_last("count")).limit(MOST_ROWS)


def _failures(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    return _all_failures(rollups, ranges).orderBy(f.desc("events"), "fingerprint").limit(MOST_ROWS)


def _quarantine(rollups: Rollups, _: TimeRanges) -> DataFrame:
    return merge_quarantine(rollups.quarantine).orderBy(f.desc("lines"), "reason").limit(MOST_ROWS)


def _all_failures(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    spans = spans_of(ranges)
    events = [f.coalesce(f.sum(f.when(inside, f.col("events"))), f.lit(0)).alias(f"events{suffix}")
              for suffix, inside in spans.items()]  # fmt: skip
    inside = within(ranges.period)
    some = [
        f.array_sort(f.slice(f.collect_set(f.when(inside, f.col(name))), 1, _MOST_RUNS_OF_A_FAILURE)).alias(alias)
        for name, alias in (("channel", "channels"), ("application", "applications"), ("example.run_id", "runs"))
    ]
    groups = rollups.errors.where(f.col("hour") < literal(ranges.period.until)).groupBy("fingerprint").agg(
        f.max("error_type").alias("error_type"), f.max("message").alias("message"),
        f.max_by("level", f.when(f.col("level") == "CRITICAL", 2).when(f.col("level") == "ERROR", 1).otherwise(0))
        .alias("level"),
        *events, *merged("first"), f.max(f.when(inside, f.col("last"))).alias("last"),
        f.min(f.when(inside, f.col("example"))).alias("example"), *some,
    )  # fmt: skip
    example = f.col("example").withField("timestamp", f.unix_micros("example.timestamp"))
    return groups.where("events > 0").withColumn("example", example)


def _moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _rows(frame: DataFrame) -> list[Row]:
    """Return rows as dictionaries.

    Times are fetched as microseconds, because Spark would convert them to the process's time zone.
    """
    moments = [field.name for field in frame.schema if isinstance(field.dataType, t.TimestampType)]
    frame = frame.withColumns({name: f.unix_micros(name) for name in moments}) if moments else frame
    found = [row.asDict(recursive=True) for row in frame.collect()]
    for row in found:
        row.update({name: _moment(row[name]) for name in moments if row[name] is not None})
        if (example := row.get("example")) is not None:
            example["timestamp"] = None if example["timestamp"] is None else _moment(example["timestamp"])
    return found


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
        *each(f.try_sum, "run.records", "run.bytes"), *merged("events"),
        f.coalesce(f.sum("errors"), f.lit(0)).alias("errors"),
        f.flatten(f.collect_list("run.streams")).alias("streams"), f.max("hour").alias("hour"),
    )  # fmt: skip


def latest_runs(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    """Return the runs that ended in the period, latest first."""
    rows = _runs(rollups, ranges).where(within(ranges.period)).drop("hour")
    streams = f.transform(
        f.slice("streams", 1, 100), lambda one: f.struct(*each(one.getField, "stream", "records", "bytes"))
    )
    return rows.withColumn("streams", streams).orderBy(f.desc("started"), "run_id").limit(MOST_ROWS)


def outcomes(rollups: Rollups, ranges: TimeRanges) -> DataFrame:
    """Return runs by application and outcome, and over all of them (``names`` null) the p95 of their durations."""
    rows = _runs(rollups, ranges).withColumnRenamed("duration", "took")
    spans = spans_of(ranges)
    for suffix, inside in spans.items():
        took = f.when(inside, f.col("took"))
        rows = rows.withColumns({f"in{suffix}": f.when(inside, 1), f"duration{suffix}": took})
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
        *each(f.try_sum, "one.records", "one.bytes"),
        f.array_sort(f.slice(f.collect_set("application"), 1, 10)).alias("applications"),
    )  # fmt: skip
    return found.orderBy(f.desc_nulls_last("records"), "stream").limit(MOST_ROWS)
