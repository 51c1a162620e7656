"""Time the report's aggregates over an archive of events: balog's data source, spark.read.json and DuckDB, interleaved.

    python -m benchmarks.report --size 2200 --folder /var/tmp/balog-bench

All three do one pass over the files that gives small rows (a rollup), and the report's tables out of those. Every
round asks each of the three once, so that what else the machine does falls on all; medians are compared, and the
tables of all three must be equal.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from balog.analytics import session
from balog.analytics.reporting.report import read_rollup, tables
from balog.analytics.rollups.rollup import PERCENTILES
from benchmarks.generate import events

Tables = dict[str, list[tuple[Any, ...]]]

_SCHEMA = """schema string,
  header struct<channel string, timestamp timestamp, level string, context struct<application string, run_id string>>,
  payload struct<cls_type string, type string, metric string, value double, outcome string, duration double,
                 exit_code int, records bigint>"""


def with_balog(spark: SparkSession, root: Path) -> Tables:
    """Use the data source's rollup."""
    return _plain(tables(read_rollup(spark, [str(root)])))


def with_spark_json(spark: SparkSession, root: Path) -> Tables:
    """Use spark.read.json with the schema that is needed and no more, and one aggregate that gives a rollup."""
    events = spark.read.schema(_SCHEMA).option("recursiveFileLookup", True).json(str(root))
    metric = f.col("payload.cls_type") == "metric"
    value = f.when(metric, f.col("payload.value"))
    report = f.struct(
        f.col("header.timestamp").alias("at"),
        "payload.outcome",
        "payload.duration",
        "payload.exit_code",
        "payload.records",
    )
    rollup = events.groupBy(
        f.col("header.channel").alias("channel"),
        f.col("header.level").alias("level"),
        f.col("header.context.application").alias("application"),
        f.col("header.context.run_id").alias("run_id"),
        f.when(metric, f.col("payload.type")).alias("type"),
        f.when(metric, f.col("payload.metric")).alias("metric"),
    ).agg(
        f.count("*").alias("events"),
        f.min("header.timestamp").alias("first"),
        f.max("header.timestamp").alias("last"),
        f.count(value).alias("measured"),
        f.sum(value).alias("total"),
        f.collect_list(f.when(f.col("payload.type") != "counter", value)).alias("values"),
        f.max(f.when(f.col("payload.cls_type") == "run", report)).alias("run"),
    )  # fmt: skip
    nothing = f.lit(None).cast("struct<file string, offset bigint, reason string, raw string>")
    return _plain(tables(rollup.withColumn("quarantine", nothing)))


def with_duckdb(root: Path, threads: int) -> Tables:
    """Use DuckDB alone."""
    columns = """{
      'header': 'STRUCT(channel VARCHAR, "timestamp" TIMESTAMP, "level" VARCHAR,
                        context STRUCT(application VARCHAR, run_id VARCHAR))',
      'payload': 'STRUCT(cls_type VARCHAR, "type" VARCHAR, metric VARCHAR, "value" DOUBLE, outcome VARCHAR,
                         duration DOUBLE, exit_code INTEGER, records BIGINT)'}"""
    shares = "[" + ", ".join(map(str, PERCENTILES)) + "]"
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(
            f"""CREATE TABLE rolled AS SELECT header.channel AS channel, header."level" AS "level",
              header.context.application AS application, header.context.run_id AS run_id,
              CASE WHEN payload.cls_type = 'metric' THEN payload."type" END AS "type",
              CASE WHEN payload.cls_type = 'metric' THEN payload.metric END AS metric,
              count(*) AS events, min(header."timestamp") AS "first", max(header."timestamp") AS "last",
              count(payload."value") FILTER (payload.cls_type = 'metric') AS measured,
              sum(payload."value") FILTER (payload.cls_type = 'metric') AS total,
              list(payload."value") FILTER (payload.cls_type = 'metric' AND payload."type" <> 'counter') AS "values",
              arg_max(payload, header."timestamp") FILTER (payload.cls_type = 'run') AS run
            FROM read_json('{root}/**/*.jsonl*', format='newline_delimited', columns={columns}) GROUP BY ALL"""
        )
        channels = connection.execute(
            """SELECT channel, "level", sum(events)::BIGINT,
                 sum(CASE WHEN "level" IN ('ERROR', 'CRITICAL') THEN events ELSE 0 END)::BIGINT
               FROM rolled GROUP BY ALL ORDER BY 1, 2"""
        ).fetchall()
        metrics = connection.execute(
            f"""WITH v AS (SELECT metric, "type", unnest("values") AS number FROM rolled),
                p AS (SELECT metric, "type", quantile_cont(number, {shares}) AS q FROM v GROUP BY ALL)
                SELECT r.metric, r."type", sum(measured)::BIGINT, sum(total),
                  any_value(q[1]), any_value(q[2]), any_value(q[3])
                FROM rolled r LEFT JOIN p ON r.metric = p.metric AND r."type" = p."type"
                WHERE r.metric IS NOT NULL GROUP BY r.metric, r."type" ORDER BY 1, 2"""
        ).fetchall()
        runs = connection.execute(
            """SELECT run_id, list_sort(list(DISTINCT application)), min("first")::TIMESTAMP,
                 max(run.duration), max(run.outcome),
                 sum(run.records)::BIGINT, sum(events)::BIGINT,
                 sum(CASE WHEN "level" IN ('ERROR', 'CRITICAL') THEN events ELSE 0 END)::BIGINT
               FROM rolled WHERE run_id IS NOT NULL GROUP BY run_id ORDER BY 3 DESC, 1"""
        ).fetchall()
    return {"channels": channels, "metrics": metrics, "runs": runs}


