"""Time a load of generated events: balog's tables, and what plain Spark does for the ``events`` table alone.

    python -m benchmarks.load --size 1100 --folder /var/tmp/balog-bench

``balog load`` takes duplicates out of the batch and against what is there, writes ``events``, a table for each payload
type and the rollups, and commits. Beside it, ``spark.read.json → dropDuplicates("id") → write.parquet`` by day, with
the schema given and the payload as text: no table of a payload type, no quarantine, no rollup, and nothing that is safe
to run again. Interleaved rounds, medians.
"""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path

import click
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from balog.analytics import session
from balog.analytics.tables import open_store
from balog.analytics.tables.loader import load
from benchmarks.generate import events
from benchmarks.history import show_ratio
from benchmarks.measure import archive_options, interleaved, machine, medians

_SCHEMA = """schema string, payload string, header struct<id string, channel string, timestamp timestamp, level string,
  composition boolean, context map<string,string>>"""


def with_balog(spark: SparkSession, root: Path, place: Path, *, again: bool = False) -> float:
    """Load into empty tables; or again into full ones that forgot what they read, where every event is a duplicate."""
    if not again:
        shutil.rmtree(place, ignore_errors=True)
    store = open_store(spark, str(place))
    if again:
        store.loaded().sources.clear()  # type: ignore[attr-defined]
    began = time.perf_counter()
    with store.writing():
        summary = load(spark, store, [str(root)])
    took = time.perf_counter() - began
    assert summary.duplicates if again else summary.rows["events"]
    return took


def with_spark(spark: SparkSession, root: Path, place: Path) -> float:
    """Write ``events`` by Spark alone."""
    shutil.rmtree(place, ignore_errors=True)
    began = time.perf_counter()
    read = spark.read.schema(_SCHEMA).option("recursiveFileLookup", True).json(str(root))
    rows = read.select("header.*", "schema", "payload", f.to_date("header.timestamp").alias("date"))
    typed = rows.withColumn("cls_type", f.get_json_object("payload", "$.cls_type")).dropDuplicates(["id"])
    typed.write.partitionBy("date").option("compression", "zstd").parquet(str(place))
    return time.perf_counter() - began


@click.command()
@archive_options
def main(size: int, rounds: int, folder: Path) -> None:
    """Compare a load with plain Spark's, on plain and gzip dumps."""
    roots = dict(zip(("plain", "gzip"), events(folder, size * 1_000_000)))
    spark = session("balog-bench", spark_driver_memory="4g")
    click.echo(f"{machine('pyspark', 'pyarrow', 'duckdb')}; {size} MB of events, median of {rounds} rounds")
    ours, theirs = folder / "tables", folder / "spark-tables"
    for form, root in roots.items():
        ways = {
            "balog load": partial(with_balog, spark, root, ours),
            "every event again": partial(with_balog, spark, root, ours, again=True),
            "Spark, events alone": partial(with_spark, spark, root, theirs),
        }
        each = interleaved(ways, rounds)
        found = medians(each)
        count = spark.read.parquet(str(ours / "events")).count()
        size_ = sum(path.stat().st_size for path in ours.glob("*/*/*.parquet"))
        click.echo(f"{form}: {count:,} events; all tables together {size_ / 1e6:,.1f} MB")
        for name, seconds in found.items():
            ratio = seconds / found["balog load"]
            click.echo(f"  {name:20} {seconds:7.2f} s  {count / seconds:10,.0f} events/s  {ratio:5.2f} × balog's time")
        show_ratio(f"the speed of Spark's events alone, {form}", each["Spark, events alone"], each["balog load"])
        assert count == spark.read.parquet(str(theirs)).count()
    shutil.rmtree(ours)
    shutil.rmtree(theirs)
    spark.stop()


if __name__ == "__main__":
    main()
