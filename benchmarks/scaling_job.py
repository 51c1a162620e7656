"""One driver of the benchmark ``scaling``: loads and reports on a cluster, and prints what each cost, a JSON line each.

    python -m benchmarks.scaling_job '{"master": "spark://127.0.0.1:7077", …}'

A driver is a process of its own, so that the most memory it has had is that of one size of input.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from balog.analytics import session
from balog.analytics.reporting.query import parse_query
from balog.analytics.reporting.spark_report import make_report
from balog.analytics.tables import open_store
from balog.analytics.tables.loader import LoadOptions, load
from benchmarks.measure import busy_seconds, peak_memory, processes, processor_seconds

__all__ = ["Measured", "Task", "files_of"]


class Task(msgspec.Struct, frozen=True):
    """What a driver is to do.

    Attributes:
        master: the URL of the cluster's master.
        workers: how many it has, of one core each.
        archives: the folders of events, the smallest first.
        batches: for each archive, the bytes of a commit in each of the loads to measure; 0 is the default.
        folder: where tables and Spark's event log go.
        rounds: how often each job is done.
        warm: load the smallest archive and report on it before anything is measured.
    """

    master: str
    workers: int
    archives: tuple[str, ...]
    batches: tuple[tuple[int, ...], ...]
    folder: str
    rounds: int
    warm: bool = True


class Measured(msgspec.Struct):
    """What one job cost.

    Attributes:
        job: ``load`` or ``report``.
        workers: of one core each.
        bytes: of the input.
        events: found in it.
        batches: commits of the load; 0 for a report.
        began, seconds: since the epoch; how long it took.
        processor: seconds of processor time of the driver and the cluster.
        others: cores that were busy with something else meanwhile.
        tasks, shuffle: of Spark's event log: tasks that ended, and bytes that they wrote for others.
        files, sizes: of a load: files that each kind of table got, and their bytes; days: those of its events.
        driver: the most memory that Java and Python of the driver have had by then, in MB; worker: that of the largest
            Python process of an executor.
    """

    job: str
    workers: int
    bytes: int
    events: int
    batches: int
    began: float
    seconds: float
    processor: float
    others: float
    tasks: int = 0
    shuffle: int = 0
    files: dict[str, int] = {}
    sizes: dict[str, int] = {}
    days: int = 0
    driver: float = 0.0
    worker: float = 0.0


def files_of(tables: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of Parquet files of each kind of table, and their bytes."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for path in tables.glob("*/date=*/*.parquet"):
        name = path.parts[len(tables.parts)]
        kind = "rollups" if name.startswith("rollup_") else name if name in ("events", "quarantine") else "types"
        files[kind] += 1
        sizes[kind] += path.stat().st_size
    return dict(files), dict(sizes)


def main(task: Task) -> None:
    """Do the task."""
    folder = Path(task.folder)
    log = folder / "event-log"
    log.mkdir(parents=True)
    spark = session(
        "balog-scaling",
        master=task.master,
        spark_driver_host="127.0.0.1",
        spark_driver_bindAddress="127.0.0.1",
        spark_ui_enabled="false",
        spark_eventLog_enabled="true",
        spark_eventLog_dir=log.as_uri(),
        spark_eventLog_compress="false",
        spark_eventLog_rolling_enabled="false",
    )
    _wait_for_executors(spark, task.workers)
    if task.warm:
        _load(spark, Path(task.archives[0]), folder / "tables", 0)
        _report(spark, Path(task.archives[0]))
    measured = [one for place in zip(task.archives, task.batches) for one in _measured(spark, task, *place)]
    spark.stop()
    ended = _ended(log)
    for one in measured:
        within = [(at, wrote) for at, wrote in ended if one.began <= at <= one.began + one.seconds]
        one.tasks, one.shuffle = len(within), sum(wrote for _, wrote in within)
        sys.stdout.write(msgspec.json.encode(one).decode() + "\n")


def _measured(spark: SparkSession, task: Task, archive: str, batches: tuple[int, ...]) -> Iterator[Measured]:
    root, tables = Path(archive), Path(task.folder, "tables")
    size = sum(path.stat().st_size for path in root.rglob("*.jsonl"))
    for _ in range(task.rounds):
        for batch in batches:
            load = partial(_load, spark, root, tables, batch)
            one = _measure("load", task.workers, size, load)
            one.files, one.sizes = files_of(tables)
            one.days = len({path.name for path in tables.glob("events/date=*")})
            yield one
        yield _measure("report", task.workers, size, partial(_report, spark, root))


def _measure(job: str, workers: int, size: int, run: Callable[[], tuple[int, int]]) -> Measured:
    parent = os.getppid()  # of the cluster's processes, too
    own, busy, at, began = processor_seconds(parent), busy_seconds(), time.time(), time.perf_counter()
    events, batches = run()
    seconds = time.perf_counter() - began
    own, busy = processor_seconds(parent) - own, busy_seconds() - busy
    others = max(0.0, busy - own) / seconds
    driver = [pid for pid, name in processes().items() if pid == os.getpid() or name == "java"]
    python = [peak_memory(pid) for pid, name in processes(parent).items() if name.startswith("python")]
    measured = Measured(job, workers, size, events, batches, at, seconds, own, others)
    measured.driver, measured.worker = sum(map(peak_memory, driver)), max(python)
    return measured


def _load(spark: SparkSession, root: Path, tables: Path, batch: int) -> tuple[int, int]:
    """Load into new tables; return the number of events, and that of commits."""
    shutil.rmtree(tables, ignore_errors=True)
    store = open_store(spark, str(tables))
    options = LoadOptions(batch_bytes=batch) if batch else LoadOptions()
    with store.writing():
        events = load(spark, store, [str(root)], options).rows["events"]
    return events, store.loaded().commits


def _report(spark: SparkSession, root: Path) -> tuple[int, int]:
    """Make the report; return the number of its events."""
    return sum(row.events for row in make_report(spark, [str(root)], parse_query()).channels), 0


def _wait_for_executors(spark: SparkSession, count: int) -> None:
    until = time.monotonic() + 300
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() <= count:  # it counts the driver, too
        if time.monotonic() > until:
            raise SystemExit(f"{count} executors are not there after five minutes")
        time.sleep(0.1)


class _TaskInfo(msgspec.Struct, rename={"finish": "Finish Time"}):
    finish: int


class _Shuffle(msgspec.Struct, rename={"written": "Shuffle Bytes Written"}):
    written: int = 0


class _Metrics(msgspec.Struct, rename={"shuffle": "Shuffle Write Metrics"}):
    shuffle: _Shuffle = msgspec.field(default_factory=_Shuffle)


class _TaskEnd(msgspec.Struct, rename={"info": "Task Info", "metrics": "Task Metrics"}):
    info: _TaskInfo
    metrics: _Metrics | None = None


def _ended(log: Path) -> list[tuple[float, int]]:
    """Return when each task of an event log ended, in seconds since the epoch, and the bytes that it shuffled."""
    found = []
    for path in log.iterdir():
        for line in path.read_bytes().splitlines():
            if line.startswith(b'{"Event":"SparkListenerTaskEnd"'):
                end = msgspec.json.decode(line, type=_TaskEnd)
                found.append((end.info.finish / 1000, end.metrics.shuffle.written if end.metrics else 0))
    return found


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Task))