def _plain(found: dict[str, list[dict[str, Any]]]) -> Tables:
    return {name: [tuple(row.values()) for row in rows] for name, rows in found.items() if name != "quarantine"}


def differences(ours: Tables, theirs: Tables) -> list[str]:
    """Say where two sets of tables differ; doubles may by the order in which they were added."""
    found = []
    for name, rows in ours.items():
        if len(rows) != len(theirs[name]):
            found.append(f"{name}: {len(rows)} rows and {len(theirs[name])}")
        found += [f"{name}: {a} and {b}" for a, b in zip(rows, theirs[name]) if not all(map(_same, a, b))]
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)


@click.command()
@click.option("--size", default=2200, show_default=True, help="Millions of bytes of events, decompressed.")
@click.option("--rounds", default=3, show_default=True, help="Times that each is asked, after one round to warm up.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("/tmp/balog-bench"),
    show_default=True,
    help="Where the events are kept.",
)
@click.option("--quick", is_flag=True, help="A round over 2 MB: shows that it runs, measures nothing.")
def main(size: int, rounds: int, folder: Path, quick: bool) -> None:
    """Compare the report with spark.read.json and DuckDB on plain and gzip dumps."""
    size, rounds = (2, 1) if quick else (size, rounds)
    roots = dict(zip(("plain", "gzip"), events(folder, size * 1_000_000)))
    spark = session("balog-bench", spark_driver_memory="4g")
    cores = os.cpu_count() or 1
    versions = f"Python {platform.python_version()}, Spark {spark.version}, DuckDB {duckdb.__version__}"
    click.echo(f"{platform.machine()}, {cores} cores, {versions}; {size} MB of events, median of {rounds} rounds")
    for form, root in roots.items():
        ways: dict[str, Callable[[], Tables]] = {
            "balog": lambda root=root: with_balog(spark, root),
            "spark.read.json": lambda root=root: with_spark_json(spark, root),
            "DuckDB alone": lambda root=root: with_duckdb(root, cores),
        }  # fmt: skip
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            answers = {}
            for name, ask in ways.items():
                began = time.perf_counter()
                answers[name] = ask()
                took = time.perf_counter() - began
                if number:
                    seconds[name].append(took)
            for name in list(ways)[1:]:
                if wrong := differences(answers["balog"], answers[name]):
                    raise click.ClickException(
                        f"{form}: balog and {name} differ: {wrong[0]} (and {len(wrong) - 1} more)"
                    )
        ours = statistics.median(seconds["balog"])
        count = sum(row[2] for row in answers["balog"]["channels"])
        click.echo(f"{form}: {count} events, all three equal")
        for name, times in seconds.items():
            median = statistics.median(times)
            each = ", ".join(f"{second:.2f}" for second in times)
            click.echo(f"  {name:16} {median:6.2f} s   {median / ours:5.2f} × balog's time   ({each})")
    spark.stop()


if __name__ == "__main__":
    main()
