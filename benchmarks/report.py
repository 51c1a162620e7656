"""Time the report's aggregates over an archive of events: balog, spark.read.json and DuckDB, interleaved.

    python -m benchmarks.report --size 1100 --folder /var/tmp/balog-bench

All do one pass over the files that gives the small rows of a rollup, by the same keys: hour, channel, level, cls_type,
application and run; metrics with their tags; errors; the runs' reports. Out of those come four tables. Where balog
masks an error's message for its fingerprint, the others group by the exception's type and the message as it is; they
leave out payloads with many metrics, which the events have none of, and check no line. ``balog, rollups`` asks the same
of tables that were loaded before.

``balog, embedded`` is the same reader in child processes, and DuckDB; ``balog, Spark`` is the data source in a warm
session. From the shell, whole commands are measured, with Python's (and Java's) start, and with their memory.

Every round asks each once, so that what else the machine does falls on all; medians are compared, and the tables of all
must be equal, percentiles within the error that their sketches promise. Processor time is that of all processes.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import duckdb
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balog.analytics import functions, rollups, session
from balog.analytics.frame_engine import engine_of
from balog.analytics.rollups.frames import FRAMES
from balog.analytics.rollups.raw_files import open_rollups
from balog.analytics.sketches import PERCENTILES, RANK_ERROR, K
from balog.analytics.tables import open_store, open_tables
from balog.analytics.tables.loader import load
from benchmarks.commands import CommandRun, run_commands
from benchmarks.generate import events
from benchmarks.history import show_ratio
from benchmarks.measure import archive_options, interleaved, machine, medians, processor_seconds

Tables = dict[str, list[tuple[Any, ...]]]

_TAGS = ("application", "stream", "endpoint", "status")
_FAILURES = ("application", "channel", "level", "error_type")
_ERRORS = f"""SELECT {", ".join(_FAILURES)}, sum(events) AS events, min(first) AS first, max(last) AS last
  FROM {{errors}} GROUP BY {", ".join(_FAILURES)} ORDER BY {", ".join(_FAILURES)}"""
_SCHEMA = """schema string, header struct<id string, channel string, timestamp timestamp, level string,
    context struct<application string, run_id string>>,
  payload struct<cls_type string, type string, metric string, value double,
    tags struct<stream string, endpoint string, http_status_code string, status string, stage string>,
    outcome string, duration double, exit_code int, records bigint, bytes bigint, signal string, problem string,
    streams array<struct<stream string, records bigint, bytes bigint>>,
    message string, reason string, error_type string, exc_text string>"""
_REPORT = ("outcome", "duration", "exit_code", "records", "bytes", "signal", "problem", "streams")


def with_balog(spark: SparkSession, root: Path) -> Tables:
    """Use the data source's rollup."""
    return _kept(rollups.from_files(spark, [str(root)]), rollups.split)


def with_embedded(root: Path) -> Tables:
    """Use the reader in child processes, and DuckDB, as ``balog report`` does."""
    with open_rollups({"path": str(root)}) as found:
        asked = found.rollups
        answers = {
            "channels": functions.channels(asked),
            "metrics": functions.metrics(asked, by=_TAGS),
            "failures": engine_of(asked.errors).sql(_ERRORS, errors=asked.errors),
            "runs": functions.runs(asked),
        }
        return {name: [tuple(map(_plain, row.values())) for row in answer.rows()] for name, answer in answers.items()}  # type: ignore[operator]


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def with_tables(spark: SparkSession, place: Path) -> Tables:
    """Use the rollups that ``balog load`` stored, of which a few files are one task, as in ``balog report``."""
    return _report_of_rows(rollups.Rollups(*(frame.coalesce(1) for frame in open_tables(spark, str(place)).rollups())))


