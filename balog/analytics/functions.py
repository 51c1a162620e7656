"""Functions from DataFrame to DataFrame: what ran, what failed, what slowed down, since when.

Each function takes events (a frame with the columns of ``spark.read.format("balog")``), rollup rows, ``Rollups``, or
``Tables`` (``balog.analytics.tables``), and returns a small frame. Events are aggregated again for each call. For
several calls, build the rollups once, ``rollups.from_files(spark, paths).persist()``, and pass those. ``between``
selects whole hours of any of them. Durations are in seconds, sizes in bytes. For percentiles, see
``balog.analytics.rollups.frames``: they are actual values, exact up to 1,000 values, otherwise with a rank error of
0.3 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from balog.analytics.reading.schemas import literal
from balog.analytics.rollups import Rollups, from_events, split
from balog.analytics.rollups.frames import (
    each,
    error_events,
    hours_between,
    merge_quarantine,
    merge_runs,
    merged,
    merged_sketch,
    quantiles,
    run_outcome,
    run_seconds,
)
from balog.analytics.rollups.schemas import METRICS
from balog.analytics.tables import Tables
from balog.errors import ConfigError

EventData: TypeAlias = "DataFrame | Rollups | Tables"
__all__ = ["as_rollups", "between", "channels", "failures", "health", "http", "metrics", "quarantine", "runs",
           "streams", "throughput", "waiting"]  # fmt: skip

_RECORDS, _REQUESTS, _REQUESTS_COUNTED = "record_count", "http_request_duration", "http_request_count"
_SYNC, _BATCH = "sync_duration", "batch_processing_time"  # of the Meltano SDK: a tap's stream, a target's batch
_MERGED = ("count", "sum", "low", "high", "sketch")


def as_rollups(data: EventData) -> Rollups:
    """Return any data as rollups.

    Raises:
        ConfigError: a frame has neither events nor rollup rows.
    """
    if isinstance(data, Rollups):
        return data
    columns = getattr(data, "columns", None)
    if columns is None:
        return data.rollups()  # type: ignore[operator]
    return split(data if {"kind", "sketch"} <= set(columns) else from_events(data))  # type: ignore[arg-type]


def between(data: EventData, since: datetime | None = None, until: datetime | None = None) -> Rollups:
    """Return the rollups of the hours that begin at or after ``since`` and before ``until``, and all of quarantine.

    Raises:
        ConfigError: a time has no time zone.
    """
    for moment in (since, until):
        if moment is not None and moment.tzinfo is None:
            raise ConfigError(f"{moment} has no time zone; say datetime(…, tzinfo=timezone.utc)", "between")
    found = as_rollups(data)
    hourly = {name: getattr(found, name) for name in ("events", "metrics", "errors", "runs")}
    return found._replace(**{name: hours_between(frame, since, until) for name, frame in hourly.items()})


def channels(data: EventData) -> DataFrame:
    """Count events: ``channel``, ``level``, ``events``, ``errors`` (of ERROR and CRITICAL), ``first``, ``last``."""
    rows = as_rollups(data).events.groupBy("channel", "level")
    counted = rows.agg(*merged("events", "first", "last")).withColumn("errors", error_events())
    return counted.select("channel", "level", "events", "errors", "first", "last").orderBy("channel", "level")


def metrics(data: EventData, by: Sequence[str] = ()) -> DataFrame:
    """Aggregate metrics: ``metric``, ``type``, ``count``, ``sum``, ``low``, ``high``, ``p50``, ``p95``, ``p99``.

    Only finite values count. Percentiles are null for counters, whose values are deltas.

    Args:
        data: see the module.
        by: additional keys, which come first: ``hour``, ``channel``, ``application``, ``stream``, ``endpoint``,
            ``status``, ``stage``.

    Raises:
        ConfigError: a key is unknown.
    """
    possible = [name for name in METRICS.fieldNames() if name not in (*_MERGED, "metric", "type")]
    if unknown := sorted(set(by) - set(possible)):
        raise ConfigError(f"metrics have no key {', '.join(unknown)}; there are {', '.join(possible)}", "metrics(by)")
    keys = [*by, "metric", "type"]
    rows = as_rollups(data).metrics.groupBy(*keys).agg(*merged(*_MERGED))
    return rows.select(*keys, "count", "sum", "low", "high", *_percentiles()).orderBy(*keys)


def runs(data: EventData) -> DataFrame:
    """Return the outcome of each run, latest first.

    Columns:

    - ``run_id``
    - ``applications``, sorted
    - ``started`` and ``ended``: the times of the first and the last event
    - ``duration``: in seconds; the longest in an application's own report, otherwise from the first event to the last
    - ``outcome``: ``failed`` if a report says so, otherwise ``succeeded``; ``unknown`` without a report (the run is
      still running, or was killed)
    - ``exit_code``: the highest
    - ``records`` and ``bytes``: the sum of the reports, null without one
    - ``events`` and ``errors``
    """
    whole = (
        merge_runs(as_rollups(data).runs)
        .groupBy("run_id")
        .agg(
            f.sort_array(f.collect_set("application")).alias("applications"),
            f.min("first").alias("started"),
            f.max("last").alias("ended"),
            f.coalesce(f.max("run.duration"), run_seconds()).alias("duration"),
            run_outcome().alias("outcome"),
            f.max("run.exit_code").alias("exit_code"),
            *each(f.try_sum, "run.records", "run.bytes"),
            *merged("events", "errors"),
        )
    )
    return whole.orderBy(f.desc("started"), "run_id")


def failures(data: EventData, since: datetime | None = None) -> DataFrame:
    """Return failures by fingerprint (see ``balog.analytics.rollups.fingerprints``), new ones first, then by count.

    Columns:

    - ``fingerprint`` and ``error_type``
    - ``message``: masked
    - ``channels`` and ``applications``: sorted
    - ``events``, ``first`` and ``last``
    - ``example struct<timestamp, id, run_id, message>``: the first event, not masked
    - ``is_new``: whether the first event is at or after ``since``; null without ``since``

    Args:
        data: of all times; events before ``since`` make a failure an old one.
        since: a time with a zone.
    """
    is_new = f.lit(None).cast("boolean") if since is None else f.col("first") >= literal(since)
    rows = (
        as_rollups(data)
        .errors.groupBy("fingerprint", "error_type", "message")
        .agg(
            f.sort_array(f.collect_set("channel")).alias("channels"),
            f.sort_array(f.collect_set("application")).alias("applications"),
            *merged("events", "first", "last", "example"),
        )
    )
    return rows.withColumn("is_new", is_new).orderBy(f.desc("is_new"), f.desc("events"), "fingerprint")


def streams(data: EventData) -> DataFrame:
    """Return the volume and duration of each stream of each application, slowest first.

    Columns:

    - ``application`` and ``stream``
    - ``records``: from the runs' reports, otherwise the sum of ``record_count`` (by its tag ``stream`` or ``endpoint``)
    - ``bytes`` and ``runs``: from the reports
    - ``seconds``: the sum of the timer ``sync_duration``, otherwise ``batch_processing_time``, and its ``p50``,
      ``p95``, ``p99``
    - ``requests`` and ``request_seconds``: of the timer ``http_request_duration`` with that stream, or an endpoint of
      its name
    - ``rate``: ``records`` by ``seconds``, or null
    """
    found = as_rollups(data)
    named = found.metrics.withColumn("stream", f.coalesce("stream", "endpoint")).where("stream IS NOT NULL")
    is_batch, is_sync = (f.col("metric") == name for name in (_BATCH, _SYNC))
    timed = named.where(f.col("metric").isin(_RECORDS, _REQUESTS, _SYNC, _BATCH))
    measured = timed.select(
        "application",
        "stream",
        f.when(f.col("metric") == _RECORDS, f.col("sum")).alias("counted"),
        f.when(f.col("metric") == _REQUESTS, f.col("count")).alias("requests"),
        f.when(f.col("metric") == _REQUESTS, f.col("sum")).alias("request_seconds"),
        f.when(is_sync, f.col("sum")).alias("sync"),
        f.when(is_batch, f.col("sum")).alias("batch"),
        f.when(is_sync, f.col("sketch")).alias("sync_sketch"),
        f.when(is_batch, f.col("sketch")).alias("batch_sketch"),
    )
    reported = _reports(found).select("application", f.explode("run.streams").alias("one"))
    reported = reported.select(
        "application", "one.stream", f.col("one.records").alias("reported"), "one.bytes", f.lit(1).alias("runs")
    )
    sums = ("counted", "reported", "bytes", "runs", "requests", "request_seconds", "sync", "batch")
    rows = (
        measured.unionByName(reported, allowMissingColumns=True)
        .where("stream IS NOT NULL")
        .groupBy("application", "stream")
        .agg(*each(f.try_sum, *sums), *each(merged_sketch, "sync_sketch", "batch_sketch"))
        # an endpoint without a stream of its name is not a stream
        .where("coalesce(counted, reported, sync, batch) IS NOT NULL")
        .withColumn("records", f.coalesce("reported", f.col("counted").try_cast("bigint")))
        .withColumn("seconds", f.coalesce("sync", "batch"))
        .withColumn("sketch", f.coalesce("sync_sketch", "batch_sketch"))
    )
    rate = f.when(f.col("seconds") > 0, f.col("records") / f.col("seconds")).alias("rate")
    first = ("application", "stream", "records", "bytes", "runs", "seconds")
    slowest = (f.desc_nulls_last("seconds"), f.desc_nulls_last("request_seconds"))
    chosen = rows.select(*first, *_percentiles(), "requests", "request_seconds", rate)
    return chosen.orderBy(*slowest, "application", "stream")


def http(data: EventData) -> DataFrame:
    """Count HTTP requests, most frequent first.

    Columns:

    - ``endpoint``
    - ``status``: the tag ``http_status_code``, otherwise ``status``
    - ``requests``: the count of the timer ``http_request_duration``, otherwise the sum of ``http_request_count``
    - ``seconds``, ``p50``, ``p95``, ``p99`` and ``high``: of the timer, null without one
    """
    is_timed = f.col("metric") == _REQUESTS
    counted = f.sum(f.when(~is_timed, f.col("sum"))).try_cast("bigint")
    rows = (
        as_rollups(data)
        .metrics.where(f.col("metric").isin(_REQUESTS, _REQUESTS_COUNTED))
        .groupBy("endpoint", "status")
        .agg(
            f.coalesce(f.sum(f.when(is_timed, f.col("count"))), counted).alias("requests"),
            f.sum(f.when(is_timed, f.col("sum"))).alias("seconds"),
            *merged("sketch"),
            f.max(f.when(is_timed, f.col("high"))).alias("high"),
        )
    )
    chosen = rows.select("endpoint", "status", "requests", "seconds", *_percentiles(), "high")
    return chosen.orderBy(f.desc("requests"), "endpoint", "status")


def throughput(data: EventData) -> DataFrame:
    """Aggregate by hour (in UTC): ``hour``, ``events``, ``errors``, ``records``, ``bytes``.

    ``records`` is the counter ``record_count`` for applications that have it; for others it is in the runs' reports, in
    the hour of the report. ``bytes`` is the counter ``pipe_bytes`` of the stage with the most bytes, because all stages
    of a pipeline count the same ones; in hours without it, it comes from the runs' reports.
    """
    found = as_rollups(data)
    events = found.events.select("hour", "events", error_events().alias("errors"))
    counted = found.metrics.where((f.col("metric") == _RECORDS) & (f.col("type") == "counter"))
    counted = counted.select("hour", "application", f.col("sum").alias("counted"))
    reported = _reports(found).select("hour", "application", "run.records", f.col("run.bytes").alias("reported"))
    records = (
        counted.unionByName(reported, allowMissingColumns=True)
        .groupBy("application", "hour")
        .agg(f.sum("counted").alias("counted"), *each(f.try_sum, "records", "reported"))
        .groupBy("application")
        .agg(
            f.max(f.col("counted").isNotNull()).alias("counts"),
            f.collect_list(f.struct("hour", "counted", "records", "reported")).alias("hours"),
        )
        .select("counts", f.inline("hours"))
        .select(
            "hour",
            f.when(f.col("counts"), f.col("counted").try_cast("bigint")).otherwise(f.col("records")).alias("records"),
            "reported",
        )
    )
    passed = (
        found.metrics.where(f.col("metric") == "pipe_bytes")
        .groupBy("hour", "stage")
        .agg(f.sum("sum").alias("passed"))
        .groupBy("hour")
        .agg(f.max("passed").try_cast("bigint").alias("passed"))
    )
    rows = events.unionByName(records, allowMissingColumns=True).unionByName(passed, allowMissingColumns=True)
    counts = each(lambda name: f.coalesce(f.sum(name), f.lit(0)), "events", "errors")
    size = f.coalesce(f.sum("passed"), f.try_sum("reported")).alias("bytes")
    return rows.groupBy("hour").agg(*counts, *each(f.try_sum, "records"), size).orderBy("hour")


def waiting(data: EventData) -> DataFrame:
    """Return how long each stage of a pipeline waited, from the counters of the brokers' pipes.

    Columns: ``stage``; ``reading`` and ``writing``, seconds; ``bytes``; ``lines``; ``waiting``: ``reading`` if it
    waited longer for its input, ``writing`` for its output, ``neither`` if it never waited.
    """

    def total(name: str) -> Column:
        return f.coalesce(f.sum(f.when(f.col("metric") == name, f.col("sum"))), f.lit(0.0))

    rows = (
        as_rollups(data)
        .metrics.where(f.col("metric").startswith("pipe_") & f.col("stage").isNotNull())
        .groupBy("stage")
        .agg(
            total("pipe_read_wait_seconds").alias("reading"),
            total("pipe_write_wait_seconds").alias("writing"),
            total("pipe_bytes").try_cast("bigint").alias("bytes"),
            total("pipe_lines").try_cast("bigint").alias("lines"),
        )
    )
    side = f.when(f.greatest("reading", "writing") <= 0, "neither")
    side = side.when(f.col("reading") >= f.col("writing"), "reading").otherwise("writing")
    return rows.withColumn("waiting", side).orderBy(f.desc(f.greatest("reading", "writing")), "stage")


def quarantine(data: EventData) -> DataFrame:
    """Count invalid lines: ``reason``, ``lines``, and the first one's ``file`` and ``offset`` (bytes, decompressed)."""
    return merge_quarantine(as_rollups(data).quarantine).orderBy(f.desc("lines"), "reason")


