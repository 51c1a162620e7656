"""Topics on this machine: a folder with one SQLite file a topic, shared by any number of processes and threads."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from balog.errors import TopicError
from balog.local_path import local_path
from balog.topics.base import (
    DEFAULT_LEASE,
    DeadLetter,
    Generation,
    GivenUp,
    GroupState,
    Message,
    Received,
    Topic,
    Topics,
    TopicState,
    check_name,
)
from balog.topics.lease_clock import LeaseClock, uptime
from balog.topics.sqlite_file import SqliteFile

__all__ = ["DEFAULT_RETENTION", "LocalTopic", "LocalTopics"]

DEFAULT_RETENTION = 14 * 86400.0
"""Seconds that a message is kept after it was published, when all groups have handled it."""

MAX_RECEIVED_BYTES = 64 * 1024 * 1024
"""A batch ends after the message whose body takes it past this size."""

_SUFFIX = ".sqlite"
_APPLICATION_ID = 0x62616C67
_VERSION = 4
_PRUNE_EVERY = 60.0
_PRUNE_ROWS = 10_000
_SLEEPS = (0.002, 0.1)

# A group's cursor is the highest seq that it was handed. A lease stands for each message that was handed out and not
# acked yet: ready_at is when it may be handed out again, and an empty receipt says that nobody holds it; ~ says so too,
# of one that was put off by a delay. A dead letter that was redriven is a message of one group alone, in `redriven`,
# for as long as its lease is: its seq is below that of any other message, and so it comes first. It is made of the dead
# letter's number, which is never used again, and so it also numbers the redrives. `replay` counts the group's seeks.
_SCHEMA = """
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

_FIRST_REDRIVEN = -(2**62)
_LOOKED_AT = 100
_ALL = 2**63 - 1
_ROWS = (128, 16, 4, 1)  # few statements, so that each is compiled once; any SQLite takes 999 parameters, a row has 4
_INSERT = "INSERT INTO messages (id, published, key, body) VALUES {} ON CONFLICT (id) DO NOTHING"
_INSERTS = {rows: _INSERT.format(", ".join(["(?, ?, ?, ?)"] * rows)) for rows in _ROWS}
_PUT_OFF = "~"

PUT_OFF_SHARE = 10
"""While there are messages that a group has never seen, one of ten that it gets was put off by a delay: many that fail
again and again must not keep the others from it. The least delayed come first.
"""