def with_spark_json(spark: SparkSession, root: Path) -> Tables:
    """Use spark.read.json with the schema that is needed and no more, and one aggregate that gives a rollup."""
    header, payload, tags = (partial("{}.{}".format, name) for name in ("header", "payload", "payload.tags"))
    events = spark.read.schema(_SCHEMA).option("recursiveFileLookup", True).json(str(root))
    metric = f.col("payload.cls_type") == "metric"
    failed = f.col("header.level").isin("ERROR", "CRITICAL")
    value = f.when(metric, f.col("payload.value"))
    moment = f.col("header.timestamp")
    report = f.struct(moment.alias("at"), *map(payload, _REPORT))
    said = f.coalesce(*map(payload, ("message", "reason", "problem")))
    raised = f.regexp_extract("payload.exc_text", r"([A-Za-z_.]+)(: [^\n]*)?$", 1)
    example = f.struct(moment, *map(header, ("id", "context.run_id")), said.alias("message"))
    rolled = events.groupBy(
        f.date_trunc("hour", moment).alias("hour"),
        *map(header, ("channel", "level", "context.application", "context.run_id")),
        f.col("payload.cls_type").alias("cls_type"),
        *(f.when(metric, f.col(payload(name))).alias(name) for name in ("type", "metric")),
        *(f.when(metric, f.col(tags(name))).alias(name) for name in ("stream", "endpoint", "stage")),
        f.when(metric, f.coalesce(tags("http_status_code"), tags("status"))).alias("status"),
        f.when(failed, f.coalesce("payload.error_type", f.nullif(raised, f.lit("")))).alias("error_type"),
        f.when(failed, said).alias("message"),
    ).agg(
        f.count("*").alias("events"),
        f.min(moment).alias("first"),
        f.max(moment).alias("last"),
        f.count(value).alias("count"),
        f.sum(value).alias("sum"),
        f.min(value).alias("low"),
        f.max(value).alias("high"),
        f.kll_sketch_agg_double(f.when(f.col("payload.type") != "counter", value), K).alias("sketch"),
        f.max(f.when(f.col("payload.cls_type") == "run", report)).alias("run"),
        f.min(f.when(failed, example)).alias("example"),
    )  # fmt: skip

    def split(rows: DataFrame) -> rollups.Rollups:
        is_error = f.col("level").isin("ERROR", "CRITICAL")
        values = rows.where("metric IS NOT NULL AND count > 0")
        values = values.withColumn("sketch", f.when(f.col("type") != "counter", f.col("sketch")))
        runs = rows.where("run_id IS NOT NULL").withColumn("errors", f.when(is_error, f.col("events")).otherwise(0))
        return rollups.Rollups(
            rows, values, rows.where(is_error), runs, spark.createDataFrame([], FRAMES["quarantine"])
        )

    return _kept(rolled, split)


def _kept(rows: DataFrame, split: Callable[[DataFrame], rollups.Rollups]) -> Tables:
    """Give the tables of rows that are made once; they are few, so one task without a shuffle is done first."""
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        kept.count()
        return _report_of_rows(split(kept.coalesce(1)))
    finally:
        kept.unpersist(blocking=True)  # else a stop right behind it prints traces


def _report_of_rows(asked: rollups.Rollups) -> Tables:
    kinds = asked.errors.groupBy(*_FAILURES)
    frames = {
        "channels": functions.channels(asked),
        "metrics": functions.metrics(asked, by=_TAGS),
        "failures": kinds.agg(f.sum("events"), f.min("first"), f.max("last")).orderBy(*_FAILURES),
        "runs": functions.runs(asked),
    }
    with ThreadPoolExecutor(len(frames)) as threads:
        found = threads.map(lambda frame: [tuple(row) for row in frame.collect()], frames.values())
        return dict(zip(frames, found))


