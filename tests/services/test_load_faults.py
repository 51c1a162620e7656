"""``balog load`` killed in the middle, and run again: the tables are those of a load that nobody disturbed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

from balog.analytics.tables.log import CommitLog
from benchmarks.generate import lines
from tests.loaded_tables import load_tables
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.service]

Start = Callable[..., "subprocess.Popen[str]"]
PROGRAM = "from balog.cli import main; main(prog_name='balog')"
TABLES = {"events": "*", "log": "*", "metric": "*", "run": "*"}


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Starts ``balog load`` in a group of its own; all of it is ended with the test."""
    started: list[Any] = []

    def start(*words: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, "load", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, cwd=tmp_path, start_new_session=True, **pipes))  # type: ignore[call-overload]
        return started[-1]

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three overlapping dumps: a part of the first is in the second again, and the third is the first's end."""
    folder = tmp_path_factory.mktemp("dumps")
    made = list(lines(1_500_000, seed=5))
    third = len(made) // 3
    (folder / "a.jsonl").write_bytes(b"".join(made[: 2 * third]))
    (folder / "b.jsonl").write_bytes(b"".join(made[third:]))
    (folder / "c.jsonl").write_bytes(b"{ broken\n" + b"".join(made[third : 2 * third]))
    return folder


def asked(place: Path) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect() as connection:
        found = {}
        for table, columns in TABLES.items():
            files = f"read_parquet('{place}/{table}/*/*.parquet', union_by_name=true, hive_partitioning=true)"
            found[table] = connection.execute(f"SELECT {columns} FROM {files} ORDER BY id").fetchall()
        files = f"read_parquet('{place}/rollup_events/*/*.parquet')"
        counted = f'SELECT hour, channel, "level", cls_type, sum(events) FROM {files} GROUP BY ALL ORDER BY ALL'
        return {**found, "rollup_events": connection.execute(counted).fetchall()}


def loaded(place: Path) -> int:
    events = CommitLog(place).state.tables.get("events")
    return sum(file.rows for file in events.files.values()) if events else 0


def finish(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def wait_while(process: "subprocess.Popen[str]", is_there: Callable[[], bool]) -> None:
    """Wait for what a process does; its end before that is an error."""

    def is_over() -> bool:
        assert process.poll() is None, process.communicate()[1]
        return is_there()

    wait_for(is_over, 200)


@pytest.fixture(scope="module")
def clean(spark: Any, dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, ...]]]:
    """What an undisturbed load makes of the dumps."""
    place = tmp_path_factory.mktemp("clean") / "tables"
    load_tables(spark, place, [dumps])
    found = asked(place)
    assert len(found["events"]) == len({row[0] for row in found["events"]})
    return found


def test_a_driver_that_is_killed_at_any_time_loads_the_rest_when_it_is_run_again(
    spark: Any, start: Start, dumps: Path, tmp_path: Path, clean: Any
) -> None:
    place = tmp_path / "tables"
    staging = place / "_balog" / "staging"
    delays = random.Random(5)
    for _ in range(2):
        process = start(dumps, "--tables", place)
        wait_while(process, lambda: any(staging.glob("*/*")) or (place / "events").exists())
        time.sleep(delays.random() * 4)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    load_tables(spark, place, [dumps])
    assert asked(place) == clean
    assert not list(staging.iterdir())
    assert {Path(path).name for path in CommitLog(place).state.sources} == {"a.jsonl", "b.jsonl", "c.jsonl"}


def test_a_worker_that_is_killed_costs_nothing(
    spark: Any, start: Start, dumps: Path, tmp_path: Path, clean: Any
) -> None:
    place = tmp_path / "tables"
    process = start(dumps, "--tables", place)
    wait_while(process, lambda: any((place / "_balog" / "staging").glob("*")))
    killed = 0
    deadline = time.monotonic() + 20
    while not killed and process.poll() is None and time.monotonic() < deadline:
        for worker in workers(process.pid):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                killed += 1
    process.communicate(timeout=300)
    assert killed
    load_tables(spark, place, [dumps])  # a task that failed too often has ended the load; then this one does it
    assert asked(place) == clean


def test_following_is_ended_by_sigterm_and_goes_on_after_a_kill(
    start: Start, dumps: Path, tmp_path: Path, clean: Any
) -> None:
    place, folder = tmp_path / "tables", tmp_path / "growing"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes((dumps / "a.jsonl").read_bytes())
    process = start(folder, "--tables", place, "--follow")
    wait_while(process, lambda: any((place / "_balog" / "log").glob("*.json")))
    (folder / "b.jsonl").write_bytes((dumps / "b.jsonl").read_bytes())
    time.sleep(random.Random(7).random() * 8)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (folder / "c.jsonl").write_bytes((dumps / "c.jsonl").read_bytes())
    process = start(folder, "--tables", place, "--follow")
    wait_while(process, lambda: loaded(place) == len(clean["events"]))
    wait_while(process, lambda: any((place / "quarantine").glob("*/*.parquet")))
    process.send_signal(signal.SIGTERM)
    assert "1 line is invalid" in finish(process)
    assert asked(place) == clean


def workers(driver: int) -> list[int]:
    """Give Spark's Python workers below a driver, which its daemon forks."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != driver:
            with suppress(OSError):
                same = os.getpgid(int(entry.name)) == driver or os.getsid(int(entry.name)) == driver
                if same and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    if b"pyspark.daemon" in (Path("/proc") / str(parent) / "cmdline").read_bytes():
                        found.append(int(entry.name))
    return found
