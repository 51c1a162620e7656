"""The tables of a local topic's SQLite file."""

from __future__ import annotations

import sqlite3

from balog.errors import TopicError
from balog.topics.base import GroupState, Received

__all__ = [
    "APPLICATION_ID",
    "DELAYED",
    "FIRST_REDRIVEN",
    "SCHEMA",
    "VERSION",
    "group_state",
    "position_of",
    "read_receipt",
]

APPLICATION_ID = 0x62616C67
VERSION = 4
FIRST_REDRIVEN = -(2**62)
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
