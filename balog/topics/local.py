"""Topics on this machine: a folder with one SQLite file a topic, shared by any number of processes and threads."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from balog.errors import TopicError
from balog.topics.base import (
    DEFAULT_LEASE,
    DeadLetter,
    GroupState,
    Message,
    Received,
    Topic,
    Topics,
    TopicState,
    check_name,
)
from balog.topics.sqlite_file import SqliteFile

__all__ = ["DEFAULT_RETENTION", "LocalTopic", "LocalTopics"]

DEFAULT_RETENTION = 14 * 86400.0
"""Seconds that a message is kept, handled or not."""

MAX_RECEIVED_BYTES = 64 * 1024 * 1024
"""A batch ends after the message whose body takes it past this size."""

_SUFFIX = ".sqlite"
_APPLICATION_ID = 0x62616C67
_VERSION = 1
_PRUNE_EVERY = 60.0
_PRUNE_ROWS = 10_000
_SLEEPS = (0.002, 0.1)

# A group's cursor is the highest seq that it was handed. A lease stands for each message that was handed out and not
# acked yet: ready_at is when it may be handed out again, and an empty receipt says that nobody holds it.
_SCHEMA = """
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, published REAL NOT NULL, body BLOB NOT NULL
);
CREATE TABLE groups (name TEXT PRIMARY KEY, cursor INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE leases (
    grp TEXT NOT NULL, seq INTEGER NOT NULL, ready_at REAL NOT NULL, attempts INTEGER NOT NULL, receipt TEXT NOT NULL,
    PRIMARY KEY (grp, seq)
) WITHOUT ROWID;
CREATE INDEX leases_by_time ON leases (grp, ready_at);
CREATE TABLE dead (
    number INTEGER PRIMARY KEY, grp TEXT NOT NULL, id TEXT NOT NULL, body BLOB NOT NULL, reason TEXT NOT NULL,
    attempts INTEGER NOT NULL, died REAL NOT NULL
);
CREATE INDEX dead_by_group ON dead (grp);
"""


class LocalTopics(Topics):
    """A folder of topics.

    Args:
        path: the folder; it is made when something is first published.
        retention: seconds that a message is kept, whether groups have handled it or not; also a dead letter.
        clock: gives the seconds since the epoch.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        retention: float = DEFAULT_RETENTION,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path).expanduser()
        self.url = f"local:{path}"
        self._retention = retention
        self._clock = clock
        self._lock = threading.Lock()
        self._topics: dict[str, LocalTopic] = {}

    def topic(self, name: str) -> LocalTopic:
        """Give the topic of that name; the same object each time."""
        check_name("topic", name)
        with self._lock:
            if name not in self._topics:
                self._topics[name] = LocalTopic(name, self.path / (name + _SUFFIX), self._retention, self._clock)
            return self._topics[name]

    def names(self) -> list[str]:
        """List the topics that exist, sorted."""
        try:
            files = [entry.name for entry in os.scandir(self.path)]
        except OSError as error:
            raise TopicError(
                f"no topics in {self.path}: {error.strerror}; the folder is made when something is first published"
            ) from error
        return sorted(name[: -len(_SUFFIX)] for name in files if name.endswith(_SUFFIX) and not name.startswith("."))

    def close(self) -> None:
        """Close the files of all topics; a later use opens them again."""
        with self._lock:
            topics = list(self._topics.values())
        for topic in topics:
            topic.close()


