"""The log of a folder of Parquet tables: it defines the files of each table, and changes them atomically.

Commits are ``_balog/log/<n>.json``, numbered without gaps. Each is written to a temporary file, synced, and linked to
its name, which fails if the name is taken. From time to time, ``<n>.state.json`` has the state after all commits up to
``n``, so that opening the log does not read all of them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from balog.analytics.engine import micros
from balog.analytics.tables.store import LoadedSource, StagedFile, TableError
from balog.common.storage.local_files import create_file, sync_folder

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


FOLDER = "_balog"
_Entry = TypeVar("_Entry")
_STATE_EVERY = 50  # commits
_NAME = re.compile(r"(\d{10})\.json")
_STATE_NAME = re.compile(r"(\d{10})\.state\.json")


class TableFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Parquet file of a table: path below the table's folder, rows, bytes, and times in microseconds since 1970."""

    path: str
    rows: int
    size: int
    first: int | None = None
    last: int | None = None

    @property
    def day(self) -> str:
        """The day of the file's folder, as ``YYYY-MM-DD``."""
        return self.path[len("date=") : len("date=") + 10]

    def staged(self, folder: Path) -> StagedFile:
        """Return the file as staged below a folder."""
        return StagedFile(str(folder / self.path), date.fromisoformat(self.day), self.rows, self.size)


class TableCommit(msgspec.Struct, omit_defaults=True):
    """What a commit changes in a table; ``columns`` is Spark's JSON of the schema without ``date``."""

    columns: str
    added: list[TableFile] = []
    removed: list[str] = []


class Commit(msgspec.Struct, omit_defaults=True):
    """One entry of the log.

    Attributes:
        batch: the name of the folder below ``_balog/staging`` that has the files until all are moved.
        at: the time, RFC 3339.
        tables: the changes, by table.
        sources: by path, the size in bytes and the modification time.
        stream: a stream's name and the number of its batch.
        floor: the first day that is kept.
    """

    batch: str
    at: str
    tables: dict[str, TableCommit] = {}
    sources: dict[str, LoadedSource] = {}
    stream: tuple[str, int] | None = None
    floor: str = ""


class TableState(msgspec.Struct):
    """The current state of a table: its columns, and its files by path."""

    columns: str
    files: dict[str, TableFile] = {}

    def apply(self, change: TableCommit) -> None:
        """Apply what the next commit changes."""
        self.columns = change.columns
        for path in change.removed:
            self.files.pop(path, None)
        self.files.update((file.path, file) for file in change.added)


class LogState(msgspec.Struct):
    """The state after all commits; ``number`` is that of the last commit, 0 if there is none."""

    number: int = 0
    tables: dict[str, TableState] = {}
    sources: dict[str, LoadedSource] = {}
    streams: dict[str, int] = {}
    floor: str = ""
    batch: str = ""

    def apply(self, number: int, commit: Commit) -> None:
        """Apply the next commit."""
        for name, change in commit.tables.items():
            self.tables.setdefault(name, TableState(change.columns)).apply(change)
        self.sources.update(commit.sources)
        if commit.stream is not None:
            self.streams[commit.stream[0]] = commit.stream[1]
        self.floor = max(self.floor, commit.floor)
        self.number, self.batch = number, commit.batch


def is_within(file: TableFile, since: datetime | None, until: datetime | None) -> bool:
    """Return whether a file may have rows of a time range."""
    if since is not None and file.day < since.astimezone(timezone.utc).date().isoformat():
        return False
    if until is not None and file.day > until.astimezone(timezone.utc).date().isoformat():
        return False
    first, last = micros(since), micros(until)
    if first is not None and file.last is not None and file.last < first:
        return False
    return not (last is not None and file.first is not None and file.first > last)


def read_columns(columns: str) -> StructType:
    """Decode the columns of a table from Spark's JSON of a schema."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(columns))


def has_log(location: str) -> bool:
    """Return whether a folder has tables with a log."""
    return (folder_of(location) / FOLDER / "log").is_dir()


def folder_of(location: str) -> Path:
    """Return the folder of a path or a ``file:`` URL."""
    return Path(unquote(urlsplit(location).path) if location.startswith("file:") else location).absolute()


class CommitLog:
    """The log below a folder; ``state`` is as of the last ``refresh``, ``append`` or opening."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER / "log"
        self.state = LogState()
        self.refresh()

    def refresh(self) -> None:
        """Read the commits of other writers.

        Raises:
            TableError: an entry is missing or invalid.
        """
        for _ in range(3):  # entries may be replaced by a state while they are read
            with suppress(FileNotFoundError):
                self._refresh()
                return
        raise TableError("entries vanish while they are read; try again", str(self._folder))

    def _refresh(self) -> None:
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise TableError(f"cannot be read: {error.strerror}", str(self._folder)) from None
        states = _numbers(names, _STATE_NAME)
        if states and states[-1] > self.state.number:
            self.state = _read(self._folder / f"{states[-1]:010d}.state.json", LogState)
        for number in _numbers(names, _NAME):
            if number <= self.state.number:
                continue
            if number != self.state.number + 1:
                raise TableError(
                    f"entry {self.state.number + 1} is missing; bring it back from a copy", str(self._folder)
                )
            self.state.apply(number, _read(self._path(number), Commit))

    def commit(self, number: int) -> Commit:
        """Read an entry."""
        return _read(self._path(number), Commit)

    def numbers(self) -> list[int]:
        """Return the numbers of all existing entries."""
        return _numbers(os.listdir(self._folder), _NAME) if self._folder.is_dir() else []

    def append(self, commit: Commit) -> int:
        """Append an entry and return its number. This changes the tables atomically.

        Raises:
            TableError: another writer was faster, or the disk failed; nothing has changed.
        """
        number = self.state.number + 1
        self._folder.mkdir(parents=True, exist_ok=True)
        if not _publish(self._path(number), msgspec.json.encode(commit)):
            raise TableError("another process wrote at the same time; run it again", str(self._folder))
        self.state.apply(number, commit)
        if number % _STATE_EVERY == 0:
            with suppress(TableError):  # only an optimization
                if _publish(self._folder / f"{number:010d}.state.json", msgspec.json.encode(self.state)):
                    self._forget(number - _STATE_EVERY)
        return number

    def _forget(self, last: int) -> None:
        """Remove the entries that a state replaces; the state stays for readers that continue from an earlier one."""
        for name in os.listdir(self._folder):
            match = _NAME.fullmatch(name) or _STATE_NAME.fullmatch(name)
            if match and (int(match[1]) < last or (int(match[1]) == last and "state" not in name)):
                with suppress(OSError):
                    (self._folder / name).unlink()

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:010d}.json"


def _numbers(names: Iterable[str], pattern: re.Pattern[str]) -> list[int]:
    return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))


def _publish(path: Path, data: bytes) -> bool:
    """Write a file atomically; return False if it exists."""
    try:
        is_new = create_file(path, data, syncs_folder=False)
    except OSError as error:
        raise TableError(f"cannot be written: {error.strerror}; nothing was changed", str(path)) from None
    with suppress(OSError):  # the file is there already
        sync_folder(path.parent)
    return is_new


def _read(path: Path, kind: type[_Entry]) -> _Entry:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TableError(f"cannot be read: {error.strerror}", str(path)) from None
    except msgspec.DecodeError as error:
        raise TableError(f"is not an entry of a log: {error}; bring it back from a copy", str(path)) from None
