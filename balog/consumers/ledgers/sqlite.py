"""A ledger in one SQLite file, shared by the processes of a machine."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from balog.consumers.ledgers.ledger import DEFAULT_WINDOW, LedgerEntry
from balog.topics.sqlite_file import SqliteFile

_APPLICATION_ID = 0x62616C6C
_VERSION = 1
_PRUNE_EVERY = 60.0
_PRUNE_ROWS = 10_000
_ASKED_AT_ONCE = 500  # SQLite takes 999 parameters, and more only since 3.32

# Entries stand in the order of their writing, so that the old ones are those in front.
_SCHEMA = """
CREATE TABLE consumers (number INTEGER PRIMARY KEY, grp TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (grp, name));
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY, event TEXT NOT NULL, consumer INTEGER NOT NULL, gave_up TEXT NOT NULL,
    written REAL NOT NULL,
    UNIQUE (event, consumer)
);
"""


class SqliteLedger:
    """Entries in a SQLite file in WAL mode. ``record`` with ``durable`` returns after fsync.

    ``record`` deletes entries older than the window, at most once a minute and some thousands at a time. The file does
    not shrink; SQLite reuses its free pages. Machines must not share the file.

    Args:
        path: the file; the first record creates it and its folder.
        window: seconds that an entry is kept at least.
        clock: returns the seconds since the epoch.
    """

    def __init__(
        self, path: str | os.PathLike[str], window: float = DEFAULT_WINDOW, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = Path(path).expanduser()
        self._file = SqliteFile(self.path, f"ledger {self.path}", _SCHEMA, _APPLICATION_ID, _VERSION)
        self._window = window
        self._clock = clock
        self._prune_at = 0.0

    def __repr__(self) -> str:
        return f"SqliteLedger({str(self.path)!r}, window={self._window:g})"

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the entries of events; see :class:`balog.consumers.ledgers.ledger.Ledger`."""
        entries: dict[str, dict[str, str]] = {}
        if not events or not self._file.exists():  # without entries
            return entries
        oldest = self._clock() - self._window
        with self._file.read() as connection:
            names = _names(connection, group)
            for event, consumer, gave_up in _look_up(connection, events, oldest) if names else ():
                if consumer in names:
                    entries.setdefault(event, {})[names[consumer]] = gave_up
        return entries

    def record(self, group: str, entries: Sequence[LedgerEntry], *, durable: bool = True) -> None:
        """Write entries in one transaction."""
        if not entries:
            return
        now = self._clock()
        with self._file.write(create=True, durable=durable) as connection:
            numbers = {name: number for number, name in _names(connection, group).items()}
            for name in dict.fromkeys(entry.consumer for entry in entries):
                if name not in numbers:
                    cursor = connection.execute("INSERT INTO consumers (grp, name) VALUES (?, ?)", (group, name))
                    numbers[name] = int(cursor.lastrowid or 0)
            connection.executemany(
                "INSERT OR REPLACE INTO entries (event, consumer, gave_up, written) VALUES (?, ?, ?, ?)",
                [(entry.event, numbers[entry.consumer], _clean(entry.gave_up), now) for entry in entries],
            )
            if now >= self._prune_at:
                is_full = _delete_older(connection, now - self._window) >= _PRUNE_ROWS
                self._prune_at = now if is_full else now + min(_PRUNE_EVERY, self._window)

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        self._file.close()


def _names(connection: sqlite3.Connection, group: str) -> dict[int, str]:
    return dict(connection.execute("SELECT number, name FROM consumers WHERE grp = ?", (group,)).fetchall())


def _look_up(connection: sqlite3.Connection, events: Sequence[str], oldest: float) -> Iterator[tuple[str, int, str]]:
    for start in range(0, len(events), _ASKED_AT_ONCE):
        some = events[start : start + _ASKED_AT_ONCE]
        marks = ",".join("?" * len(some))
        yield from connection.execute(
            f"SELECT event, consumer, gave_up FROM entries WHERE event IN ({marks}) AND written >= ?",  # noqa: S608 - marks
            (*some, oldest),
        )


def _delete_older(connection: sqlite3.Connection, oldest: float) -> int:
    """Delete from the front, a bounded number at a time so that no other process waits long."""
    (last,) = connection.execute(
        "SELECT COALESCE(MIN(CASE WHEN written >= ?1 THEN seq END) - 1, MAX(seq))"
        " FROM (SELECT seq, written FROM entries ORDER BY seq LIMIT ?2)",
        (oldest, _PRUNE_ROWS),
    ).fetchone()
    return 0 if last is None else connection.execute("DELETE FROM entries WHERE seq <= ?", (last,)).rowcount


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()  # SQLite takes no lone surrogates
