"""Makes the report from raw events, from tables, or from their rollups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balog.analytics import rollups as rolling
from balog.analytics.reading.schemas import TEXT_EVENT, literal
from balog.analytics.reporting.assembly import assemble, slowed
from balog.analytics.reporting.details import add_details, add_stream_runs, ask_details
from balog.analytics.reporting.model import Report
from balog.analytics.reporting.queries import Bounds, ReportQueries
from balog.analytics.reporting.query import Period, ReportQuery, channel_pattern, compare
from balog.analytics.reporting.time_ranges import TimeRanges
from balog.analytics.rollups import Rollups
from balog.analytics.rollups.schemas import COPIES
from balog.analytics.spark_engine import engine_of
from balog.analytics.tables import Tables, is_tables, open_tables
from balog.analytics.tables.log import has_log

MOST_LOCAL = 5 * 10**9
"""Up to this many bytes of stored rollups, the embedded engine makes the report."""


def make_report(
    spark: SparkSession, paths: Sequence[str], query: ReportQuery, files: int | None = None, **options: Any
) -> Report:
    """Read the data and make the report.

    Args:
        spark: a session with the format ``balog``.
        paths: as the format takes them; or one location of tables.
        query: what to report.
        files: the number of files, for the report.
        options: of the format ``balog``.

    Raises:
        ConfigError: a path does not exist.
    """
    if is_tables(paths[0]):
        return _of_tables(spark, paths, query)
    if query.of_rollups:
        times = {"since": query.earliest, "until": query.until}
        named = {name: when.isoformat() for name, when in times.items() if when is not None}
        rows = rolling.from_files(spark, paths, **options, **named)
    else:
        events = spark.read.format("balog").options(**options).schema(TEXT_EVENT)
        rows = _aggregate(_select(events.load(list(paths)), query), query)
    return _of_rows(rows, query, paths, "files", files)


def make_local_report(location: str, query: ReportQuery) -> Report | None:
    """Make the report from the stored rollups of a folder, by DuckDB; None if only Spark can.

    Spark makes it if the query is not of whole hours of all events, without stored rollups, or beyond ``MOST_LOCAL``.
    """
    from balog.analytics.duckdb_engine import DuckDBEngine
    from balog.analytics.tables.local import LocalRollups

    if not query.of_rollups or not has_log(location):
        return None
    local = LocalRollups(location)
    size = local.size()
    if size is None or size > MOST_LOCAL:
        return None
    with DuckDBEngine(local.files()) as engine:
        rollups = local.open(engine, query.earliest, query.until)
        return report_of(rollups, query, [location], "rollups")


def _of_tables(spark: SparkSession, paths: Sequence[str], query: ReportQuery) -> Report:
    tables = open_tables(spark, paths[0])
    if query.of_rollups and "rollup_events" in tables.names():
        return report_of(_stored(tables, query), query, paths, "rollups")
    events = _select(tables.frame("events", query.earliest, query.until), query)
    return _of_rows(_aggregate(events, query, once=False), query, paths, "events")


def _stored(tables: Tables, query: ReportQuery) -> Rollups:
    """Return the stored rollups; failures of all times, because a new one must not have occurred before."""
    some = tables.rollups(query.earliest, query.until)
    if query.earliest is None:
        return some
    return some._replace(errors=tables.rollups(None, query.until).errors)


def _select(events: DataFrame, query: ReportQuery) -> DataFrame:
    """Return the events that match the query, and invalid lines."""
    wanted = f.lit(True)
    if query.earliest is not None:
        wanted &= f.col("timestamp") >= literal(query.earliest)
    if query.until is not None:
        wanted &= f.col("timestamp") < literal(query.until)
        if query.since and query.back and query.earliest and not query.of_whole_hours:
            # omit the events between before and now, unless they share an hour with either
            is_before = f.col("timestamp") < literal(query.until - query.back)
            wanted &= is_before | (f.col("timestamp") >= literal(query.since))
    if query.channel:
        wanted &= f.col("channel").rlike(channel_pattern(query.channel))
    if query.where is not None:
        events = events.withColumn("payload", f.try_parse_json("payload_json"))
        wanted &= f.expr(query.where.to_spark())
    if "quarantine" in events.columns:
        wanted |= f.col("quarantine").isNotNull()
    return events.where(wanted).drop("payload")


def _aggregate(events: DataFrame, query: ReportQuery, *, once: bool = True) -> DataFrame:
    """Return rollup rows of hours that begin at the same minute as the time range."""
    shift = f.make_dt_interval(secs=f.lit(query.past_the_hour.total_seconds()).cast("decimal(18,6)"))
    if not query.past_the_hour:
        return rolling.from_events(events, once=once)
    rows = rolling.from_events(events.withColumn("timestamp", f.col("timestamp") - shift), once=once)
    return rows.withColumns(
        {
            **{name: f.col(name) + shift for name in ("hour", "first", "last")},
            "example": f.col("example").withField("timestamp", f.col("example.timestamp") + shift),
            "run": f.col("run").withField("at", f.col("run.at") + shift),
        }
    )


def _of_rows(
    rows: DataFrame, query: ReportQuery, paths: Sequence[str], source: str, files: int | None = None
) -> Report:
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        # reads the files; the queries below run concurrently
        copies = kept.where(f"kind = '{COPIES}'").agg(f.coalesce(f.sum("count"), f.lit(0))).collect()[0][0]
        made = report_of(rolling.split(kept), query, paths, source, files)
        return msgspec.structs.replace(made, duplicates=copies)
    finally:
        kept.unpersist(blocking=True)  # otherwise stopping right after this would print traces


def report_of(
    rollups: Rollups, query: ReportQuery, sources: Sequence[str], source: str, files: int | None = None
) -> Report:
    """Make the report from rollups.

    Args:
        rollups: merged or not.
        query: its channel and condition have been applied already.
        sources, source, files: see ``Report``.
    """
    engine = engine_of(rollups.events)
    queries = ReportQueries(engine, rollups)
    data, rows = queries.bounds()
    ranges = _time_ranges(data, query)
    if data is not None:
        ranges = ranges._replace(shown=queries.axes(ranges.period, data.usual))
    with engine.tuned(rollups, rows) as tuned:
        queries = ReportQueries(engine, tuned)
        found = queries.ask(ranges, query.run)
        keys = [(slow.metric, slow.stream, slow.endpoint) for slow in slowed(found)]
        lists = assemble(found, ranges, queries.hourly(ranges, keys))
        runs, failures = lists["runs"], lists["failures"]
        add_details(runs, failures, ask_details(queries, ranges, runs, failures))
    add_stream_runs(lists["streams"], found["stream_runs"], query.made)
    return Report(
        made=query.made,
        sources=list(sources),
        source=source,
        files=files,
        conditions=query.conditions,
        period=ranges.period if data is not None else None,
        compared=ranges.compared if data is not None else None,
        shown=ranges.shown if data is not None else None,
        **lists,
    )


def _time_ranges(found: Bounds | None, query: ReportQuery) -> TimeRanges:
    """Return the time ranges; without data, those of the query, or empty ones."""
    since, until = query.since, query.until
    if found is None:
        moment = since or until or query.made
        found = Bounds(Period(moment, moment), Period(moment, moment))
    data = found.usual
    compared = compare(data, since, until, query.back, none=not query.compared)
    if compared.before is not None and compared.before.until <= data.since:
        compared = compare(data, since, until, query.back, none=True)  # there is nothing before to compare with
    first = since or found.all.since
    period = Period(first, max(until or found.all.until, first))
    return TimeRanges(period, compared, period)


def empty_report(paths: Sequence[str], query: ReportQuery) -> Report:
    """Return the report of paths without files; it needs no Spark."""
    ranges = _time_ranges(None, query)
    lists = assemble(defaultdict(list), ranges, [])
    return Report(
        made=datetime.now(timezone.utc), sources=list(paths), source="files", files=0, conditions=query.conditions,
        period=None, compared=None, **lists,
    )  # fmt: skip
