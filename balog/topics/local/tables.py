"""The tables of a local topic's SQLite file, and the statements on them: deliveries, dead letters, retention."""

from __future__ import annotations

import math
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from balog.common.errors import TopicError
from balog.topics.base import DeadLetter, Generation, GivenUp, GroupState, Received, uptime
from balog.topics.sqlite_file import SqliteFile

APPLICATION_ID = 0x62616C67
VERSION = 4
FIRST_REDRIVEN = -(2**62)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
DELAYED = "~"
"""The receipt of a message that waits for a delayed retry."""

# groups.cursor is the highest seq that the group has received, groups.replay counts its seeks.
# leases has a row for each message that a group has received and not acked. ready_at is when the message may be
# received again. receipt is empty when nobody holds the message, and ~ when it waits for a delayed retry.
# redriven holds each redriven dead letter for its group alone, as long as its lease exists. Its seq comes from the
# dead letter's number, which is never reused. It is below every other seq, so redriven messages are received first.
SCHEMA = """
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, published REAL NOT NULL, key TEXT,
    body BLOB NOT NULL
);
CREATE TABLE groups (
    name TEXT PRIMARY KEY, cursor INTEGER NOT NULL, replay INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE leases (
    grp TEXT NOT NULL, seq INTEGER NOT NULL, ready_at REAL NOT NULL, attempts INTEGER NOT NULL, receipt TEXT NOT NULL,
    PRIMARY KEY (grp, seq)
) WITHOUT ROWID;
CREATE INDEX leases_by_time ON leases (grp, ready_at) WHERE receipt <> '~';
CREATE INDEX leases_put_off ON leases (grp, ready_at) WHERE receipt = '~';
CREATE TABLE dead (
    number INTEGER PRIMARY KEY AUTOINCREMENT, grp TEXT NOT NULL, id TEXT NOT NULL, published REAL NOT NULL, key TEXT,
    body BLOB NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL, died REAL NOT NULL, consumers TEXT NOT NULL,
    traceback TEXT NOT NULL
);
CREATE INDEX dead_by_group ON dead (grp);
CREATE TABLE redriven (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, published REAL NOT NULL, key TEXT, body BLOB NOT NULL,
    since REAL NOT NULL
);
CREATE TRIGGER settled AFTER DELETE ON leases WHEN OLD.seq < 0
BEGIN DELETE FROM redriven WHERE seq = OLD.seq; END;
CREATE TABLE clock (boot TEXT PRIMARY KEY, began REAL NOT NULL) WITHOUT ROWID;
"""


def _boot() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:  # macOS has none
        return ""


class LeaseClock:
    """Monotonic seconds since the machine's start, equal in all processes that share a topic's file.

    The first process that writes after a start of the machine stores when the machine started, by the wall clock.
    From then on, the time is that moment plus the uptime, even if the wall clock changes.
    Without a boot id, the time is the wall clock's.

    Args:
        wall: returns the seconds since the epoch.
        uptime: returns the seconds since the machine started.
        boot: returns the id of this start of the machine; "" if it has none.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        uptime: Callable[[], float] = uptime,
        boot: Callable[[], str] = _boot,
    ) -> None:
        self._wall = wall
        self._uptime = uptime
        self._boot = boot()

    def now(self, connection: sqlite3.Connection) -> float:
        """Return the time for a connection's file; infinity if ``start`` must be called first."""
        if not self._boot:
            return self._wall()
        row = connection.execute("SELECT began FROM clock WHERE boot = ?", (self._boot,)).fetchone()
        return float(row[0]) + self._uptime() if row else math.inf

    def start(self, connection: sqlite3.Connection) -> float:
        """Return the time inside a write transaction; the first call since the machine's start stores the start.

        Leases of an earlier start end then, because their holders ended with it. Delays go on by the wall clock.
        """
        if self._boot and not connection.execute("SELECT 1 FROM clock WHERE boot = ?", (self._boot,)).fetchone():
            connection.execute("DELETE FROM clock")
            connection.execute("INSERT INTO clock VALUES (?, ?)", (self._boot, self._wall() - self._uptime()))
            connection.execute("UPDATE leases SET ready_at = 0 WHERE receipt NOT IN ('', '~')")
        return self.now(connection)


