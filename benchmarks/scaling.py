"""How time and memory grow with the input: the same jobs over once, four times and sixteen times as many events.

    python -m benchmarks.scaling --base 140 --folder /var/tmp/balog-bench

Each size is loaded into tables of its own and reported on, out of the files and out of the tables; a warm-up over the
smallest comes first. Printed are the time, its growth beside that of the input, and the most memory that the driver
(its Java and its Python) has had by then: of the largest input so far, since the sizes only grow.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import click
from pyspark.sql import SparkSession

from balog.analytics import session
from balog.analytics.reporting.query import parse_query
from balog.analytics.reporting.spark_report import make_report
from balog.analytics.tables import open_store
from balog.analytics.tables.loader import load
from benchmarks.generate import events

_FACTORS = (1, 4, 16)


def load_tables(spark: SparkSession, root: Path, tables: Path) -> int:
    """Load into new tables; give the number of events."""
    shutil.rmtree(tables, ignore_errors=True)
    store = open_store(spark, str(tables))
    with store.writing():
        return load(spark, store, [str(root)]).rows["events"]


def ask(spark: SparkSession, place: Path) -> int:
    """Make the report; give the number of its events."""
    return sum(row.events for row in make_report(spark, [str(place)], parse_query()).channels)


def sizes(tables: Path) -> str:
    """Say what the tables weigh."""
    found = {"events": 0, "types": 0, "rollups": 0}
    for path in tables.glob("*/date=*/*.parquet"):
        name = path.parts[len(tables.parts)]
        found["rollups" if name.startswith("rollup_") else name if name == "events" else "types"] += path.stat().st_size
    return ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in found.items())


def peak(pid: int) -> float:
    """Give the most memory that a process has had, in MB (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def java() -> int:
    """Give this process's Java, its only child of that name."""
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == "java":
                return int(child)
    return os.getpid()


@click.command()
@click.option("--base", default=140, show_default=True, help="Millions of bytes of events, decompressed, of the 1 ×.")
@click.option("--rounds", default=3, show_default=True, help="Times that each job is done; medians are printed.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("/tmp/balog-bench"),
    show_default=True,
    help="Where the events and the tables are kept.",
)
@click.option("--quick", is_flag=True, help="A round of 1 and 4 MB: shows that it runs, measures nothing.")
def main(base: int, rounds: int, folder: Path, quick: bool) -> None:
    """Measure growth with the input."""
    base, rounds, factors = (1, 1, _FACTORS[:2]) if quick else (base, rounds, _FACTORS)
    spark = session("balog-bench", spark_driver_memory="2g")
    click.echo(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, Spark {spark.version}; "
        f"1 × is {base} MB of events, median of {rounds} rounds, driver's heap 2 GB"
    )
    first: dict[str, float] = {}
    for factor in (0, *factors):  # 0 warms up
        root, _ = events(folder, base * max(factor, 1) * 1_000_000)
        tables = folder / f"tables-{factor}"
        jobs: dict[str, Callable[[], int]] = {
            "load into tables": lambda root=root, tables=tables: load_tables(spark, root, tables),
            "report from files": lambda root=root: ask(spark, root),
            "report from tables": lambda tables=tables: ask(spark, tables),
        }  # fmt: skip
        told = []
        counts = set()
        for name, job in jobs.items():
            seconds = []
            for _ in range(rounds if factor else 1):
                began = time.perf_counter()
                counts.add(job())
                seconds.append(time.perf_counter() - began)
            median = statistics.median(seconds)
            first.setdefault(name, median) if factor else None
            told.append((name, median))
        if len(counts) != 1:
            raise click.ClickException(f"{factor} ×: the jobs saw different numbers of events: {sorted(counts)}")
        if factor:
            count = counts.pop()
            click.echo(f"\n{factor:3} × {count:,} events; driver at most {peak(os.getpid()) + peak(java()):,.0f} MB")
            for name, median in told:
                growth, rate = median / first[name], count / median
                click.echo(f"  {name:18} {median:7.2f} s  {growth:6.2f} × the time  {rate:10,.0f} events/s")
            weight = sum(path.stat().st_size for path in root.rglob("*.jsonl"))
            click.echo(f"  of {weight / 1e6:,.0f} MB of JSON lines the tables make: {sizes(tables)}")
        shutil.rmtree(tables, ignore_errors=True)
    spark.stop()


if __name__ == "__main__":
    main()
