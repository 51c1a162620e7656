"""The events of one sink that are not delivered yet: a bounded queue, and the batch in flight."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from balog.delivery.attempt import NEVER, AttemptOutcome
from balog.delivery.segment import SpoolRange
from balog.delivery.spool import SinkSpool
from balog.delivery.stats import SinkStats
from balog.sinks.base import Batching, Delivery

MAX_QUEUE_BYTES = 16 * 1024 * 1024
"""Bytes of events in memory for one sink at most. With a spool, the rest goes to disk from a quarter of it on."""

ENTRY_BYTES = 128
"""Memory that an event in the queue takes in addition to its bytes."""

NO_EVENT = 1 << 62
"""A number greater than that of any event."""

Entry = tuple[int, bytes]
"""An event's number, 0 if it comes from disk, and its bytes."""


class InFlightBatch(NamedTuple):
    """The events that a worker is delivering.

    Attributes:
        entries: the events that the sink has neither taken nor refused for good.
        bytes: the batch's share of the queue's memory; 0 if it is on disk.
        on_disk: its place on disk; None while it is only in memory.
        deliveries: what the sink gets of the entries.
    """

    entries: list[Entry]
    deliveries: Sequence[Delivery]
    bytes: int = 0
    on_disk: SpoolRange | None = None


