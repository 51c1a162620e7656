"""The events that wait in memory for one sink."""

from __future__ import annotations

from collections import deque

MAX_QUEUE_BYTES = 16 * 1024 * 1024
"""Bytes of events in memory for one sink at most. With a spool, the rest goes to disk from a quarter of it on."""

ENTRY_BYTES = 128
"""Memory that an event in the queue takes in addition to its bytes."""

NO_EVENT = 1 << 62
"""A number greater than that of any event."""

Entry = tuple[int, bytes]
"""An event's number, 0 if it comes from disk, and its bytes."""


class EventQueue:
    """A bounded queue that counts bytes. The caller holds a lock.

    Attributes:
        limit: bytes in memory at most.
        memory: bytes in memory: waiting, being moved to disk, and in flight.
        entries: the events that wait.
        bytes: the bytes of ``entries``.
        moving: events that are being written to disk; older than ``entries``.
        oldest_at: when the first event came into the empty queue, by the monotonic clock.
    """

    __slots__ = ("_moving_bytes", "bytes", "entries", "limit", "memory", "moving", "oldest_at")

    def __init__(self) -> None:
        self.limit = MAX_QUEUE_BYTES
        self.memory = 0
        self.entries: deque[Entry] = deque()
        self.bytes = 0
        self.moving: deque[Entry] = deque()
        self._moving_bytes = 0
        self.oldest_at = 0.0

    @property
    def is_spill_due(self) -> bool:
        """Whether so much is in memory that events should go to disk."""
        return self.memory >= self.limit // 4

    def append(self, number: int, body: bytes, size: int) -> int:
        """Add an event of ``size`` bytes, overhead included. Return how many events wait."""
        self.entries.append((number, body))
        self.memory += size
        self.bytes += size
        return len(self.entries)

    def take(self, max_events: int, max_bytes: int) -> tuple[list[Entry], int]:
        """Remove the events of the next batch, at least one if any waits. Their memory stays counted.

        Returns:
            The events, and their bytes with overhead.
        """
        taken: list[Entry] = []
        size = 0
        while self.entries and len(taken) < max_events:
            entry = len(self.entries[0][1]) + ENTRY_BYTES
            if taken and size + entry > max_bytes + ENTRY_BYTES:
                break
            size += entry
            taken.append(self.entries.popleft())
        self.bytes -= size
        return taken, size

    def begin_move(self) -> deque[Entry]:
        """Set all waiting events aside, to be written to disk; see ``end_move``."""
        self.moving, self.entries = self.entries, deque()
        self._moving_bytes, self.bytes = self.bytes, 0
        return self.moving

    def end_move(self, written: int) -> None:
        """Remove the first ``written`` events that were set aside; put the others back at the front."""
        size = 0
        for _ in range(written):
            size += len(self.moving.popleft()[1]) + ENTRY_BYTES
        self.memory -= size
        if self.moving:
            self.moving.extend(self.entries)
            self.entries = self.moving
        self.moving = deque()
        self.bytes += self._moving_bytes - size
        self._moving_bytes = 0

    def clear(self) -> list[Entry]:
        """Remove and return all events, the oldest first."""
        left = [*self.moving, *self.entries]
        self.entries, self.moving = deque(), deque()
        self.memory = self.bytes = self._moving_bytes = 0
        return left