def with_duckdb(root: Path, threads: int) -> Tables:
    """Use DuckDB alone. Each percentile is a pair: what a rank that is off by the sketches' error may give."""
    columns = """{
      'header': 'STRUCT(id VARCHAR, channel VARCHAR, "timestamp" TIMESTAMP, "level" VARCHAR,
                        context STRUCT(application VARCHAR, run_id VARCHAR))',
      'payload': 'STRUCT(cls_type VARCHAR, "type" VARCHAR, metric VARCHAR, "value" DOUBLE, tags STRUCT(stream VARCHAR,
                         endpoint VARCHAR, http_status_code VARCHAR, status VARCHAR, stage VARCHAR), outcome VARCHAR,
                         duration DOUBLE, exit_code INTEGER, records BIGINT, bytes BIGINT, signal VARCHAR,
                         problem VARCHAR, streams STRUCT(stream VARCHAR, records BIGINT, bytes BIGINT)[],
                         message VARCHAR, reason VARCHAR, error_type VARCHAR, exc_text VARCHAR)'}"""
    bounds = [min(max(share + off, 0), 1) for share in PERCENTILES for off in (-2 * RANK_ERROR, 2 * RANK_ERROR)]
    pairs = ", ".join(f"q[{place}:{place + 1}]" for place in (1, 3, 5))
    failed = """"level" IN ('ERROR', 'CRITICAL')"""
    errors = f"CASE WHEN {failed} THEN events ELSE 0 END"
    said = "coalesce(payload.message, payload.reason, payload.problem)"
    raised = r"nullif(regexp_extract(payload.exc_text, '([A-Za-z_.]+)(: [^\n]*)?$', 1), '')"
    with duckdb.connect(config={"threads": threads or os.cpu_count() or 1}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            f"""CREATE TABLE rolled AS SELECT date_trunc('hour', moment) AS hour, channel, "level", cls_type,
              application, run_id, CASE WHEN is_metric THEN payload."type" END AS "type",
              CASE WHEN is_metric THEN payload.metric END AS metric,
              CASE WHEN is_metric THEN payload.tags.stream END AS stream,
              CASE WHEN is_metric THEN payload.tags.endpoint END AS endpoint,
              CASE WHEN is_metric THEN payload.tags.stage END AS stage,
              CASE WHEN is_metric THEN coalesce(payload.tags.http_status_code, payload.tags.status) END AS status,
              CASE WHEN {failed} THEN coalesce(payload.error_type, {raised}) END AS error_type,
              CASE WHEN {failed} THEN {said} END AS message,
              count(*) AS events, min(moment) AS "first", max(moment) AS "last", count(number) AS measured,
              sum(number) AS total, min(number) AS low, max(number) AS high,
              list(number) FILTER (number IS NOT NULL AND payload."type" <> 'counter') AS "values",
              arg_max(payload, moment) FILTER (cls_type = 'run') AS run,
              min(struct_pack(moment, id, run_id, message := {said})) FILTER ({failed}) AS example
            FROM (SELECT header.id AS id, header.channel AS channel, header."timestamp" AS moment,
              header."level" AS "level", header.context.application AS application, header.context.run_id AS run_id,
              payload.cls_type AS cls_type, payload.cls_type = 'metric' AS is_metric,
              CASE WHEN payload.cls_type = 'metric' THEN payload."value" END AS number, payload
            FROM read_json('{root}/**/*.jsonl*', format='newline_delimited', columns={columns})) GROUP BY ALL"""
        )
        asked = {
            "channels": f"""SELECT channel, "level", sum(events)::BIGINT, sum({errors})::BIGINT, min("first"),
              max("last") FROM rolled GROUP BY ALL ORDER BY 1, 2""",
            "metrics": f"""SELECT application, stream, endpoint, status, metric, "type", measured, total, low, high,
              {pairs} FROM (SELECT application, stream, endpoint, status, metric, "type",
                sum(measured)::BIGINT AS measured, sum(total) AS total, min(low) AS low, max(high) AS high,
                list_aggregate(flatten(list("values")), 'quantile_disc', {bounds}) AS q
              FROM rolled WHERE metric IS NOT NULL GROUP BY ALL)
              ORDER BY ALL NULLS FIRST""",
            "failures": f"""SELECT application, channel, "level", error_type, sum(events)::BIGINT, min("first"),
              max("last") FROM rolled WHERE {failed} GROUP BY ALL ORDER BY ALL NULLS FIRST""",
            "runs": f"""SELECT run_id, list_sort(list(DISTINCT application)), min("first"), max("last"),
                max(run.duration), max(run.outcome), max(run.exit_code), sum(run.records)::BIGINT,
                sum(run.bytes)::BIGINT, sum(events)::BIGINT, sum({errors})::BIGINT
              FROM rolled WHERE run_id IS NOT NULL GROUP BY run_id ORDER BY 3 DESC, 1""",
        }
        return {name: connection.execute(sql).fetchall() for name, sql in asked.items()}


def differences(ours: Tables, theirs: Tables) -> list[str]:
    """Say where tables differ from DuckDB's; doubles may by the order in which they were added."""
    found = []
    for name, rows in ours.items():
        if len(rows) != len(theirs[name]):
            found.append(f"{name}: {len(rows)} rows and {len(theirs[name])}")
        found += [f"{name}: {a} and {b}" for a, b in zip(rows, theirs[name]) if not all(map(_same, a, b))]
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9)
    if isinstance(a, float) and isinstance(b, list):
        return bool(b[0] <= a <= b[1])
    return bool(a == b)