class EventQueue:
    """Owns the events of one sink until they are delivered.

    An event is in one place at a time: it waits in memory, is being moved to disk, is in flight, or is on disk.

    Thread-safe, except that the caller of ``append`` holds ``lock``. Never wait for a sink or a disk while holding it.

    Args:
        batching: when a batch is full.
        spool: the sink's part of the spool, if there is one.
        grace: seconds after the deadline in which a sink that works is still asked.
        on_pressure: called when so much is in memory that events should go to disk.

    Attributes:
        lock: guards all attributes. It is faster than through ``changed``.
        changed: the condition of ``lock``; notified when a waiting thread may go on.
        disk: guards the spool's files; taken before ``lock``.
        entries: the events that wait.
        batch: the batch in flight.
        deadline: until when events are delivered, by the monotonic clock; None while the worker is not draining.
        has_ended: whether the worker has stopped for good.
        progress: counts the batches that were settled or spooled.
        last_number: the number of the last event that arrived.
    """

    def __init__(
        self, batching: Batching, spool: SinkSpool | None, grace: float, on_pressure: Callable[[], None]
    ) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.disk = threading.RLock()
        self.entries: deque[Entry] = deque()
        self.batch: InFlightBatch | None = None
        self.deadline: float | None = None
        self.has_ended = False
        self.progress = self.last_number = 0
        self._batching, self._spool, self._grace = batching, spool, grace
        self._on_pressure = on_pressure
        self._limit = MAX_QUEUE_BYTES
        self._pressure = MAX_QUEUE_BYTES // 4  # from here on, events go to disk
        self._memory = 0  # of events that wait, are being moved to disk, or are in flight
        self._bytes = 0  # of events that wait
        self._moving: deque[Entry] = deque()  # older than ``entries``
        self._moving_bytes = 0
        self._oldest_at = 0.0  # when the first event came into the empty queue, by the monotonic clock
        self._first_lost = self._first_dropped = NO_EVENT  # dropped is lost without an answer of the sink
        self._before_change: tuple[int, list[Entry]] | None = None
        self._filtered = self._delivered = self._dead = self._dropped = self._lost = self._spooled = 0

    # Which events are where

    @property
    def durable(self) -> int:
        """The number up to which every event is delivered, filtered or on disk; see ``Dispatcher.durable``.

        ``NO_EVENT - 1`` if no event is missing and no more will arrive.
        """
        with self.lock:
            return min(self.first_in_memory(self.last_number + 1), self._first_lost) - 1

    @property
    def settled(self) -> int:
        """The number up to which every event is durable or was refused for good; see ``Dispatcher.settled``."""
        with self.lock:
            return min(self.first_in_memory(self.last_number + 1), self._first_dropped) - 1

    def first_in_memory(self, default: int = NO_EVENT) -> int:
        """Return the number of the oldest event that is only in memory."""
        with self.lock:
            for entries in (self._batch_in_memory(), self._moving, self.entries):
                if entries:
                    return entries[0][0]
            return default

    def _batch_in_memory(self) -> list[Entry]:
        return self.batch.entries if self.batch is not None and self.batch.on_disk is None else []

    def _events_on_disk(self) -> int:
        """Count the events of this process on disk, without those of the batch in flight that are settled."""
        batch = self.batch
        settled = batch.on_disk.events - len(batch.entries) if batch is not None and batch.on_disk is not None else 0
        return self._spool.waiting - settled if self._spool is not None else 0

    def stats(self) -> SinkStats:
        """Return the counters, except those of the worker."""
        spool = self._spool
        with self.lock:
            return SinkStats(
                filtered=self._filtered,
                adopted=spool.adopted_events if spool is not None else 0,
                delivered=self._delivered,
                waiting=len(self.entries) + len(self._moving) + len(self._batch_in_memory()),
                spooled=self._spooled if self.has_ended else self._events_on_disk(),
                dead=self._dead,
                dropped=self._dropped,
                lost=self._lost,
                spool=spool.spool.name if spool is not None else "",
                dead_letters=str(spool.dead.folder) if spool is not None and spool.dead.has_any else "",
            )

    def answered(self) -> int:
        """Count the events that the sink has accepted or refused, those of the batch in flight too."""
        with self.lock:
            deliveries = self.batch.deliveries if self.batch is not None else ()
            return self._delivered + self._dead + sum(delivery.refusal is not None for delivery in deliveries)

    def append(self, number: int, body: bytes) -> bool:
        """Add an event. Return False if there is no room for it, or the worker has ended."""
        size = len(body) + ENTRY_BYTES
        if self.has_ended or self._memory + size > self._limit:
            return False
        self._memory += size
        self._bytes += size
        self.entries.append((number, body))
        self.last_number = number
        waiting = len(self.entries)
        if waiting == 1:
            if self._spool is None or not self._spool.own:
                self._oldest_at = time.monotonic()
            self.changed.notify_all()
        elif waiting == self._batching.events or self._bytes >= self._batching.bytes > self._bytes - size:
            self.changed.notify_all()
        if self._memory >= self._pressure > self._memory - size:
            self._on_pressure()
        return True

    def skip(self, number: int) -> None:
        """Count an event that this sink does not get."""
        self._filtered += 1
        self.last_number = number

    def drop(self, count: int, first: int = NO_EVENT) -> None:
        """Count events that were dropped; ``first`` is the number of the first one if none of them was on disk."""
        with self.lock:
            self._dropped += count
            self._lost += count
            self._first_lost = min(self._first_lost, first)
            self._first_dropped = min(self._first_dropped, first)
            if first != NO_EVENT:
                self.last_number = max(self.last_number, first)

    # Into flight

    def wait_for_batch(self, is_failing: bool, adopt_at: float, open_at: float) -> bool:
        """Wait until a batch is due, or for one of two times of the monotonic clock.

        Args:
            is_failing: whether the sink fails; then a batch is due at once.
            adopt_at: when to look for segments that a dead broker left.
            open_at: when to open the sink if no event waits; a batch that waits opens it anyway.

        Returns:
            False if there will be no more batches, or no time for one.
        """
        spool, batching = self._spool, self._batching
        with self.changed:
            while True:
                now = time.monotonic()
                is_draining = self.deadline is not None
                until = NEVER if self.deadline is None else self.deadline + (0.0 if is_failing else self._grace)
                if self.has_ended or now >= until:
                    return False
                next_at = adopt_at if self.entries or is_draining else min(adopt_at, open_at)
                if now >= next_at or (spool is not None and spool.adopted):
                    return True
                if self.entries or (spool is not None and spool.own):
                    due_at = self._oldest_at + batching.age
                    on_disk, size = spool.own_events() if spool is not None else (0, 0)
                    is_full = on_disk + len(self.entries) >= batching.events or size + self._bytes >= batching.bytes
                    if is_draining or is_failing or is_full or now >= due_at:
                        return True
                    next_at = min(next_at, due_at)
                elif is_draining and not self._moving:
                    return False
                self.changed.wait(None if next_at == NEVER else next_at - now)

    def take(self) -> InFlightBatch | None:
        """Put the events of the next batch in flight. Their memory stays counted. Return None if no event waits."""
        entries: list[Entry] = []
        size = 0
        with self.lock:
            while self.entries and len(entries) < self._batching.events:
                entry = len(self.entries[0][1]) + ENTRY_BYTES
                if entries and size + entry > self._batching.bytes + ENTRY_BYTES:
                    break
                size += entry
                entries.append(self.entries.popleft())
            self._bytes -= size
            deliveries = [Delivery(None, body) for _, body in entries]
            self.batch = InFlightBatch(entries, deliveries, size) if entries else None
            return self.batch

    def take_spooled(self, batch: InFlightBatch | None, damaged: int) -> None:
        """Put a batch from disk in flight. ``damaged`` lines next to it are kept as dead letters."""
        with self.lock:
            self.batch = batch
            self._dead += damaged

    # Out of flight, and to disk

    def begin_change(self) -> None:
        """Remember which events are where before files change, for an end that does not wait for a slow disk."""
        with self.lock:
            self._before_change = self._events_on_disk(), self._batch_in_memory()

    def settle(self, outcome: AttemptOutcome, are_dead_kept: bool) -> bool:
        """Count the outcome of an attempt, and reduce the batch in flight to what is left of it.

        Args:
            are_dead_kept: whether the dead letters are on disk.

        Returns:
            False if the worker has ended meanwhile and has counted the batch already.
        """
        with self.lock:
            self._before_change = None
            batch = self.batch
            if self.has_ended or batch is None:
                return False
            self._delivered += outcome.taken
            self._dead += len(outcome.dead) + outcome.unnamed
            if outcome.unnamed:
                self._lost += outcome.unnamed
                self._first_lost = min(self._first_lost, batch.entries[0][0] or NO_EVENT)
            if not are_dead_kept:
                self._lost += len(outcome.dead)
                numbers = [batch.entries[index][0] for index in outcome.dead]
                self._first_lost = min([number for number in numbers if number] + [self._first_lost])
            left = [batch.entries[index] for index in outcome.left]
            size = sum(len(body) + ENTRY_BYTES for _, body in left) if batch.bytes else 0
            self._memory -= batch.bytes - size
            deliveries = [batch.deliveries[index] for index in outcome.left]
            self.batch = batch._replace(entries=left, deliveries=deliveries, bytes=size) if left else None
            self.progress += 1
            self.changed.notify_all()
            return True

    def is_spill_due(self, number: int, is_urgent: bool) -> bool:
        """Return whether events should go to disk: it is urgent, many are in memory, or one up to ``number`` is."""
        first = self.first_in_memory()
        return first != NO_EVENT and (is_urgent or first <= number or self._memory >= self._pressure)

    def begin_move(self) -> deque[Entry]:
        """Set all waiting events aside, to be written to disk; see ``end_move``."""
        with self.lock:
            self.begin_change()
            self._moving, self.entries = self.entries, deque()
            self._moving_bytes, self._bytes = self._bytes, 0
            return self._moving

    def move_batch(self, on_disk: SpoolRange) -> None:
        """Note that the batch in flight is on disk. Its memory no longer counts.

        Otherwise a batch as large as the queue's limit would keep all other events from the disk.
        """
        with self.lock:
            if self.batch is not None:
                self._memory -= self.batch.bytes
                self.batch = self.batch._replace(on_disk=on_disk, bytes=0)

    def end_move(self, written: int) -> bool:
        """Remove the first ``written`` events that were set aside, and put the others back at the front.

        Returns:
            False if the worker has ended meanwhile.
        """
        with self.lock:
            self._before_change = None
            if self.has_ended:
                return False
            size = sum(len(self._moving.popleft()[1]) + ENTRY_BYTES for _ in range(written))
            self._memory -= size
            self._bytes += self._moving_bytes - size
            self._moving.extend(self.entries)
            self.entries, self._moving = self._moving, deque()
            self.progress += 1
            self.changed.notify_all()
            return True

    def drain(self, deadline: float) -> None:
        """Deliver until a time of the monotonic clock. A later call may only bring it forward."""
        with self.changed:
            self.deadline = deadline if self.deadline is None else min(deadline, self.deadline)
            self.changed.notify_all()

    def end(self) -> bool:
        """Stop for good. Events that are only in memory are dropped. Return False if that has happened before.

        While files change, the state before the change counts.
        """
        with self.changed:
            if self.has_ended:
                return False
            self._spooled, in_memory = self._before_change or (self._events_on_disk(), self._batch_in_memory())
            self.has_ended = True
            left = [*in_memory, *self._moving, *self.entries]
            self.entries, self._moving = deque(), deque()
            self._memory = self._bytes = 0
            if left:
                self.drop(len(left), left[0][0])
            self.batch = self._before_change = None
            self.changed.notify_all()
            return True
