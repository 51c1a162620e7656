"""The store of tables: a folder of Parquet files in Hive's layout, with a log. The stores of catalogs derive from it.

The loader stages a batch as Parquet files below ``ParquetStore.staging(batch)``, in the layout
``<table>/date=YYYY-MM-DD/<name>.parquet``, and then calls ``commit`` once. The columns are in ``TablePart.schema``.

The rows are in ``FOLDER/<table>/date=YYYY-MM-DD/part-….parquet``, for any reader. ``FOLDER/_balog/`` is internal:
``log/`` defines the files of each table, ``staging/<batch>/`` has the files of a batch until they are moved. A commit
is an entry of the log. After it, the files are moved by the first process that gets to it: the writer, the next writer,
or a reader.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, datetime, timezone
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from balog.analytics.engine import micros
from balog.analytics.rollups.frames import hours_between
from balog.analytics.rollups.schemas import Rollups
from balog.analytics.tables.log import (
    FOLDER,
    Commit,
    CommitLog,
    TableCommit,
    TableFile,
    folder_of,
    is_within,
    read_columns,
)
from balog.analytics.tables.store import ROLLUPS, LoadHistory, StagedFile, TableBatch, TableError, TablePart, read_files
from balog.common.storage.local_files import lock, sync_folders


class ParquetStore:
    """The store of a folder on a disk that all executors see. ``location`` is a path or a ``file:`` URL.

    Opening a store creates nothing; the first commit or ``staging`` does. Every table has its columns and
    ``date date``, the UTC day by which it is partitioned.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark, self.location = spark, location
        self._root = folder_of(location)
        self._log = CommitLog(self._root)

    def names(self) -> list[str]:
        """Return the tables, sorted."""
        self._log.refresh()
        return sorted(self._log.state.tables)

    def schema(self, table: str) -> t.StructType | None:
        """Return a table's columns without ``date``, or None if there is no such table."""
        state = self._log.state.tables.get(table)
        return read_columns(state.columns) if state else None

    def frame(self, table: str, since: datetime | None = None, until: datetime | None = None) -> DataFrame:
        """Return a table's columns and ``date``; files outside of ``since`` to ``until`` are omitted, rows are not.

        The frame is a snapshot: it does not have later commits. A query fails if its files have been compacted or
        expired before it starts; call this method again then.

        Raises:
            TableError: there is no such table, or a commit's files can't be moved.
        """
        self._log.refresh()
        self._finish()
        state = self._log.state.tables.get(table)
        if state is None:
            raise TableError(f"no table {table}; there are: {', '.join(self.names()) or 'none'}", self.location)
        columns = t.StructType([*read_columns(state.columns), t.StructField("date", t.DateType())])
        folder = self._root / table
        paths = [str(folder / file.path) for file in state.files.values() if is_within(file, since, until)]
        if not paths:
            return self._spark.createDataFrame([], columns)
        return read_files(self._spark, columns, paths, str(folder))

    def rollups(self, since: datetime | None = None, until: datetime | None = None) -> Rollups:
        """Return the stored rollups of the hours that begin at or after ``since`` and before ``until``.

        Raises:
            TableError: these tables have no rollups.
        """
        frames = {name: self.frame(table, since, until).drop("date") for name, table in ROLLUPS.items()}
        return Rollups(**{name: hours_between(frame, since, until) for name, frame in frames.items()})

    def loaded(self) -> LoadHistory:
        """Return the history of commits."""
        state = self._log.state
        floor = date.fromisoformat(state.floor) if state.floor else None
        return LoadHistory(state.sources, state.streams, floor, state.number)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock out other writers; finish the commits of an earlier one, and remove what was never committed.

        Raises:
            TableError: another process is writing, or the folder can't be written.
        """
        path = self._root / FOLDER / "lock"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held = open(path, "ab")  # noqa: SIM115
        except OSError as error:
            raise TableError(f"cannot be written: {error.strerror}", error.filename or str(path)) from None
        with held:
            try:
                is_ours = lock(held, wait=False)
            except OSError as error:
                raise TableError(f"cannot be locked: {error.strerror}", str(path)) from None
            if not is_ours:
                raise TableError("another load is writing here; wait for its end, or end it", self.location)
            self._log.refresh()
            self._finish()
            for folder in self._staging.glob("*"):  # what was staged and never committed
                shutil.rmtree(folder, ignore_errors=True)
            yield

    def staging(self, batch: str) -> str:
        """Return an empty folder for a batch's files; executors can write there."""
        folder = self._staging / batch
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return str(folder)

    def checkpoint(self, stream: str) -> str:
        """Return the folder for a stream's checkpoint; its name has letters, digits and ``-``."""
        folder = self._root / FOLDER / "checkpoints" / stream
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def commit(self, batch: TableBatch) -> None:
        """Commit a batch atomically: append an entry to the log, then move the files. A second time has no effect.

        Raises:
            TableError: it could not be written.
        """
        state = self._log.state
        if batch.stream is not None and state.streams.get(batch.stream[0], -1) >= batch.stream[1]:
            shutil.rmtree(self._staging / batch.id, ignore_errors=True)
            return
        changes = {name: self._change(batch.id, name, part) for name, part in batch.parts.items()}
        tables = {name: change for name, change in changes.items() if change is not None}
        sources = {path: source for path, source in batch.sources.items() if state.sources.get(path) != source}
        if tables or sources or batch.stream is not None:
            self._append(Commit(batch.id, _now(), tables, sources, batch.stream))
        else:
            shutil.rmtree(self._staging / batch.id, ignore_errors=True)

    def compact(self) -> list[str]:
        """Compact the small files of each day of each table, sorted by time.

        Returns:
            A message for each table that changed.
        """
        from balog.analytics.tables.compaction import compacted, small_files

        lines = []
        batch = f"compact-{os.urandom(8).hex()}"
        folder = self.staging(batch)
        changes = {}
        for name, table in sorted(self._log.state.tables.items()):
            small = small_files(table.files.values())
            if not small:
                continue
            columns = read_columns(table.columns)
            here = [file.staged(self._root / name) for file in small]
            new_files = compacted(name, TablePart(columns, here).frame(self._spark), small, folder, batch)
            added = [_file(self._staging / batch / name, file) for file in new_files]
            changes[name] = TableCommit(table.columns, added, [file.path for file in small])
            lines.append(f"{name}: {len(small):,} files became {len(new_files):,}")
        if changes:
            self._append(Commit(batch, _now(), changes))
        else:
            shutil.rmtree(folder, ignore_errors=True)
        return lines

    def expire(self, floor: date, dry_run: bool = False) -> list[str]:
        """Remove all days before ``floor``; return a message for each table with such days."""
        state, lines, changes = self._log.state, [], {}
        for name, table in sorted(state.tables.items()):
            old = [file for file in table.files.values() if file.day < floor.isoformat()]
            if not old:
                continue
            days = sorted({file.day for file in old})
            rows, size = sum(file.rows for file in old), sum(file.size for file in old) / 1e6
            span = days[0] if len(days) == 1 else f"{len(days)} days, {days[0]} to {days[-1]}"
            lines.append(f"{name}: {span}: {rows:,} rows, {size:,.1f} MB")
            changes[name] = TableCommit(table.columns, removed=[file.path for file in old])
        if not dry_run and (changes or floor.isoformat() > state.floor):
            batch = f"expire-{os.urandom(8).hex()}"
            self._append(Commit(batch, _now(), changes, floor=floor.isoformat()))
        return lines

    # -- the log and the files ------------------------------------------------------------------------------------

    @property
    def _staging(self) -> Path:
        return self._root / FOLDER / "staging"

    def _change(self, batch: str, name: str, part: TablePart) -> TableCommit | None:
        have = self._log.state.tables.get(name)
        if not part.files and have is not None and read_columns(have.columns) == part.schema:
            return None
        root = self._staging / batch / name
        return TableCommit(part.schema.json(), [_file(root, staged) for staged in part.files])

    def _append(self, commit: Commit) -> None:
        # The batch's folder exists until all of its files are moved: it marks a commit that is not finished.
        (self._staging / commit.batch).mkdir(parents=True, exist_ok=True)
        try:
            sync_folders([self._staging, *(folder for folder, _, _ in os.walk(self._staging / commit.batch))])
        except OSError as error:
            raise TableError(f"cannot be written: {error.strerror}", str(error.filename or self._staging)) from None
        self._log.append(commit)
        try:
            self._finish_one(commit)
        except FileNotFoundError as error:
            raise TableError("a staged file is gone; bring it back from a copy", str(error.filename)) from None

    def _finish(self) -> None:
        """Move the files of commits that were not finished."""
        try:
            waiting = set(os.listdir(self._staging))
        except FileNotFoundError:
            return
        if waiting:
            for number in self._log.numbers():
                with suppress(FileNotFoundError):  # another process is doing it, and the log has changed
                    commit = self._log.commit(number)
                    if commit.batch in waiting and number <= self._log.state.number:
                        self._finish_one(commit)

    def _finish_one(self, commit: Commit) -> None:
        staging = self._staging / commit.batch
        folders = set()
        try:
            for name, change in commit.tables.items():
                for file in change.added:
                    target = self._root / name / file.path
                    if target.parent not in folders:
                        target.parent.mkdir(parents=True, exist_ok=True)
                        folders |= {self._root, self._root / name, target.parent}  # each may be new
                    _move(staging / name / file.path, target)
            sync_folders(folders)
            self._publish(commit)
            for name, change in commit.tables.items():
                for path in change.removed:
                    old = self._root / name / path
                    old.unlink(missing_ok=True)
                    with suppress(OSError):  # it is not empty
                        old.parent.rmdir()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise TableError(
                f"{error.strerror}; the batch is safe, and the next command that may write there puts it in place",
                str(error.filename or self._root),
            ) from None
        shutil.rmtree(staging, ignore_errors=True)

    def _publish(self, commit: Commit) -> None:
        """Do what a catalog needs for a commit, after its files are moved and before others are removed."""


def _move(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except FileNotFoundError:
        if not target.exists():  # another process has not moved it either
            raise


def _file(root: Path, staged: StagedFile) -> TableFile:
    path = os.path.relpath(staged.path, root)
    return TableFile(path, staged.rows, staged.size, micros(staged.first), micros(staged.last))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
