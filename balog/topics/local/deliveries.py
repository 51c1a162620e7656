"""Choose the messages that a group receives next, and lease them to it."""

from __future__ import annotations

import secrets
import sqlite3

from balog.topics.base import Generation, Received
from balog.topics.lease_clock import LeaseClock
from balog.topics.local.schema import FIRST_REDRIVEN, position_of

__all__ = ["DELAYED_SHARE", "MAX_RECEIVED_BYTES", "take_messages"]

MAX_RECEIVED_BYTES = 64 * 1024 * 1024
"""A batch ends after the message whose body takes it past this size."""

DELAYED_SHARE = 10
"""While a group has new messages, one of ten that it receives is a delayed retry, the least delayed first.

Without this limit, many messages that fail again and again would keep the group from new ones.
"""


def take_messages(
    connection: sqlite3.Connection, clock: LeaseClock, group: str, limit: int, lease: float
) -> list[Received]:
    """Lease messages to a group, redriven ones first, then released, a share of the delayed, and new ones.

    Args:
        limit: the largest number of messages.
        lease: seconds.
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
        "SELECT seq, 1, id, published, key, body FROM messages WHERE seq > ? ORDER BY seq LIMIT ?",
        (cursor, limit),
    )
    leases = []
    share = max(1, limit // DELAYED_SHARE)
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
