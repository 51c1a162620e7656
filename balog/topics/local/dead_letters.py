"""Dead letters in a local topic's SQLite file."""

from __future__ import annotations

import sqlite3

import msgspec

from balog.topics.base import DeadLetter, GivenUp
from balog.topics.local.schema import FIRST_REDRIVEN, read_receipt

__all__ = ["list_dead_letters", "redrive_dead_letter", "store_dead_letter"]


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
