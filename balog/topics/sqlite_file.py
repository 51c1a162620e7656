"""A SQLite file, created atomically, opened once a process, shared by threads, and closed over a fork."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.parse import quote

from balog.common.errors import TopicError, TopicNotFoundError
from balog.common.storage.local_files import lock, make_folder, sync, sync_folder, unlock

BUSY_TIMEOUT = 30.0
"""Seconds to wait for another process's transaction."""

WAL_BYTES = 64 * 1024 * 1024
"""The write-ahead log is cut back to this size after a checkpoint."""

WAL_PAGES = 4000
"""Pages of 4 KiB in the write-ahead log after which a commit copies them into the file. SQLite's own 1000 costs a
third of the throughput: a batch of a few hundred events fills it."""


class ForkGate:
    """Admits any number of uses (``with gate:``, not nested), or one fork: SQLite's locks do not survive a fork.

    A child would wait for locks that threads of its parent held, and would rely on others that it does not hold. So a
    fork waits until no transaction runs, and every connection is closed before it.

    Args:
        before_fork: called when no use is inside and none can enter; in the parent, before the fork.
    """

    def __init__(self, before_fork: Callable[[], None]) -> None:
        self._before_fork = before_fork
        self._reset()
        os.register_at_fork(before=self._close, after_in_parent=self._open, after_in_child=self._reset)

    def __enter__(self) -> None:
        with self._changed:
            while self._forks:
                self._changed.wait()
            self._uses += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._uses -= 1
            self._changed.notify_all()

    def _close(self) -> None:
        with self._changed:
            self._forks += 1
            while self._uses:
                self._changed.wait()
        self._before_fork()

    def _open(self) -> None:
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def _reset(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._uses = 0
        self._forks = 0


class SqliteFile:
    """A database at a path, with one schema.

    Args:
        path: where the file is or will be.
        label: its name in errors, ``topic orders (/var/topics/orders.sqlite)``.
        schema: the statements that create its tables.
        application_id: the number that distinguishes such files from other databases.
        version: the number of the schema; a file with another version is an error.
    """

    def __init__(self, path: Path, label: str, schema: str, application_id: int, version: int) -> None:
        self.path = path
        self.label = label
        self._schema = schema
        self._identity = (application_id, version)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._is_synced = False
        self._turnstile = -1
        _files.add(self)

    def exists(self) -> bool:
        """Return whether the file is there."""
        return self.path.exists()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Return a connection whose statements see one state of the file.

        Raises:
            TopicError: the file is missing, damaged or out of reach.
        """
        with self._transaction(nullcontext(), "BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self, create: bool = False, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Return a connection in a transaction, durable at the end of the block and rolled back if the block raises.

        Args:
            create: create the file if it is missing.
            durable: False omits the fsync: a power cut may undo the transaction until a durable one has followed. A
                crash of this process does not.

        Raises:
            TopicError: the file is missing (and not created), damaged, full or out of reach.
        """
        if create and not self.exists():
            self._create()
        with self._transaction(self._turn(), "BEGIN IMMEDIATE", synced=durable) as connection:
            yield connection

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with _gate, self._lock:
            self._close()

    def _close(self) -> None:
        self._forget_if_replaced()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._close_turnstile()

    def _close_turnstile(self) -> None:
        descriptor, self._turnstile = self._turnstile, -1
        if descriptor >= 0:
            os.close(descriptor)

    @contextmanager
    def _transaction(
        self, turn: AbstractContextManager[None], begin: str, synced: bool | None = None
    ) -> Iterator[sqlite3.Connection]:
        with _gate, self._lock:
            try:
                self._forget_if_replaced()
                connection = self._connection or self._connect()
                if synced is not None and synced != self._is_synced:
                    # In a write-ahead log FULL is an fsync at each commit, NORMAL one at each checkpoint.
                    connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
                    self._is_synced = synced
                try:
                    with turn:
                        connection.execute(begin)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:  # SQLite undoes some failures by itself, and BEGIN may have failed
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._explain(error) from error

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for this process's turn to write.

        SQLite has no queue: a process that writes all the time would starve the others, which poll. They hold this
        lock while they wait, so the writer cannot overtake them.
        """
        deadline = time.monotonic() + BUSY_TIMEOUT
        try:
            if self._turnstile < 0:
                path = self.path.with_name(f".{self.path.name}.turn")
                self._turnstile = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            while not lock(self._turnstile, wait=False):
                if time.monotonic() >= deadline:
                    raise self._held_too_long()
                time.sleep(random.uniform(0.0002, 0.002))
        except OSError as error:
            raise TopicError(f"{self.label}: can't be written: {error.strerror or error}") from error
        try:
            yield
        finally:
            unlock(self._turnstile)

    def _connect(self) -> sqlite3.Connection:
        if not self.exists():
            raise TopicNotFoundError(self.label)
        connection = _open(self.path)
        try:
            identity = tuple(connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in _IDENTITY)
            if identity != self._identity:
                raise self._permanent(
                    f"not a file that this release reads (found {identity[0]:#x} version {identity[1]}, "
                    f"expected {self._identity[0]:#x} version {self._identity[1]}); move the file away"
                )
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        except BaseException:
            connection.close()
            raise
        self._connection, self._is_synced = connection, True
        self._inode = _inode(self.path)
        return connection

    def _forget_if_replaced(self) -> None:
        """Close a file that was deleted or moved meanwhile, because later writes to it would be lost.

        Closing the connection would delete the write-ahead log at the old path, which may be another file's by now,
        so it is kept from being closed, at the interpreter's end too.
        """
        if self._connection is not None and _inode(self.path) != self._inode:
            import ctypes

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._connection = None
            self._close_turnstile()

    def _create(self) -> None:
        """Create the file under another name and move it to its path, so that no process sees an unfinished one."""
        try:
            make_folder(self.path.parent)
            with _gate, self._lock:
                self._forget_if_replaced()
                with self._turn():
                    if not self.exists():
                        self._build(self.path.with_name(f".{self.path.name}.new"))
        except OSError as error:
            raise TopicError(f"{self.label}: can't be made: {error.strerror or error}") from error
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _build(self, draft: Path) -> None:
        draft.unlink(missing_ok=True)
        for path in (draft, self.path):  # a log whose database is gone would be replayed into the new one
            for end in ("-wal", "-shm", "-journal"):
                path.with_name(path.name + end).unlink(missing_ok=True)
        draft.touch()
        with closing(_open(draft)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(self._schema)
            for pragma, value in zip(_IDENTITY, self._identity):
                connection.execute(f"PRAGMA {pragma} = {value}")
        with draft.open("rb") as file:
            sync(file)
        draft.replace(self.path)
        sync_folder(self.path.parent)

    def _explain(self, error: sqlite3.Error) -> TopicError:
        text = str(error)
        if type(error) is sqlite3.DatabaseError or "no such table" in text:  # "malformed" and "not a database"
            return self._permanent(f"damaged ({text}); move the file away, or put a copy in its place")
        if not isinstance(error, sqlite3.OperationalError):
            return self._permanent(text)
        if "locked" in text:
            return self._held_too_long()
        if "full" in text or "disk I/O" in text:
            return TopicError(f"{self.label}: the disk takes no more ({text}); make room and try again")
        if "readonly" in text or "unable to open" in text:
            return TopicError(f"{self.label}: no right to write there ({text}); check the owner and mode")
        return TopicError(f"{self.label}: {text}")

    def _held_too_long(self) -> TopicError:
        return TopicError(f"{self.label}: another process held it for {BUSY_TIMEOUT:g} seconds; try again")

    def _permanent(self, reason: str) -> TopicError:
        return TopicError(f"{self.label}: {reason}", retryable=False)


def _close_all() -> None:
    for file in list(_files):
        with suppress(sqlite3.Error):
            file._close()


_IDENTITY = ("application_id", "user_version")

_files: weakref.WeakSet[SqliteFile] = weakref.WeakSet()
_gate = ForkGate(before_fork=_close_all)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=rw",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
