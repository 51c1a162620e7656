"""The state of a watcher in one SQLite file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from balog.common.errors import ConfigError
from balog.common.storage.local_files import lock, make_folder
from balog.topics.sqlite_file import SqliteFile
from balog.watch.state.store import HANDLED_SECONDS, MAX_HANDLED, StoredState, decode_facts, encode_facts

_APPLICATION_ID = 0x62616C77
_VERSION = 1

_PRUNE_EVERY = 60.0

_SCHEMA = """
CREATE TABLE series (key TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE handled (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL);
CREATE TABLE unsent (number INTEGER PRIMARY KEY AUTOINCREMENT, event BLOB NOT NULL);
"""


class SqliteWatchStore:
    """A watcher's SQLite file. One process uses it at a time, and any of its threads.

    Args:
        path: the file; it and its folder are created when missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser()
        self._file = SqliteFile(self.path, f"state {self.path}", _SCHEMA, _APPLICATION_ID, _VERSION)
        self._pruned = 0.0
        self._claim: IO[bytes] | None = None

    def claim(self) -> None:
        """Keep other processes from using the file until this one closes it or ends.

        Raises:
            ConfigError: another process uses it, or it is out of reach.
        """
        try:
            make_folder(self.path.parent)
            self._claim = self.path.with_name(f".{self.path.name}.lock").open("wb")
            is_ours = lock(self._claim, wait=False)
        except OSError as error:
            raise ConfigError(f"cannot be used: {error.strerror or error}", str(self.path)) from None
        if not is_ours:
            raise ConfigError("another watcher uses this state; give each its own --state", str(self.path))

    def load(self) -> StoredState:
        """Return the state; clock 0 and nothing else before the first commit.

        Raises:
            TopicError: the file is damaged, of another kind or out of reach.
        """
        if not self._file.exists():
            return StoredState(0.0, {}, {}, [])
        with self._file.read() as connection:
            facts = dict(connection.execute("SELECT name, data FROM facts"))
            series = [data for (data,) in connection.execute("SELECT data FROM series")]
        return StoredState(*decode_facts(facts), series)

    def handled(self, ids: Sequence[str]) -> set[str]:
        """Return the ids that are known to be handled."""
        known: set[str] = set()
        if not self._file.exists():
            return known
        with self._file.read() as connection:
            for start in range(0, len(ids), 500):
                some = ids[start : start + 500]
                marks = ",".join("?" * len(some))
                query = f"SELECT id FROM handled WHERE id IN ({marks})"  # noqa: S608
                known.update(row[0] for row in connection.execute(query, some))
        return known

    def commit(
        self,
        clock: float,
        silences: Mapping[str, float],
        series: Mapping[str, bytes | None],
        handled: Iterable[str],
        alerts: Sequence[bytes],
    ) -> None:
        """Write changes in one durable transaction.

        Args:
            series: the changed series by key; None for a removed one.
            handled: the ids of the events that led to the changes.
            alerts: events to send, which are ``unsent`` until ``sent`` is called.
        """
        now = time.time()
        with self._file.write(create=True) as connection:
            facts = encode_facts(clock, silences)
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", list(facts.items()))
            kept = [(key, data) for key, data in series.items() if data is not None]
            connection.executemany("INSERT OR REPLACE INTO series VALUES (?, ?)", kept)
            removed = [(key,) for key, data in series.items() if data is None]
            connection.executemany("DELETE FROM series WHERE key = ?", removed)
            connection.executemany(
                "INSERT OR IGNORE INTO handled (id, at) VALUES (?, ?)", [(id, now) for id in handled]
            )
            connection.executemany("INSERT INTO unsent (event) VALUES (?)", [(event,) for event in alerts])
            if now - self._pruned >= _PRUNE_EVERY:
                self._pruned = now
                last = "(SELECT max(seq) FROM handled)"
                connection.execute(
                    f"DELETE FROM handled WHERE at < ? OR seq <= {last} - ?",  # noqa: S608
                    (now - HANDLED_SECONDS, MAX_HANDLED),
                )

    def unsent(self, after: int = 0) -> list[tuple[int, bytes]]:
        """Return the alerts that are not yet sent, with their numbers, oldest first."""
        if not self._file.exists():
            return []
        with self._file.read() as connection:
            return list(
                connection.execute("SELECT number, event FROM unsent WHERE number > ? ORDER BY number", (after,))
            )

    def sent(self, reached: Mapping[str, int]) -> None:
        """Keep the number of the last alert that each target has, and forget the alerts that all have."""
        with self._file.write() as connection:
            connection.execute("DELETE FROM unsent WHERE number <= ?", (min(reached.values()),))
            fact = ("reached", msgspec.msgpack.encode(reached))
            connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", fact)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._claim is not None:
            self._claim.close()