def position_of(connection: sqlite3.Connection, group: str) -> tuple[int, int]:
    """Return a group's cursor and the number of its last replay."""
    row = connection.execute("SELECT cursor, replay FROM groups WHERE name = ?", (group,)).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def group_state(connection: sqlite3.Connection, group: str, now: float) -> GroupState:
    """Return the state of a group; its lag is counted message by message.

    Args:
        now: seconds on the topic's lease clock.
    """
    cursor, _ = position_of(connection, group)
    lag, leases, in_flight, dead = connection.execute(
        "SELECT (SELECT COUNT(*) FROM messages WHERE seq > ?2),"
        " (SELECT COUNT(*) FROM leases WHERE grp = ?1),"
        " (SELECT COUNT(*) FROM leases WHERE grp = ?1 AND receipt NOT IN ('', '~') AND ready_at > ?3),"
        " (SELECT COUNT(*) FROM dead WHERE grp = ?1)",
        (group, cursor, now),
    ).fetchone()
    return GroupState(group, cursor, lag, in_flight, leases - in_flight, dead)


def read_receipt(message: Received) -> tuple[int, str]:
    """Return the seq and the token of a receipt.

    Raises:
        TopicError: the receipt is not one of a local topic.
    """
    seq, _, token = message.receipt.partition(".")
    if not (seq.removeprefix("-").isdecimal() and token):
        raise TopicError(f"message {message.id}: {message.receipt!r} is not a receipt of a local topic")
    return int(seq), token


MAX_RECEIVED_BYTES = 64 * 1024 * 1024
"""A batch ends after the message whose body takes it past this size."""

DELAYED_SHARE = 10
"""While a group has new messages, one of ten that it receives is a delayed retry, the least delayed first.

Without this limit, many messages that fail again and again would keep the group from new ones.
"""


def take_messages(
    connection: sqlite3.Connection, clock: LeaseClock, group: str, limit: int, lease: float, share: int
) -> list[Received]:
    """Lease messages to a group, redriven ones first, then released, a share of the delayed, and new ones.

    Args:
        limit: the largest number of messages.
        lease: seconds.
        share: the number of delayed ones that go before new ones.
    """
    token = secrets.token_hex(8)
    received: list[Received] = []
    size = 0
    now = clock.start(connection)
    cursor, replay = position_of(connection, group)
    redriven = connection.execute(
        "SELECT seq, attempts + 1, id, published, key, body FROM leases JOIN redriven USING (seq)"
        " WHERE grp = ? AND seq < 0 AND ready_at <= ? ORDER BY seq LIMIT ?",
        (group, now, limit),
    )
    again = connection.execute(  # +seq: found by time, or each receive would look at all that is in flight
        "SELECT seq, attempts + 1, id, published, key, body FROM"
        " (SELECT seq, attempts FROM leases"
        " WHERE grp = ? AND ready_at <= ? AND receipt <> '~' AND +seq >= 0 ORDER BY +seq LIMIT ?)"
        " JOIN messages USING (seq) ORDER BY seq",
        (group, now, limit),
    )
    delayed = connection.execute(  # cross: in this order, and no more rows than are asked for
        "SELECT seq, attempts + 1, id, published, key, body FROM"
        " (SELECT seq, attempts FROM leases"
        " WHERE grp = ? AND ready_at <= ? AND receipt = '~' AND +seq >= 0 ORDER BY ready_at, seq LIMIT ?)"
        " CROSS JOIN messages USING (seq)",
        (group, now, limit),
    )
    fresh = connection.execute(
        "SELECT seq, 1, id, published, key, body FROM messages WHERE seq > ? ORDER BY seq LIMIT ?", (cursor, limit)
    )
    leases = []
    parts = ((redriven, limit), (again, limit), (delayed, share), (fresh, limit), (delayed, limit))
    for rows, most in parts:
        until = min(limit, len(received) + most)
        while len(received) < until and size < MAX_RECEIVED_BYTES and (row := rows.fetchone()):
            seq, attempts, id, published, key, body = row
            generation = Generation(replay, seq - FIRST_REDRIVEN if seq < 0 else 0)
            received.append(Received(id, body, f"{seq}.{token}", attempts, published, key, generation))
            leases.append((group, seq, now + lease, attempts, token))
            cursor = max(cursor, seq)
            size += len(body)
    for rows, _ in parts:
        rows.close()
    connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)", leases)
    connection.execute("INSERT OR REPLACE INTO groups VALUES (?, ?, ?)", (group, cursor, replay))
    return received


def store_dead_letter(connection: sqlite3.Connection, group: str, given_up: GivenUp, now: float) -> bool:
    """Move a message to the group's dead letters. Return False if its receipt is stale."""
    message = given_up.received
    seq, token = read_receipt(message)
    if not connection.execute(
        "DELETE FROM leases WHERE grp = ? AND seq = ? AND receipt = ?", (group, seq, token)
    ).rowcount:
        return False
    consumers = msgspec.json.encode(given_up.consumers).decode()
    failure = (_storable(given_up.reason), now, consumers, _storable(given_up.traceback))
    connection.execute(
        "INSERT INTO dead (grp, id, published, key, body, attempts, reason, died, consumers, traceback)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (group, message.id, message.published, message.key, message.body, message.attempts, *failure),
    )
    return True


