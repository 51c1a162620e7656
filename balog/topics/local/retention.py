"""Delete old messages and dead letters of a local topic."""

from __future__ import annotations

import sqlite3

from balog.topics.sqlite_file import SqliteFile

__all__ = ["DEFAULT_RETENTION", "prune_some"]

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
    if retention is None:
        oldest = now - DEFAULT_RETENTION
        with file.read() as connection:
            if not _has_older_messages(connection, oldest, _handled_by_all(connection)):
                return None
        with file.write() as connection:
            return _delete_older_messages(connection, oldest, _handled_by_all(connection))
    oldest = now - retention
    with file.read() as connection:
        if (
            not _has_older_messages(connection, oldest, _ALL)
            and not connection.execute(
                "SELECT (SELECT died FROM dead ORDER BY number LIMIT 1) < ?1 OR (SELECT MIN(since) FROM redriven) < ?1",
                (oldest,),
            ).fetchone()[0]
        ):
            return None
    with file.write() as connection:
        connection.execute("DELETE FROM dead WHERE died < ?", (oldest,))
        connection.execute(  # the trigger deletes the messages
            "DELETE FROM leases WHERE seq IN (SELECT seq FROM redriven WHERE since < ?)", (oldest,)
        )
        return _delete_older_messages(connection, oldest, _ALL)


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
