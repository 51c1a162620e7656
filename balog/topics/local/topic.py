"""One topic in one SQLite file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from balog.common.errors import TopicError
from balog.common.text import counted
from balog.topics.base import (
    DEFAULT_LEASE,
    DeadLetter,
    GivenUp,
    GroupState,
    Message,
    Received,
    Topic,
    TopicState,
    check_name,
)
from balog.topics.local import tables
from balog.topics.local.tables import LeaseClock
from balog.topics.sqlite_file import SqliteFile

_PRUNE_EVERY = 60.0
_SLEEPS = (0.002, 0.1)
_REDRIVE_PAGE = 100
_ROWS = (128, 16, 4, 1)  # few statements, so that each is compiled once; any SQLite takes 999 parameters, a row has 4
_INSERT = "INSERT INTO messages (id, published, key, body) VALUES {} ON CONFLICT (id) DO NOTHING"
_INSERTS = {rows: _INSERT.format(", ".join(["(?, ?, ?, ?)"] * rows)) for rows in _ROWS}


class LocalTopic(Topic):
    """One SQLite file in WAL mode; a message is on disk (fsync) when ``publish`` returns.

    ``publish`` deletes old messages, once a minute and at most 10,000 at a time.
    Without a retention, it deletes only messages that all groups have handled. The file does not shrink, but its free
    pages are used again. Leases are measured by the machine's uptime, so machines must not share the folder.
    """

    def __init__(
        self, name: str, path: Path, retention: float | None, clock: Callable[[], float], lease_clock: LeaseClock
    ) -> None:
        self.name = name
        self._file = SqliteFile(path, f"topic {name} ({path})", tables.SCHEMA, tables.APPLICATION_ID, tables.VERSION)
        self._retention = retention
        self._clock = clock
        self._lease_clock = lease_clock
        self._prune_at = 0.0
        self._received: dict[str, int] = {}
        """Messages asked for by each group since its last share of delayed retries."""

    def exists(self) -> bool:
        """Return whether the file is there."""
        return self._file.exists()

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        self._file.close()

    # -- publishing -----------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> int:
        """Store messages in one transaction, and return the number of new ones."""
        return len(self.publish_new([*messages]))

    def publish_new(self, messages: Sequence[Message]) -> set[str]:
        """Store messages in one transaction, and return the ids of new ones."""
        if not messages:
            return set()
        now = self._clock()
        if (
            time.monotonic() >= self._prune_at
            and self.exists()
            and tables.prune_some(self._file, self._retention, now) is None
        ):
            self._prune_at = time.monotonic() + _PRUNE_EVERY
        with self._file.write(create=True) as connection:
            before = connection.total_changes
            for rows, insert in _inserts(messages):
                connection.execute(insert, [part for row in rows for part in (row.id, now, row.key, bytes(row.body))])
            stored = connection.total_changes - before
            if stored == len(messages):
                return {message.id for message in messages}
            newest = connection.execute("SELECT id FROM messages ORDER BY seq DESC LIMIT ?", (stored,))
            return {id for (id,) in newest}

    def trim(self, group: str, limit: int = 10_000) -> int:
        """Delete the oldest messages that a group has acked, at most ``limit`` of them, and return their number.

        For a topic with one group that does not need ids of handled messages. Other groups lose unreceived messages.
        """
        with self._file.write(durable=False) as connection:
            return connection.execute(
                "DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE seq <= ?2 AND seq <"
                " COALESCE((SELECT MIN(seq) FROM leases WHERE grp = ?1 AND seq >= 0), 9223372036854775807)"
                " ORDER BY seq LIMIT ?3)",
                (group, tables.position_of(connection, group)[0], limit),
            ).rowcount

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Receive messages for a group: redriven ones, then those with an expired lease or released without a delay.

        New messages follow, with a share of delayed retries among them.
        """
        check_name("group", group)
        deadline = time.monotonic() + wait
        sleep, longest = _SLEEPS
        while True:
            if self._has_ready(group):  # an idle group only reads
                # A power cut may undo a lease that was never acted on; the message is then received again.
                with self._file.write(durable=False) as connection:
                    share, self._received[group] = divmod(self._received.get(group, 0) + limit, tables.DELAYED_SHARE)
                    received = tables.take_messages(connection, self._lease_clock, group, limit, lease, share)
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

    # -- settling -------------------------------------------------------------------------------------------------

    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Mark messages as handled, in one transaction."""
        return self._settle(received, "DELETE FROM leases WHERE grp = ?1 AND seq = ?2 AND receipt = ?3", (group,))

    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Release messages, in one transaction; their receipts become stale."""
        return self._settle(
            received,
            "UPDATE leases SET ready_at = ?4, receipt = ?6, attempts = attempts - ?5"
            " WHERE grp = ?1 AND seq = ?2 AND receipt = ?3",
            (group,),
            (int(not attempted), tables.DELAYED if delay > 0 else ""),
            seconds=delay,
            durable=False,  # a power cut may undo this; the message then returns at the end of its lease
        )

    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Extend leases from now, in one transaction; revive expired ones unless their messages were redelivered."""
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
        with self._file.write() as connection:
            now = self._clock()
            return sum(tables.store_dead_letter(connection, group, failure, now) for failure in given_up)

    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Redrive dead letters to their group, each in its own transaction."""
        check_name("group", group)
        redriven = seen = last = 0
        while dead_letters := self._list_dead_letters(
            group, last, _REDRIVE_PAGE if limit is None else min(limit - seen, _REDRIVE_PAGE)
        ):
            for dead_letter in dead_letters:
                seen, last = seen + 1, int(dead_letter.token)
                body = decide(dead_letter)  # outside any transaction: it may take long
                if body is not None:
                    with self._file.write() as connection:
                        ready_at = self._lease_clock.start(connection)
                        redriven += tables.redrive_dead_letter(connection, group, last, body, self._clock(), ready_at)
        return redriven

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
        """Run a statement for each receipt, with the time ``seconds`` from now as ``?4`` if given."""
        if not received:
            return 0
        receipts = [tables.read_receipt(message) for message in received]
        with self._file.write(durable=durable) as connection:
            time = () if seconds is None else (self._lease_clock.start(connection) + seconds,)
            rows = [(*before, *receipt, *time, *after) for receipt in receipts]
            return connection.executemany(statement, rows).rowcount

    # -- looking --------------------------------------------------------------------------------------------------

    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Return a group's dead letters, oldest first."""
        return self._list_dead_letters(group, 0, limit)

    def _list_dead_letters(self, group: str, after: int, limit: int) -> list[DeadLetter]:
        with self._file.read() as connection:
            return tables.list_dead_letters(connection, group, after, limit)

    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Return messages in the order of their publishing, with the size limit of a received batch."""
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
                if size >= tables.MAX_RECEIVED_BYTES:
                    break
        return seen[::-1] if newest else seen

    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Move a group to another message, in one transaction. Redriven messages stay, without attempts.

        Raises:
            TopicError: the group holds messages.
        """
        check_name("group", group)
        with self._file.write() as connection:
            now = self._lease_clock.start(connection)
            if held := tables.group_state(connection, group, now).in_flight:
                raise TopicError(
                    f"topic {self.name}: group {group} holds {counted(held, 'message')}; stop its consumers,"
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
            replay = tables.position_of(connection, group)[1] + 1
            connection.execute("INSERT OR REPLACE INTO groups VALUES (?, ?, ?)", (group, cursor, replay))
            return tables.group_state(connection, group, now)

    def group_state(self, group: str) -> GroupState:
        """Return the state of a group; its lag is counted message by message."""
        with self._file.read() as connection:
            return tables.group_state(connection, group, self._lease_clock.now(connection))

    def describe(self) -> TopicState:
        """Return the state of the topic; this adds up the bodies of all messages."""
        with self._file.read() as connection:
            messages, size, oldest = connection.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0), MIN(published) FROM messages"
            ).fetchone()
            names = connection.execute("SELECT name FROM groups ORDER BY name").fetchall()
            now = self._lease_clock.now(connection)
            groups = [tables.group_state(connection, name, now) for (name,) in names]
        return TopicState(self.name, messages, size, oldest, groups)


def _inserts(messages: Sequence[Message]) -> Iterator[tuple[Sequence[Message], str]]:
    """Split messages into statements of many rows.

    A statement for each row would release the interpreter's lock each time, and wait for it in a busy process.
    """
    begin = 0
    for rows in _ROWS:
        while len(messages) - begin >= rows:
            yield messages[begin : begin + rows], _INSERTS[rows]
            begin += rows
