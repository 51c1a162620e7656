"""The report: what is asked, answered out of raw events, of tables or of their rollups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark import StorageLevel
from pyspark.sql import functions as f

from balog.analytics import rollups as rolling
from balog.analytics.reading.schemas import QUARANTINE
from balog.analytics.reading.timestamps import literal
from balog.analytics.reporting.assembly import assemble, slowed
from balog.analytics.reporting.model import Report
from balog.analytics.reporting.periods import Period, compare
from balog.analytics.reporting.queries import Bounds, ask, axes, bounds, hourly
from balog.analytics.reporting.query import ReportQuery, channel_pattern
from balog.analytics.reporting.time_ranges import TimeRanges
from balog.analytics.rollups.schemas import COPIES
from balog.analytics.tables import is_tables, open_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from balog.analytics.rollups import Rollups
    from balog.analytics.tables import Tables

__all__ = ["empty_report", "make_report", "report_of"]

_COLUMNS = """id string, channel string, timestamp timestamp, level string, schema string, composition boolean,
  context map<string,string>, cls_type string, payload_json string"""

_BAD = QUARANTINE.simpleString()
_FEW = 50_000  # rows of a rollup
_SMALL = {
    # Spark compiles each question to Java classes; of few rows it has counted all before those are there
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


def make_report(
    spark: SparkSession, paths: Sequence[str], question: ReportQuery, files: int | None = None, **options: Any
) -> Report:
    """Read what was asked about and count it.

    Args:
        spark: a session that knows the format ``balog``.
        paths: as the format takes them; or one place of tables.
        question: what is asked.
        files: how many files these are, to be told.
        options: of the format ``balog``.

    Raises:
        ConfigError: a path that does not exist.
    """
    if is_tables(paths[0]):
        return _of_tables(spark, paths, question)
    if question.of_rollups:
        times = {"since": question.earliest, "until": question.until}
        named = {name: when.isoformat() for name, when in times.items() if when is not None}
        rows = rolling.from_files(spark, paths, **options, **named)
    else:
        events = spark.read.format("balog").options(**options).schema(f"{_COLUMNS}, quarantine {_BAD}")
        rows = _counted(_chosen(events.load(list(paths)), question), question)
    return _of_rows(rows, question, paths, "files", files)


def _of_tables(spark: SparkSession, paths: Sequence[str], question: ReportQuery) -> Report:
    tables = open_tables(spark, paths[0])
    if question.of_rollups and "rollup_events" in tables.names():
        return report_of(_stored(tables, question), question, paths, "rollups")
    events = _chosen(tables.frame("events", question.earliest, question.until), question)
    return _of_rows(_counted(events, question, once=False), question, paths, "events")


def _stored(tables: Tables, question: ReportQuery) -> Rollups:
    """Give the stored rollups; failures of all times, since what is new was not there before."""
    some = tables.rollups(question.earliest, question.until)
    if question.earliest is None:
        return some
    return some._replace(errors=tables.rollups(None, question.until).errors)


def _chosen(events: DataFrame, question: ReportQuery) -> DataFrame:
    """Give the events that were asked about, and lines that are none."""
    wanted = f.lit(True)
    if question.earliest is not None:
        wanted &= f.col("timestamp") >= literal(question.earliest)
    if question.until is not None:
        wanted &= f.col("timestamp") < literal(question.until)
        if question.since and question.back and question.earliest and not question.of_whole_hours:
            # hours that the time before ends within have no more events than those of it
            wanted &= (f.col("timestamp") < literal(question.until - question.back)) | (
                f.col("timestamp") >= literal(question.since)
            )
    if question.channel:
        wanted &= f.col("channel").rlike(channel_pattern(question.channel))
    if question.where is not None:
        events = events.withColumn("payload", f.try_parse_json("payload_json"))
        wanted &= f.expr(question.where.to_spark())
    if "quarantine" in events.columns:
        wanted |= f.col("quarantine").isNotNull()
    return events.where(wanted).drop("payload")


def _counted(events: DataFrame, question: ReportQuery, *, once: bool = True) -> DataFrame:
    """Give rollup rows of hours that begin so long after the full one as the time asked about does."""
    shift = f.make_dt_interval(secs=f.lit(question.past_the_hour.total_seconds()).cast("decimal(18,6)"))
    if not question.past_the_hour:
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
    rows: DataFrame, question: ReportQuery, paths: Sequence[str], source: str, files: int | None = None
) -> Report:
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        # reads the files; the questions below are asked at the same time
        copies = kept.where(f"kind = '{COPIES}'").agg(f.coalesce(f.sum("count"), f.lit(0))).collect()[0][0]
        made = report_of(rolling.split(kept), question, paths, source, files)
        return msgspec.structs.replace(made, duplicates=copies)
    finally:
        kept.unpersist(blocking=True)  # else a stop right behind it prints traces


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def report_of(
    rollups: Rollups, question: ReportQuery, sources: Sequence[str], source: str, files: int | None = None
) -> Report:
    """Make the report out of rollups.

    Args:
        rollups: merged or not.
        question: its channel and condition have been applied already.
        sources, source, files: what is told of where they are from, see ``Report``.
    """
    data, rows = bounds(rollups)
    asked = _time_ranges(data, question)
    if data is not None:
        asked = asked._replace(shown=axes(rollups, asked.period, data.usual))
    with _settings(rollups.events.sparkSession, _SMALL if rows <= _FEW else {}):
        if rows <= _FEW:  # one task without a shuffle is done before several are shared out
            rollups = rolling.Rollups(*(frame.coalesce(1) for frame in rollups))
        found = ask(rollups, asked)
        keys = [(slow.metric, slow.stream, slow.endpoint) for slow in slowed(found)]
        lists = assemble(found, asked, hourly(rollups, asked, keys))
    return Report(
        made=question.made,
        sources=list(sources),
        source=source,
        files=files,
        conditions=question.conditions,
        period=asked.period if data is not None else None,
        compared=asked.compared if data is not None else None,
        shown=asked.shown if data is not None else None,
        **lists,
    )


def _time_ranges(found: Bounds | None, question: ReportQuery) -> TimeRanges:
    """Give the times; of no data at all, those that were asked about, or nothing."""
    since, until = question.since, question.until
    if found is None:
        moment = since or until or question.made
        found = Bounds(Period(moment, moment), Period(moment, moment))
    data = found.usual
    compared = compare(data, since, until, question.back, none=not question.compared)
    if compared.before is not None and compared.before.until <= data.since:
        compared = compare(data, since, until, question.back, none=True)  # there is nothing before to compare with
    first = since or found.all.since
    period = Period(first, max(until or found.all.until, first))
    return TimeRanges(period, compared, period)


def empty_report(paths: Sequence[str], question: ReportQuery) -> Report:
    """Give the report of paths that hold no file; it takes no Spark."""
    first = ("events", "throughput", "records", "metrics", "failures", "all_failures")
    names = (*first, "runs", "outcomes", "run_streams", "quarantine")
    asked = _time_ranges(None, question)
    lists = assemble({name: [] for name in names}, asked, [])
    return Report(
        made=datetime.now(timezone.utc), sources=list(paths), source="files", files=0, conditions=question.conditions,
        period=None, compared=None, **lists,
    )  # fmt: skip