class LocalTopics(Topics):
    """A folder of topics.

    Args:
        path: the folder; it is made when something is first published.
        retention: seconds after which a message is deleted, whether groups have handled it or not, and a dead letter.
            None: a message is deleted after 14 days when all groups have handled it, and kept until then. Dead
            letters are kept until they are redriven.
        clock: the seconds since the epoch.
        uptime: the seconds since the machine started; leases and delays go by it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        retention: float | None = None,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = uptime,
    ) -> None:
        self.path = Path(local_path(os.fspath(path), f"local:{path}"))
        self.url = f"local:{path}"
        self._retention = retention
        self._clock = clock
        self._lease_clock = LeaseClock(clock, uptime)
        self._lock = threading.Lock()
        self._topics: dict[str, LocalTopic] = {}

    def topic(self, name: str) -> LocalTopic:
        """Give the topic of that name; the same object each time."""
        check_name("topic", name)
        with self._lock:
            if name not in self._topics:
                path = self.path / (name + _SUFFIX)
                self._topics[name] = LocalTopic(name, path, self._retention, self._clock, self._lease_clock)
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

    Old messages are deleted by ``publish``, which looks once a minute and never deletes more than some thousands at a
    time, and by ``prune``. Without a retention, only messages that all groups have handled are deleted. The file does
    not shrink; its free pages are used again. Leases are measured by the machine's uptime, so the folder must not be
    shared between machines.
    """

    def __init__(
        self, name: str, path: Path, retention: float | None, clock: Callable[[], float], lease_clock: LeaseClock
    ) -> None:
        self.name = name
        self._file = SqliteFile(path, f"topic {name} ({path})", _SCHEMA, _APPLICATION_ID, _VERSION)
        self._retention = retention
        self._clock = clock
        self._lease_clock = lease_clock
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
        return self._publish([*messages])[0]

    def publish_new(self, messages: Sequence[Message]) -> set[str]:
        """Store messages in one transaction and give the ids that the topic did not hold already."""
        stored, new = self._publish(messages, tell=True)
        return {message.id for message in messages} if stored == len(messages) else new

    def _publish(self, messages: Sequence[Message], *, tell: bool = False) -> tuple[int, set[str]]:
        """Give how many were new and, where they are to be told and were not all of them, their ids."""
        if not messages:
            return 0, set()
        now = self._clock()
        if time.monotonic() >= self._prune_at and self.exists() and self._prune_some() is None:
            self._prune_at = time.monotonic() + _PRUNE_EVERY
        with self._file.write(create=True) as connection:
            before = connection.total_changes
            for rows, insert in _inserts(messages):
                connection.execute(insert, [part for one in rows for part in (one.id, now, one.key, bytes(one.body))])
            stored = connection.total_changes - before
            if not tell or stored == len(messages):
                return stored, set()
            newest = connection.execute("SELECT id FROM messages ORDER BY seq DESC LIMIT ?", (stored,))
            return stored, {id for (id,) in newest}

    def prune(self) -> int:
        """Delete messages, and with a retention dead letters, that are too old; return the number of messages."""
        deleted = 0
        while (some := self._prune_some()) is not None:
            deleted += some
        return deleted

    def trim(self, group: str, limit: int = 10_000) -> int:
        """Delete the oldest messages that a group has acked, at most ``limit`` of them, and give their number.

        For a topic that has one group, and need not know ids of what that group is done with. Other groups that have
        not received them will not.
        """
        with self._file.write(durable=False) as connection:
            return connection.execute(
                "DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE seq <= ?2 AND seq <"
                " COALESCE((SELECT MIN(seq) FROM leases WHERE grp = ?1 AND seq >= 0), 9223372036854775807)"
                " ORDER BY seq LIMIT ?3)",
                (group, _place(connection, group)[0], limit),
            ).rowcount

    def _prune_some(self) -> int | None:
        """Delete a bounded number of messages, and old dead letters; return the number, None when there is nothing."""
        if self._retention is None:
            oldest = self._clock() - DEFAULT_RETENTION
            with self._file.read() as connection:
                if not _has_older_messages(connection, oldest, _handled_by_all(connection)):
                    return None
            with self._file.write() as connection:
                return _delete_older_messages(connection, oldest, _handled_by_all(connection))
        oldest = self._clock() - self._retention
        with self._file.read() as connection:
            if (
                not _has_older_messages(connection, oldest, _ALL)
                and not connection.execute(
                    "SELECT (SELECT died FROM dead ORDER BY number LIMIT 1) < ?1"
                    " OR (SELECT MIN(since) FROM redriven) < ?1",
                    (oldest,),
                ).fetchone()[0]
            ):
                return None
        with self._file.write() as connection:
            connection.execute("DELETE FROM dead WHERE died < ?", (oldest,))
            connection.execute(  # the trigger deletes the messages
                "DELETE FROM leases WHERE seq IN (SELECT seq FROM redriven WHERE since < ?)", (oldest,)
            )
            return _delete_older_messages(connection, oldest, _ALL)

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Take messages for a group, first those whose lease ran out or that were given back at once.

        Then those never seen, and among them some of those that were put off by a delay.
        """
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
                " OR EXISTS (SELECT 1 FROM leases WHERE grp = ?1 AND ready_at <= ?2 AND receipt <> '~')"
                " OR EXISTS (SELECT 1 FROM leases WHERE grp = ?1 AND ready_at <= ?2 AND receipt = '~')",
                (group, self._lease_clock.now(connection)),
            ).fetchone()
            return bool(row[0])

    def _hand_out(self, group: str, limit: int, lease: float) -> list[Received]:
        token = secrets.token_hex(8)
        received: list[Received] = []
        size = 0
        # What a power cut undoes here was never handled as far as anybody knows, and is handed out again.
        with self._file.write(durable=False) as connection:
            now = self._lease_clock.start(connection)
            cursor, replay = _place(connection, group)
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
            put_off = connection.execute(  # cross: in this order, and no more rows than are asked for
                "SELECT seq, attempts + 1, id, published, key, body FROM"
                " (SELECT seq, attempts FROM leases"
                " WHERE grp = ? AND ready_at <= ? AND receipt = '~' AND +seq >= 0 ORDER BY ready_at, seq LIMIT ?)"
                " CROSS JOIN messages USING (seq)",
                (group, now, limit),
            )
            fresh = connection.execute(
                "SELECT seq, 1, id, published, key, body FROM messages WHERE seq > ? ORDER BY seq LIMIT ?",
                (cursor, limit),
            )
            leases = []
            share = max(1, limit // PUT_OFF_SHARE)
            parts = ((redriven, limit), (again, limit), (put_off, share), (fresh, limit), (put_off, limit))
            for rows, most in parts:
                until = min(limit, len(received) + most)
                while len(received) < until and size < MAX_RECEIVED_BYTES and (row := rows.fetchone()):
                    seq, attempts, id, published, key, body = row
                    generation = Generation(replay, seq - _FIRST_REDRIVEN if seq < 0 else 0)
                    received.append(Received(id, body, f"{seq}.{token}", attempts, published, key, generation))
                    leases.append((group, seq, now + lease, attempts, token))
                    cursor = max(cursor, seq)
                    size += len(body)
            for rows, _ in parts:
                rows.close()
            connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)", leases)
            connection.execute("INSERT OR REPLACE INTO groups VALUES (?, ?, ?)", (group, cursor, replay))
        return received

    # -- settling -------------------------------------------------------------------------------------------------

    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Mark messages as handled, in one transaction."""
        return self._settle(received, "DELETE FROM leases WHERE grp = ?1 AND seq = ?2 AND receipt = ?3", (group,))

    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Give messages back, in one transaction; their receipts are stale then."""
        return self._settle(
            received,
            "UPDATE leases SET ready_at = ?4, receipt = ?6, attempts = attempts - ?5"
            " WHERE grp = ?1 AND seq = ?2 AND receipt = ?3",
            (group,),
            (int(not attempted), _PUT_OFF if delay > 0 else ""),
            seconds=delay,
            durable=False,  # what a power cut undoes comes back when its lease is over
        )

    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Let leases run from now, in one transaction; a lease that ran out is revived unless it was handed on."""
        return self._settle(
            received,
            "UPDATE leases SET ready_at = ?4 WHERE grp = ?1 AND seq = ?2 AND receipt = ?3",
            (group,),
            seconds=lease,
            durable=False,
        )

    def dead_letter_each(self, group: str, given_up: Sequence[GivenUp]) -> int:
        """Move messages to the group's dead letters, in one transaction whatever the reasons."""
        if not given_up:
            return 0
        changed, now = 0, self._clock()
        with self._file.write() as connection:
            for one in given_up:
                message = one.received
                seq, token = _read_receipt(message)
                if connection.execute(
                    "DELETE FROM leases WHERE grp = ? AND seq = ? AND receipt = ?", (group, seq, token)
                ).rowcount:
                    consumers = msgspec.json.encode(one.consumers).decode()
                    told = (_storable(one.reason), now, consumers, _storable(one.traceback))
                    connection.execute(
                        "INSERT INTO dead (grp, id, published, key, body, attempts, reason, died, consumers, traceback)"
                        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        (group, message.id, message.published, message.key, message.body, message.attempts, *told),
                    )
                    changed += 1
        return changed

    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Give dead letters to their group again, each in a transaction of its own with its removal."""
        check_name("group", group)
        changed = looked = last = 0
        while letters := self._letters(group, last, _LOOKED_AT if limit is None else min(limit - looked, _LOOKED_AT)):
            for letter in letters:
                looked, last = looked + 1, int(letter.token)
                body = decide(letter)  # outside of any transaction: it may take its time
                if body is not None:
                    changed += self._revive(group, last, body)
        return changed

    def _revive(self, group: str, number: int, body: bytes) -> int:
        seq, now = _FIRST_REDRIVEN + number, self._clock()
        with self._file.write() as connection:
            ready_at = self._lease_clock.start(connection)
            if not connection.execute(
                "INSERT INTO redriven SELECT ?1, id, published, key, ?2, ?3 FROM dead WHERE number = ?4 AND grp = ?5",
                (seq, bytes(body), now, number, group),
            ).rowcount:
                return 0  # another process was faster
            connection.execute("DELETE FROM dead WHERE number = ?", (number,))
            connection.execute("INSERT INTO leases VALUES (?, ?, ?, 0, '')", (group, seq, ready_at))
        return 1

    def _settle(
        self,
        received: Sequence[Received],
        statement: str,
        before: tuple[str],
        after: tuple[int | str, ...] = (),
        *,
        seconds: float | None = None,
        durable: bool = True,
    ) -> int:
        """Run a statement for each receipt, with the time ``seconds`` from now as ``?4`` where that is given."""
        if not received:
            return 0
        receipts = [_read_receipt(message) for message in received]
        with self._file.write(durable=durable) as connection:
            time = () if seconds is None else (self._lease_clock.start(connection) + seconds,)
            rows = [(*before, *receipt, *time, *after) for receipt in receipts]
            return connection.executemany(statement, rows).rowcount

    # -- looking --------------------------------------------------------------------------------------------------

    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Give a group's dead letters, oldest first."""
        return self._letters(group, 0, limit)

    def _letters(self, group: str, after: int, limit: int) -> list[DeadLetter]:
        with self._file.read() as connection:
            rows = connection.execute(
                "SELECT id, body, grp, reason, attempts, died, consumers, traceback, number FROM dead"
                " WHERE grp = ? AND number > ? ORDER BY number LIMIT ?",
                (group, after, max(limit, 0)),
            ).fetchall()
        return [
            DeadLetter(
                id, body, grp, reason, attempts, died, tuple(msgspec.json.decode(consumers)), traceback, str(number)
            )
            for id, body, grp, reason, attempts, died, consumers, traceback, number in rows
        ]

    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Look at messages, in the order of their publishing; cut like a batch that is received."""
        seen: list[Received] = []
        size = 0
        with self._file.read() as connection:
            rows = connection.execute(
                f"SELECT id, body, published, key FROM messages ORDER BY seq {'DESC' if newest else ''} LIMIT ?",  # noqa: S608
                (limit,),
            )
            for id, body, published, key in rows:
                seen.append(Received(id, body, "", 0, published, key))
                size += len(body)
                if size >= MAX_RECEIVED_BYTES:
                    break
        return seen[::-1] if newest else seen

    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Let a group go on from elsewhere, in one transaction. What was redriven stays, with no attempts yet.

        Raises:
            TopicError: the group holds messages.
        """
        check_name("group", group)
        with self._file.write() as connection:
            now = self._lease_clock.start(connection)
            if held := _group_state(connection, group, now).in_flight:
                raise TopicError(
                    f"topic {self.name}: group {group} holds {held} messages; stop its consumers,"
                    " or wait until their leases have run out"
                )
            if to == "earliest":
                where: tuple[str, tuple[float, ...]] = "SELECT 0", ()
            elif to == "latest":
                where = "SELECT COALESCE(MAX(seq), 0) FROM messages", ()
            else:
                where = (
                    "SELECT COALESCE((SELECT MIN(seq) - 1 FROM messages WHERE published >= ?),"
                    " (SELECT MAX(seq) FROM messages), 0)",
                    (to,),
                )
            (cursor,) = connection.execute(*where).fetchone()
            connection.execute("DELETE FROM leases WHERE grp = ? AND seq >= 0", (group,))
            connection.execute("UPDATE leases SET ready_at = ?, attempts = 0, receipt = '' WHERE grp = ?", (now, group))
            replay = _place(connection, group)[1] + 1
            connection.execute("INSERT OR REPLACE INTO groups VALUES (?, ?, ?)", (group, cursor, replay))
            return _group_state(connection, group, now)

    def group_state(self, group: str) -> GroupState:
        """Tell how far a group is; its lag is counted message by message."""
        with self._file.read() as connection:
            return _group_state(connection, group, self._lease_clock.now(connection))

    def describe(self) -> TopicState:
        """Tell what the topic holds; adds up the bodies of all messages."""
        with self._file.read() as connection:
            messages, size, oldest = connection.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0), MIN(published) FROM messages"
            ).fetchone()
            names = connection.execute("SELECT name FROM groups ORDER BY name").fetchall()
            now = self._lease_clock.now(connection)
            groups = [_group_state(connection, name, now) for (name,) in names]
        return TopicState(self.name, messages, size, oldest, groups)


