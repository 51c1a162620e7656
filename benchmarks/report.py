"""Time the report's aggregates over an archive of events: balog's data source, spark.read.json and DuckDB, interleaved.

    python -m benchmarks.report --size 2200 --folder /var/tmp/balog-bench

All three do one pass over the files that gives small rows by hour (a rollup), and three tables out of those. Every
round asks each of the three once, so that what else the machine does falls on all; medians are compared, and the
tables of all three must be equal, percentiles within the error that their sketches promise.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import duckdb
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balog.analytics import functions, rollups, session
from balog.analytics.rollups.schemas import ERRORS, QUARANTINE
from balog.analytics.rollups.sketches import PERCENTILES, RANK_ERROR, K
from benchmarks.generate import events

Tables = dict[str, list[tuple[Any, ...]]]

_NAMES = ("channels", "metrics", "runs")
_SCHEMA = """schema string,
  header struct<channel string, timestamp timestamp, level string, context struct<application string, run_id string>>,
  payload struct<cls_type string, type string, metric string, value double,
                 tags struct<stream string, endpoint string, http_status_code string, stage string>,
                 outcome string, duration double, exit_code int, records bigint, bytes bigint>"""


def with_balog(spark: SparkSession, root: Path) -> Tables:
    """Use the data source's rollup."""
    return _asked(rollups.from_files(spark, [str(root)]), rollups.split)


def with_spark_json(spark: SparkSession, root: Path) -> Tables:
    """Use spark.read.json with the schema that is needed and no more, and one aggregate that gives a rollup."""
    events = spark.read.schema(_SCHEMA).option("recursiveFileLookup", True).json(str(root))
    metric = f.col("payload.cls_type") == "metric"
    value = f.when(metric, f.col("payload.value"))
    report = f.struct(f.col("header.timestamp").alias("at"), *(
        f.col(f"payload.{name}") for name in ("outcome", "duration", "exit_code", "records", "bytes")
    ))  # fmt: skip
    rolled = events.groupBy(
        f.date_trunc("hour", "header.timestamp").alias("hour"),
        f.col("header.channel").alias("channel"),
        f.col("header.level").alias("level"),
        f.col("header.context.application").alias("application"),
        f.col("header.context.run_id").alias("run_id"),
        *(f.when(metric, f.col(f"payload.{name}")).alias(name) for name in ("type", "metric")),
        *(f.col(f"payload.tags.{name}").alias(name) for name in ("stream", "endpoint", "stage")),
        f.col("payload.tags.http_status_code").alias("status"),
    ).agg(
        f.count("*").alias("events"),
        f.min("header.timestamp").alias("first"),
        f.max("header.timestamp").alias("last"),
        f.count(value).alias("count"),
        f.sum(value).alias("sum"),
        f.min(value).alias("low"),
        f.max(value).alias("high"),
        f.kll_sketch_agg_double(f.when(f.col("payload.type") != "counter", value), K).alias("sketch"),
        f.max(f.when(f.col("payload.cls_type") == "run", report)).alias("run"),
    )  # fmt: skip

    def split(rows: DataFrame) -> rollups.Rollups:
        failed = f.when(f.col("level").isin("ERROR", "CRITICAL"), f.col("events")).otherwise(0).alias("errors")
        values = rows.where("metric IS NOT NULL")
        values = values.withColumn("sketch", f.when(f.col("type") != "counter", f.col("sketch")))
        runs = rows.where("run_id IS NOT NULL").select("*", failed)
        nothing = (spark.createDataFrame([], schema) for schema in (ERRORS, QUARANTINE))
        return rollups.Rollups(rows, values, next(nothing), runs, next(nothing))

    return _asked(rolled, split)


def _asked(rows: DataFrame, split: Callable[[DataFrame], rollups.Rollups]) -> Tables:
    """Give the tables of rows that are made once; they are few, so one task without a shuffle is done first."""
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        kept.count()
        asked = split(kept.coalesce(1))
        frames = [getattr(functions, name)(asked) for name in _NAMES]
        with ThreadPoolExecutor(len(frames)) as threads:
            found = threads.map(lambda frame: [tuple(row.asDict().values()) for row in frame.collect()], frames)
            return dict(zip(_NAMES, found))
    finally:
        kept.unpersist(blocking=True)  # else a stop right behind it prints traces


