"""The folder's log and files, without Spark: what is there after a writer was killed at each step of a commit."""

import errno
import os
import resource
import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as t

from balog.analytics.tables.log import CommitLog
from balog.analytics.tables.parquet import ParquetStore
from balog.analytics.tables.store import LoadedSource, StagedFile, TableBatch, TableError, TablePart

COLUMNS = t.StructType([t.StructField("id", t.StringType()), t.StructField("timestamp", t.TimestampType())])
DAY = datetime(2026, 11, 20, tzinfo=timezone.utc)


def stage(store: ParquetStore, batch: str, *days: int, table: str = "events") -> TablePart:
    folder = Path(store.staging(batch)) / table
    files = []
    for number in days:
        moment = DAY + timedelta(days=number)
        path = folder / f"date={moment.date()}" / f"part-{batch}-{number}.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [f"{batch}-{number}"], "timestamp": [moment]}), path)
        files.append(StagedFile(str(path), moment.date(), 1, path.stat().st_size, moment, moment))
    return TablePart(COLUMNS, files)


def load(place: Path, batch: str, *days: int, **more: Any) -> None:
    store = ParquetStore(None, str(place))  # type: ignore[arg-type]
    with store.writing():
        store.commit(TableBatch(batch, {"events": stage(store, batch, *days)}, **more))


def ids(place: Path) -> list[str]:
    return sorted(pq.ParquetFile(path).read().column("id")[0].as_py() for path in place.glob("events/*/*.parquet"))


def logged(place: Path) -> list[str]:
    return sorted(file.path for file in CommitLog(place).state.tables["events"].files.values())


PROGRAM = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{folder!r}]
import test_parquet_store as mine
{work}
"""


def run(work: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(folder=str(Path(__file__).parent), work=work)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)


def kill_at_each_step(root: Path) -> None:
    """Load into a folder of its own again and again, killed right before or after the n-th change of the disk."""
    os.fsync = lambda _: None  # it guards against a power cut, and here nothing but a process ends
    load(root / "whole", "a", 0)  # what it takes is loaded once, and not by each child
    for step in range(1, 1000):
        child = os.fork()
        if not child:
            place = root / f"step{step}"
            load(place, "a", 0)
            die_at(step)
            load(place, "b", 0, 1, sources={"x": LoadedSource(1, 2.0)})
            os._exit(0)
        if not os.waitpid(child, 0)[1]:
            return


def die_at(step: int) -> None:
    count = 0

    def watched(real: Any) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == step and step % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return real(*args, **named)
            finally:
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call

    for name in ("link", "rename", "fsync", "mkdir", "unlink", "rmdir"):
        setattr(os, name, watched(getattr(os, name)))


def test_a_writer_that_is_killed_at_any_step_leaves_all_of_its_batch_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    done = run(f"mine.kill_at_each_step(Path({str(tmp_path)!r}))")
    assert done.returncode == 0, done.stderr
    outcomes = []
    for place in tmp_path.iterdir():
        load(place, "c", 5)
        found = ids(place)
        assert found in (["a-0", "c-5"], ["a-0", "b-0", "b-1", "c-5"]), (place.name, found)
        state = CommitLog(place).state
        assert ("x" in state.sources) == ("b-0" in found), place.name
        assert len(logged(place)) == len(found)
        assert not list((place / "_balog" / "staging").iterdir())
        outcomes.append(len(found))
    assert len(outcomes) > 15
    assert set(outcomes) == {2, 4}


def test_a_reader_finishes_what_a_killed_writer_committed(tmp_path: Path) -> None:
    load(tmp_path, "a", 0)
    work = f"os.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nmine.load(Path({str(tmp_path)!r}), 'b', 1)"
    assert run(work).returncode == -signal.SIGKILL
    assert ids(tmp_path) == ["a-0"]
    store = ParquetStore(None, str(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):  # there is no Spark behind this store; the files come first
        store.frame("events")
    assert ids(tmp_path) == ["a-0", "b-1"]


def test_two_writers_do_not_write_at_once(tmp_path: Path) -> None:
    store = ParquetStore(None, str(tmp_path))  # type: ignore[arg-type]
    other = ParquetStore(None, str(tmp_path))  # type: ignore[arg-type]
    with store.writing(), pytest.raises(TableError, match="another load is writing here"), other.writing():
        pass
    with other.writing():
        pass


def test_a_batch_of_a_stream_counts_once(tmp_path: Path) -> None:
    load(tmp_path, "s-0", 0, stream=("s", 0))
    load(tmp_path, "s-0-again", 1, stream=("s", 0))
    load(tmp_path, "s-1", 2, stream=("s", 1))
    assert ids(tmp_path) == ["s-0-0", "s-1-2"]


def test_the_log_is_read_from_its_latest_state_and_forgets_what_that_stands_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    early = CommitLog(tmp_path)
    load(tmp_path, "b0", 0)
    early.refresh()
    for number in range(1, 120):
        load(tmp_path, f"b{number}", number, sources={f"f{number}": LoadedSource(number, 1.5)})
    log = CommitLog(tmp_path)
    assert log.state.number == 120
    assert len(log.state.tables["events"].files) == 120
    assert log.state.sources["f7"] == LoadedSource(7, 1.5)
    assert min(log.numbers()) > 1
    early.refresh()
    assert early.state == log.state


def test_a_full_disk_at_the_commit_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(tmp_path, "a", 0)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        with pytest.raises(TableError, match="No space left on device; nothing was changed"):
            load(tmp_path, "b", 1)
    assert ids(tmp_path) == ["a-0"]
    load(tmp_path, "c", 2)
    assert ids(tmp_path) == ["a-0", "c-2"]


def test_a_log_that_may_grow_no_further_is_one_line_and_no_change(tmp_path: Path) -> None:
    load(tmp_path, "a", 0)
    work = f"""
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = mine.ParquetStore(None, {str(tmp_path)!r})
try:
    with store.writing():
        part = mine.stage(store, 'b', 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))
        store.commit(mine.TableBatch('b', {{'events': part}}))
except mine.TableError as error:
    sys.stderr.write(str(error))
"""
    done = run(work)
    assert "File too large; nothing was changed" in done.stderr
    load(tmp_path, "c", 2)
    assert ids(tmp_path) == ["a-0", "c-2"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_folder_that_may_not_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    if os.geteuid() == 0:  # who may write everywhere is told that it may not

        def refuse(path: Path, **_: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

        monkeypatch.setattr(Path, "mkdir", refuse)
    store = ParquetStore(None, str(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(TableError, match="cannot be written: Permission denied"), store.writing():
        pass


def test_a_place_below_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ParquetStore(None, str(tmp_path / "file" / "tables"))  # type: ignore[arg-type]
    with pytest.raises(TableError, match="cannot be written: Not a directory"), store.writing():
        pass