def _inserts(messages: Sequence[Message]) -> Iterator[tuple[Sequence[Message], str]]:
    """Deal messages out to statements of many rows.

    Each row of its own gives the interpreter's lock away, and in a process with other busy threads waits for it.
    """
    begin = 0
    for rows in _ROWS:
        while len(messages) - begin >= rows:
            yield messages[begin : begin + rows], _INSERTS[rows]
            begin += rows


def _place(connection: sqlite3.Connection, group: str) -> tuple[int, int]:
    """Return a group's cursor and the number of its last replay."""
    row = connection.execute("SELECT cursor, replay FROM groups WHERE name = ?", (group,)).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def _group_state(connection: sqlite3.Connection, group: str, now: float) -> GroupState:
    cursor, _ = _place(connection, group)
    lag, leases, in_flight, dead = connection.execute(
        "SELECT (SELECT COUNT(*) FROM messages WHERE seq > ?2),"
        " (SELECT COUNT(*) FROM leases WHERE grp = ?1),"
        " (SELECT COUNT(*) FROM leases WHERE grp = ?1 AND receipt NOT IN ('', '~') AND ready_at > ?3),"
        " (SELECT COUNT(*) FROM dead WHERE grp = ?1)",
        (group, cursor, now),
    ).fetchone()
    return GroupState(group, cursor, lag, in_flight, leases - in_flight, dead)


def _storable(text: str) -> str:
    """Give a text that SQLite takes: without lone surrogates, and without the null characters that would end it."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _read_receipt(message: Received) -> tuple[int, str]:
    seq, _, token = message.receipt.partition(".")
    if not (seq.removeprefix("-").isdecimal() and token):
        raise TopicError(f"message {message.id}: {message.receipt!r} is not a receipt of a local topic")
    return int(seq), token


def _handled_by_all(connection: sqlite3.Connection) -> int:
    """Return the highest seq up to which every group has acked or buried all messages; 0 where there is no group."""
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