class LocalTopic(Topic):
    """One SQLite file in WAL mode; a message is on the disk (fsync) when ``publish`` returns.

    Messages older than the retention are deleted by ``publish``, which looks at most once a minute, and by ``prune``,
    for groups that have not handled them too. The file does not shrink; its free pages are used again. Leases are
    measured by the machine's clock, so the folder must not be shared between machines.
    """

    def __init__(self, name: str, path: Path, retention: float, clock: Callable[[], float]) -> None:
        self.name = name
        self._file = SqliteFile(path, f"topic {name} ({path})", _SCHEMA, _APPLICATION_ID, _VERSION)
        self._retention = retention
        self._clock = clock
        self._prune_at = 0.0

    def exists(self) -> bool:
        """Tell whether the file is there."""
        return self._file.exists()

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        self._file.close()

    # -- publishing -----------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> int:
        """Store messages in one transaction and give the number that the topic did not hold already."""
        now = self._clock()
        rows = [(message.id, now, bytes(message.body)) for message in messages]
        if not rows:
            return 0
        if time.monotonic() >= self._prune_at and self.exists():
            self._prune_at = time.monotonic() + _PRUNE_EVERY
            self.prune()
        with self._file.write(create=True) as connection:
            before = connection.total_changes
            connection.executemany(
                "INSERT INTO messages (id, published, body) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", rows
            )
            return connection.total_changes - before

    def prune(self) -> int:
        """Delete messages and dead letters that are older than the retention; give the number of messages."""
        oldest = self._clock() - self._retention
        deleted = 0
        while True:
            with self._file.read() as connection:
                if not connection.execute(
                    "SELECT (SELECT published FROM messages ORDER BY seq LIMIT 1) < ?1"
                    " OR (SELECT died FROM dead ORDER BY number LIMIT 1) < ?1",
                    (oldest,),
                ).fetchone()[0]:
                    return deleted
            with self._file.write() as connection:
                deleted += _delete_older(connection, oldest)

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Take messages for a group: first those whose lease ran out or that were released, then those never seen."""
        check_name("group", group)
        deadline = time.monotonic() + wait
        sleep, longest = _SLEEPS
        while True:
            if self._has_ready(group):  # an idle group only reads
                received = self._hand_out(group, limit, lease)
                if received:
                    return received
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return []
            time.sleep(min(sleep, remaining))
            sleep = min(sleep * 2, longest)

    def _has_ready(self, group: str) -> bool:
        with self._file.read() as connection:
            row = connection.execute(
                "SELECT EXISTS (SELECT 1 FROM messages"
                " WHERE seq > COALESCE((SELECT cursor FROM groups WHERE name = ?1), 0))"
                " OR EXISTS (SELECT 1 FROM leases WHERE grp = ?1 AND ready_at <= ?2)",
                (group, self._clock()),
            ).fetchone()
            return bool(row[0])

    def _hand_out(self, group: str, limit: int, lease: float) -> list[Received]:
        token = secrets.token_hex(8)
        received: list[Received] = []
        size = 0
        with self._file.write() as connection:
            now = self._clock()
            cursor = _cursor(connection, group)
            again = connection.execute(
                "SELECT seq, attempts + 1, id, published, body FROM leases JOIN messages USING (seq)"
                " WHERE grp = ? AND ready_at <= ? ORDER BY seq LIMIT ?",
                (group, now, limit),
            )
            fresh = connection.execute(
                "SELECT seq, 1, id, published, body FROM messages WHERE seq > ? ORDER BY seq LIMIT ?", (cursor, limit)
            )
            leases = []
            for rows in (again, fresh):
                while len(received) < limit and size < MAX_RECEIVED_BYTES and (row := rows.fetchone()):
                    seq, attempts, id, published, body = row
                    received.append(Received(id, body, f"{seq}.{token}", attempts, published))
                    leases.append((group, seq, now + lease, attempts, token))
                    cursor = max(cursor, seq)
                    size += len(body)
                rows.close()
            connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)", leases)
            connection.execute("INSERT OR REPLACE INTO groups VALUES (?, ?)", (group, cursor))
        return received

    # -- settling -------------------------------------------------------------------------------------------------

    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Mark messages as handled, in one transaction."""
        return self._settle(received, "DELETE FROM leases WHERE grp = ?1 AND seq = ?2 AND receipt = ?3", (group,))

    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Give messages back, in one transaction; their receipts are stale then."""
        return self._settle(
            received,
            "UPDATE leases SET ready_at = ?4, receipt = '', attempts = attempts - ?5"
            " WHERE grp = ?1 AND seq = ?2 AND receipt = ?3",
            (group,),
            (self._clock() + delay, int(not attempted)),
        )

    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Let leases run from now, in one transaction; a lease that ran out is revived unless it was handed on."""
        return self._settle(
            received,
            "UPDATE leases SET ready_at = ?4 WHERE grp = ?1 AND seq = ?2 AND receipt = ?3",
            (group,),
            (self._clock() + lease,),
        )

    def dead_letter(
        self,
        group: str,
        received: Sequence[Received],
        reason: str,
        *,
        consumers: Sequence[str] = (),
        traceback: str = "",
    ) -> int:
        """Move messages to the group's dead letters, in one transaction."""
        reason = reason.encode("utf-8", "backslashreplace").decode()  # SQLite takes no lone surrogates
        now = self._clock()
        changed = 0
        with self._file.write() as connection:
            for message in received:
                seq, token = _read_receipt(message)
                if connection.execute(
                    "DELETE FROM leases WHERE grp = ? AND seq = ? AND receipt = ?", (group, seq, token)
                ).rowcount:
                    connection.execute(
                        "INSERT INTO dead (grp, id, body, reason, attempts, died) VALUES (?, ?, ?, ?, ?, ?)",
                        (group, message.id, message.body, reason, message.attempts, now),
                    )
                    changed += 1
        return changed

    def _settle(
        self, received: Sequence[Received], statement: str, before: tuple[str], after: tuple[float, ...] = ()
    ) -> int:
        if not received:
            return 0
        rows = [(*before, *_read_receipt(message), *after) for message in received]
        with self._file.write() as connection:
            return connection.executemany(statement, rows).rowcount

    # -- looking --------------------------------------------------------------------------------------------------

    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Give a group's dead letters, oldest first."""
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT id, body, grp, reason, attempts, died FROM dead WHERE grp = ? ORDER BY number LIMIT ?",
                (group, limit),
            ).fetchall()
        return [DeadLetter(*row) for row in rows]

    def group_state(self, group: str) -> GroupState:
        """Tell how far a group is; its lag is counted message by message."""
        with self._file.read() as connection:
            return _group_state(connection, group, self._clock())

    def describe(self) -> TopicState:
        """Tell what the topic holds; adds up the bodies of all messages."""
        with self._file.read() as connection:
            messages, size, oldest = connection.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0), MIN(published) FROM messages"
            ).fetchone()
            names = connection.execute("SELECT name FROM groups ORDER BY name").fetchall()
            groups = [_group_state(connection, name, self._clock()) for (name,) in names]
        return TopicState(self.name, messages, size, oldest, groups)