def with_duckdb(root: Path, threads: int) -> Tables:
    """Use DuckDB alone. Each percentile is a pair: what a rank that is off by the sketches' error may give."""
    columns = """{
      'header': 'STRUCT(channel VARCHAR, "timestamp" TIMESTAMP, "level" VARCHAR,
                        context STRUCT(application VARCHAR, run_id VARCHAR))',
      'payload': 'STRUCT(cls_type VARCHAR, "type" VARCHAR, metric VARCHAR, "value" DOUBLE, tags STRUCT(stream VARCHAR,
                         endpoint VARCHAR, http_status_code VARCHAR, stage VARCHAR), outcome VARCHAR, duration DOUBLE,
                         exit_code INTEGER, records BIGINT, bytes BIGINT)'}"""
    bounds = [min(max(share + off, 0), 1) for share in PERCENTILES for off in (-2 * RANK_ERROR, 2 * RANK_ERROR)]
    pairs = ", ".join(f"q[{place}:{place + 1}]" for place in (1, 3, 5))
    errors = """CASE WHEN "level" IN ('ERROR', 'CRITICAL') THEN events ELSE 0 END"""
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(
            f"""CREATE TABLE rolled AS SELECT date_trunc('hour', header."timestamp") AS hour,
              header.channel AS channel, header."level" AS "level",
              header.context.application AS application, header.context.run_id AS run_id,
              CASE WHEN payload.cls_type = 'metric' THEN payload."type" END AS "type",
              CASE WHEN payload.cls_type = 'metric' THEN payload.metric END AS metric, payload.tags AS tags,
              count(*) AS events, min(header."timestamp") AS "first", max(header."timestamp") AS "last",
              count(payload."value") FILTER (payload.cls_type = 'metric') AS measured,
              sum(payload."value") FILTER (payload.cls_type = 'metric') AS total,
              min(payload."value") FILTER (payload.cls_type = 'metric') AS low,
              max(payload."value") FILTER (payload.cls_type = 'metric') AS high,
              list(payload."value") FILTER (payload.cls_type = 'metric' AND payload."type" <> 'counter') AS "values",
              arg_max(payload, header."timestamp") FILTER (payload.cls_type = 'run') AS run
            FROM read_json('{root}/**/*.jsonl*', format='newline_delimited', columns={columns}) GROUP BY ALL"""
        )
        channels = connection.execute(
            f"""SELECT channel, "level", sum(events)::BIGINT, sum({errors})::BIGINT, min("first"), max("last")
               FROM rolled GROUP BY ALL ORDER BY 1, 2"""
        ).fetchall()
        metrics = connection.execute(
            f"""WITH v AS (SELECT metric, "type", unnest("values") AS number FROM rolled),
                p AS (SELECT metric, "type", quantile_disc(number, {bounds}) AS q FROM v GROUP BY ALL),
                r AS (SELECT metric, "type", sum(measured)::BIGINT, sum(total), min(low), max(high)
                  FROM rolled WHERE metric IS NOT NULL GROUP BY ALL)
                SELECT r.*, {pairs} FROM r LEFT JOIN p ON r.metric = p.metric AND r."type" = p."type" ORDER BY 1, 2"""
        ).fetchall()
        runs = connection.execute(
            f"""SELECT run_id, list_sort(list(DISTINCT application)), min("first"), max("last"),
                 max(run.duration), max(run.outcome), max(run.exit_code), sum(run.records)::BIGINT,
                 sum(run.bytes)::BIGINT, sum(events)::BIGINT, sum({errors})::BIGINT
               FROM rolled WHERE run_id IS NOT NULL GROUP BY run_id ORDER BY 3 DESC, 1"""
        ).fetchall()
    return {"channels": channels, "metrics": metrics, "runs": runs}


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
            for name in list(ways)[:-1]:
                if wrong := differences(answers[name], answers["DuckDB alone"]):
                    raise click.ClickException(
                        f"{form}: {name} and DuckDB differ: {wrong[0]} (and {len(wrong) - 1} more)"
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