def redrive_dead_letter(
    connection: sqlite3.Connection, group: str, number: int, body: bytes, now: float, ready_at: float
) -> bool:
    """Redrive a dead letter to its group. Return False if another process has already redriven it.

    Args:
        number: the dead letter's.
        body: the message's new body.
        now: seconds since the epoch.
        ready_at: seconds on the topic's lease clock.
    """
    seq = FIRST_REDRIVEN + number
    if not connection.execute(
        "INSERT INTO redriven SELECT ?1, id, published, key, ?2, ?3 FROM dead WHERE number = ?4 AND grp = ?5",
        (seq, bytes(body), now, number, group),
    ).rowcount:
        return False
    connection.execute("DELETE FROM dead WHERE number = ?", (number,))
    connection.execute("INSERT INTO leases VALUES (?, ?, ?, 0, '')", (group, seq, ready_at))
    return True


def list_dead_letters(connection: sqlite3.Connection, group: str, after: int, limit: int) -> list[DeadLetter]:
    """Return a group's dead letters with a number above ``after``, oldest first."""
    rows = connection.execute(
        "SELECT id, body, grp, reason, attempts, died, consumers, traceback, number FROM dead"
        " WHERE grp = ? AND number > ? ORDER BY number LIMIT ?",
        (group, after, max(limit, 0)),
    )
    return [
        DeadLetter(id, body, grp, reason, attempts, died, tuple(msgspec.json.decode(consumers)), traceback, str(number))
        for id, body, grp, reason, attempts, died, consumers, traceback, number in rows
    ]


def _storable(text: str) -> str:
    """Return a text that SQLite can store: without lone surrogates and null characters."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


DEFAULT_RETENTION = 14 * 86400.0
"""Seconds that a message is kept after it was published, when all groups have handled it."""

_PRUNE_ROWS = 10_000
_ALL = 2**63 - 1


def prune_some(file: SqliteFile, retention: float | None, now: float) -> int | None:
    """Delete a bounded number of old messages, and all old dead letters.

    Args:
        retention: seconds; None deletes only messages that all groups have handled, after ``DEFAULT_RETENTION``.
        now: seconds since the epoch.

    Returns:
        The number of deleted messages; None if there was nothing to delete.
    """
    last = _handled_by_all if retention is None else lambda connection: _ALL
    oldest = now - (DEFAULT_RETENTION if retention is None else retention)
    are_dead_old = (
        "SELECT (SELECT died FROM dead ORDER BY number LIMIT 1) < ?1 OR (SELECT MIN(since) FROM redriven) < ?1"
    )
    with file.read() as connection:
        is_old = _has_older_messages(connection, oldest, last(connection))
        if not (is_old or (retention is not None and connection.execute(are_dead_old, (oldest,)).fetchone()[0])):
            return None
    with file.write() as connection:
        if retention is not None:
            connection.execute("DELETE FROM dead WHERE died < ?", (oldest,))
            connection.execute(  # the trigger deletes the messages
                "DELETE FROM leases WHERE seq IN (SELECT seq FROM redriven WHERE since < ?)", (oldest,)
            )
        return _delete_older_messages(connection, oldest, last(connection))


def _handled_by_all(connection: sqlite3.Connection) -> int:
    """Return the highest seq up to which every group has settled all messages; 0 without groups."""
    (handled,) = connection.execute(
        "SELECT MIN(MIN(cursor, COALESCE((SELECT MIN(seq) - 1 FROM leases WHERE grp = name AND seq >= 0), cursor)))"
        " FROM groups"
    ).fetchone()
    return handled or 0


def _has_older_messages(connection: sqlite3.Connection, oldest: float, last: int) -> bool:
    row = connection.execute("SELECT published, seq FROM messages ORDER BY seq LIMIT 1").fetchone()
    return row is not None and row[0] < oldest and row[1] <= last


def _delete_older_messages(connection: sqlite3.Connection, oldest: float, last: int) -> int:
    """Delete from the front, a bounded number at a time so that no other process waits long."""
    (until,) = connection.execute(
        "SELECT COALESCE(MIN(CASE WHEN published >= ?1 THEN seq END) - 1, MAX(seq))"
        " FROM (SELECT seq, published FROM messages WHERE seq <= ?3 ORDER BY seq LIMIT ?2)",
        (oldest, _PRUNE_ROWS, last),
    ).fetchone()
    if until is None:
        return 0
    connection.execute("DELETE FROM leases WHERE seq BETWEEN 0 AND ?", (until,))
    return connection.execute("DELETE FROM messages WHERE seq <= ?", (until,)).rowcount
