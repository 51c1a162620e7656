"""Makes the report on Spark: from raw events, from tables, or from their rollups."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balog.analytics import rollups as rolling
from balog.analytics.reading.spark_types import TEXT_EVENT, literal
from balog.analytics.reporting.model import Report
from balog.analytics.reporting.query import ReportQuery
from balog.analytics.reporting.report import report_of
from balog.analytics.rollups import Rollups
from balog.analytics.rollups.schemas import COPIES
from balog.analytics.sessions import parallelism
from balog.analytics.tables import is_tables, open_tables
from balog.analytics.tables.parquet import ParquetStore


def make_report(spark: SparkSession, paths: Sequence[str], query: ReportQuery, files: int | None = None) -> Report:
    """Read the data and make the report.

    Args:
        spark: a session with the format ``balog``.
        paths: as the format takes them; or one location of tables.
        query: what to report.
        files: the number of files, for the report.

    Raises:
        ConfigError: a path does not exist.
    """
    if is_tables(paths[0]):
        return _of_tables(spark, paths, query)
    options = {"parallel": str(parallelism(spark))}
    if query.of_rollups:
        times = {"since": query.earliest, "until": query.until}
        named = {name: when.isoformat() for name, when in times.items() if when is not None}
        rows = rolling.from_files(spark, paths, **options, **named)
    else:
        events = spark.read.format("balog").options(**options).schema(TEXT_EVENT)
        rows = rolling.from_events(_select(events.load(list(paths)), query))
    return _of_rows(rows, query, paths, "files", files)


def _of_tables(spark: SparkSession, paths: Sequence[str], query: ReportQuery) -> Report:
    tables = open_tables(spark, paths[0])
    if query.of_rollups and "rollup_events" in tables.names():
        return report_of(_stored(tables, query), query, paths, "rollups")
    events = _select(tables.frame("events", query.earliest, query.until), query)
    return _of_rows(rolling.from_events(events, once=False), query, paths, "events")


def _stored(tables: ParquetStore, query: ReportQuery) -> Rollups:
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
    if query.where is not None:
        events = events.withColumn("payload", f.try_parse_json("payload_json"))
        wanted &= f.expr(query.where.to_spark())
    if "quarantine" in events.columns:
        wanted |= f.col("quarantine").isNotNull()
    return events.where(wanted).drop("payload")


def _of_rows(
    rows: DataFrame, query: ReportQuery, paths: Sequence[str], source: str, files: int | None = None
) -> Report:
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        # reads the files; the queries below run concurrently
        copies = kept.where(f"kind = '{COPIES}'").agg(f.coalesce(f.sum("count"), f.lit(0))).collect()[0][0]
        report = report_of(rolling.split(kept), query, paths, source, files)
        return msgspec.structs.replace(report, duplicates=copies)
    finally:
        kept.unpersist(blocking=True)  # otherwise stopping right after this would print traces