def health(data: EventData, since: datetime, until: datetime) -> DataFrame:
    """Compare a period with the period of the same length before it: ``figure``, ``now``, ``before``, ``change``.

    The stats in ``figure`` are ``events``, ``errors``, ``failures`` (fingerprints), ``records``, ``runs`` (with a
    report), ``failed`` (of those), ``run_p95`` (seconds, of their durations), ``requests``, ``request_p95`` (seconds).
    All are doubles; ``change`` is ``now / before``, null if ``before`` is 0 or null.

    Args:
        data: see the module.
        since: the first hour of now, with a time zone.
        until: the end of now, exclusive, with a time zone.
    """
    earlier = since - (until - since)
    found = between(data, earlier, until)
    period = f.when(f.col("hour") >= literal(since), "now").otherwise("before").alias("period")
    reports = _reports(found).select(period, "run")
    requests = found.metrics.where(f.col("metric") == _REQUESTS).select(period, "count", "sketch")
    parts = [
        throughput(found).groupBy(period).agg(*each(f.sum, "events", "errors", "records")),
        found.errors.groupBy(period).agg(f.countDistinct("fingerprint").alias("failures")),
        reports.groupBy("period").agg(
            f.count("*").alias("runs"),
            f.count(f.when(f.col("run.outcome") == "failed", 1)).alias("failed"),
            f.percentile("run.duration", 0.95).alias("run_p95"),
        ),
        requests.groupBy("period")
        .agg(f.sum("count").alias("requests"), *merged("sketch"))
        .select("period", "requests", quantiles(f.col("sketch"), (0.95,))[0].alias("request_p95")),
    ]  # fmt: skip
    rows = reduce(lambda one, other: one.unionByName(other), map(_unpivoted, parts))
    sides = (f.max(f.when(f.col("period") == name, f.col("value"))).alias(name) for name in ("now", "before"))
    change = f.when(f.col("before") != 0, f.col("now") / f.col("before")).alias("change")
    return rows.groupBy("figure").agg(*sides).select("figure", "now", "before", change).orderBy("figure")


def _unpivoted(stats: DataFrame) -> DataFrame:
    """Return a row for each period and stat: ``period``, ``figure``, ``value double``."""
    names = [name for name in stats.columns if name != "period"]
    doubles = stats.select("period", *each(lambda name: f.col(name).cast("double"), *names))
    return doubles.unpivot("period", [f.col(name) for name in names], "figure", "value")


def _reports(found: Rollups) -> DataFrame:
    """Return the latest report of each application of each run: ``hour``, ``run_id``, ``application``, ``run``."""
    latest = f.max(f.struct("run", "hour")).alias("latest")
    rows = found.runs.where("run IS NOT NULL").groupBy("run_id", "application").agg(latest)
    return rows.select("latest.hour", "run_id", "application", "latest.run")


def _percentiles() -> list[Column]:
    return [column.alias(name) for column, name in zip(quantiles(f.col("sketch")), ("p50", "p95", "p99"))]