def from_shell(folder: Path, root: Path, day: Path, rounds: int) -> dict[str, CommandRun]:
    """Run whole commands: a report from files on both engines, DuckDB alone, and questions on tables of a day."""
    balog, python = Path(sys.executable).with_name("balog"), sys.executable
    alone = f"from pathlib import Path; from benchmarks.report import with_duckdb; with_duckdb(Path({str(root)!r}), 0)"
    sql = "SELECT cls_type, count(*) AS n FROM events GROUP BY ALL"
    page = folder / "report.html"
    commands: dict[str, list[str | Path]] = {
        "files, embedded": [balog, "report", root, "--engine", "duckdb", "--no-html"],
        "files, Spark": [balog, "report", root, "--engine", "spark", "--no-html"],
        "files, DuckDB alone": [python, "-c", alone],
        "day, report": [balog, "report", day, "--html", page],
        "day, no page": [balog, "report", day, "--no-html"],
        "day, query": [balog, "query", sql, "--tables", day],
    }
    return run_commands(commands, Path(__file__).parents[1], rounds)


def _timed(answers: dict[str, Tables], spent: dict[str, list[float]], name: str, ask: Callable[[], Tables]) -> float:
    began, cpu = time.perf_counter(), processor_seconds()
    answers[name] = ask()
    spent.setdefault(name, []).append(processor_seconds() - cpu)
    return time.perf_counter() - began


@click.command()
@archive_options
def main(size: int, rounds: int, folder: Path) -> None:
    """Compare the report with spark.read.json and DuckDB on plain and gzip dumps, and with stored rollups."""
    roots = dict(zip(("plain", "gzip"), events(folder, size * 1_000_000)))
    spark = session("balog-bench", spark_driver_memory="4g")
    cores = spark.sparkContext.defaultParallelism
    click.echo(f"{machine('pyspark', 'duckdb')}; {size} MB of events, medians of {rounds} rounds")
    place = folder / "report-tables"
    shutil.rmtree(place, ignore_errors=True)
    store = open_store(spark, str(place))
    with store.writing():
        load(spark, store, [str(roots["plain"])])
    day = folder / "report-day"
    shutil.rmtree(day, ignore_errors=True)
    store = open_store(spark, str(day))
    with store.writing():
        load(spark, store, [str(events(folder, min(size, 100) * 1_000_000, days=1)[0])])
    for form, root in roots.items():
        answers: dict[str, Tables] = {}
        spent: dict[str, list[float]] = {}
        timed = partial(_timed, answers, spent)
        ways: dict[str, Callable[[], Tables]] = {
            "balog, embedded": partial(with_embedded, root),
            "balog, Spark": partial(with_balog, spark, root),
            "spark.read.json": partial(with_spark_json, spark, root),
            "DuckDB alone": partial(with_duckdb, root, cores),
            "balog, rollups": partial(with_tables, spark, place),
        }
        seconds = interleaved({name: partial(timed, name, ask) for name, ask in ways.items()}, rounds)
        for name, tables in answers.items():
            if wrong := differences(tables, answers["DuckDB alone"]) if name != "DuckDB alone" else []:
                raise click.ClickException(f"{form}: {name} and DuckDB differ: {wrong[0]} (and {len(wrong) - 1} more)")
        count = sum(row[2] for row in answers["balog, Spark"]["channels"])
        click.echo(f"{form}: {count:,} events, all tables equal")
        middle, cpu = medians(seconds), medians({name: times[-rounds:] for name, times in spent.items()})
        click.echo("                     time   × Spark   processor   × Spark   times of the rounds")
        for name, median in middle.items():
            each = ", ".join(f"{second:.2f}" for second in seconds[name])
            ratios = median / middle["balog, Spark"], cpu[name] / cpu["balog, Spark"]
            click.echo(
                f"  {name:16} {median:6.2f} s  {ratios[0]:9.2f}  {cpu[name]:8.2f} s  {ratios[1]:9.2f}   ({each})"
            )
        _show_ratios(form, seconds)
    spark.stop()
    click.echo("from the shell, medians: time, processor time, most memory")
    for name, run in from_shell(folder, roots["plain"], day, rounds).items():
        click.echo(f"  {name:20} {run.seconds:6.2f} s  {run.processor:6.2f} s  {run.memory / 1e6:7,.0f} MB")
    shutil.rmtree(place)
    shutil.rmtree(day)


def _show_ratios(form: str, seconds: dict[str, list[float]]) -> None:
    show_ratio(f"DuckDB's time alone, {form}", seconds["balog, embedded"], seconds["DuckDB alone"], "≤ 1.5")
    target = "≥ 2.5" if form == "plain" else "≥ 2"
    show_ratio(f"spark.read.json's speed, {form}", seconds["spark.read.json"], seconds["balog, Spark"], target)


if __name__ == "__main__":
    main()