def _cursor(connection: sqlite3.Connection, group: str) -> int:
    row = connection.execute("SELECT cursor FROM groups WHERE name = ?", (group,)).fetchone()
    return int(row[0]) if row else 0


def _group_state(connection: sqlite3.Connection, group: str, now: float) -> GroupState:
    cursor = _cursor(connection, group)
    lag, leases, in_flight, dead = connection.execute(
        "SELECT (SELECT COUNT(*) FROM messages WHERE seq > ?2),"
        " (SELECT COUNT(*) FROM leases WHERE grp = ?1),"
        " (SELECT COUNT(*) FROM leases WHERE grp = ?1 AND receipt <> '' AND ready_at > ?3),"
        " (SELECT COUNT(*) FROM dead WHERE grp = ?1)",
        (group, cursor, now),
    ).fetchone()
    return GroupState(group, cursor, lag, in_flight, leases - in_flight, dead)


def _read_receipt(message: Received) -> tuple[int, str]:
    seq, _, token = message.receipt.partition(".")
    if not (seq.isdecimal() and token):
        raise TopicError(f"message {message.id}: {message.receipt!r} is not a receipt of a local topic")
    return int(seq), token


def _delete_older(connection: sqlite3.Connection, oldest: float) -> int:
    """Delete from the front, a bounded number at a time so that no other process waits long."""
    (last,) = connection.execute(
        "SELECT COALESCE(MIN(CASE WHEN published >= ?1 THEN seq END) - 1, MAX(seq))"
        " FROM (SELECT seq, published FROM messages ORDER BY seq LIMIT ?2)",
        (oldest, _PRUNE_ROWS),
    ).fetchone()
    connection.execute("DELETE FROM dead WHERE died < ?", (oldest,))
    if last is None:
        return 0
    connection.execute("DELETE FROM leases WHERE seq <= ?", (last,))
    return connection.execute("DELETE FROM messages WHERE seq <= ?", (last,)).rowcount
