"""The state that the threads of one sink worker share, with the batch in flight."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from balog.delivery.attempt import AttemptOutcome
from balog.delivery.event_queue import ENTRY_BYTES, NO_EVENT, Entry, EventQueue
from balog.delivery.segment import Segment
from balog.delivery.stats import SinkStats
from balog.sinks.base import Delivery


class SpoolRange(NamedTuple):
    """The place of a batch on disk: the next ``events`` events of a segment, up to the offset ``end``."""

    segment: Segment
    end: int
    events: int


@dataclass
class InFlightBatch:
    """The events that a worker is delivering.

    Attributes:
        entries: the events that the sink has neither taken nor refused for good.
        bytes: the batch's share of the queue's memory; 0 if it came from disk.
        on_disk: its place on disk; None while it is only in memory.
        deliveries: its decoded events, if it came from disk.
    """

    entries: list[Entry]
    bytes: int = 0
    on_disk: SpoolRange | None = None
    deliveries: Sequence[Delivery] = ()


class WorkerState:
    """An event is in one place at a time: in the queue, in the batch in flight, or on disk.

    Hold ``lock`` to change any attribute. Never wait for a sink or a disk while holding it.

    Args:
        spool: the name of the spool, "" without one.

    Attributes:
        lock: guards all attributes. ``put`` takes it directly, which is faster than through ``changed``.
        changed: the condition of ``lock``; notified when a waiting thread may go on.
        disk: guards the spool's files; taken before ``lock``.
        queue: the events in memory.
        batch: the batch in flight.
        stats: counters that are complete except for those that ``SinkWorker.stats`` adds.
        deadline: until when the worker delivers, by the monotonic clock; None while it is not draining.
        has_ended: whether the worker has stopped for good.
        progress: counts the batches that were settled or spooled.
        last_number: the number of the last event that arrived.
        first_lost: the number of the first event that was lost.
        first_dropped: the number of the first event that was lost without an answer of the sink.
    """

    def __init__(self, spool: str) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.disk = threading.RLock()
        self.queue = EventQueue()
        self.batch: InFlightBatch | None = None
        self.stats = SinkStats(spool=spool)
        self.deadline: float | None = None
        self.has_ended = False
        self.progress = 0
        self.last_number = 0
        self.first_lost = NO_EVENT
        self.first_dropped = NO_EVENT
        self._before_change: tuple[int, list[Entry]] | None = None

    @property
    def durable(self) -> int:
        """The number up to which every event is delivered, filtered or on disk; see ``Dispatcher.durable``.

        ``NO_EVENT - 1`` if no event is missing and no more will arrive.
        """
        with self.lock:
            return min(self._first_unsettled(), self.first_lost) - 1

    @property
    def settled(self) -> int:
        """The number up to which every event is durable or was refused for good; see ``Dispatcher.settled``."""
        with self.lock:
            return min(self._first_unsettled(), self.first_dropped) - 1

    def _first_unsettled(self) -> int:
        first = self.first_in_memory()
        return self.last_number + 1 if first == NO_EVENT else first

    def first_in_memory(self) -> int:
        """Return the number of the oldest event that is only in memory; ``NO_EVENT`` if there is none."""
        for entries in (self.batch_in_memory(), self.queue.moving, self.queue.entries):
            if entries:
                return entries[0][0]
        return NO_EVENT

    def batch_in_memory(self) -> list[Entry]:
        """Return the events of the batch in flight if they are not on disk."""
        return self.batch.entries if self.batch is not None and self.batch.on_disk is None else []

    def drop(self, count: int, first: int = NO_EVENT) -> None:
        """Count events that were dropped; ``first`` is the number of the first one if none of them was on disk."""
        self.stats.dropped += count
        self.stats.lost += count
        self.first_lost = min(self.first_lost, first)
        self.first_dropped = min(self.first_dropped, first)

    def account(self, batch: InFlightBatch, outcome: AttemptOutcome, left: list[Entry], are_dead_kept: bool) -> None:
        """Count the outcome of an attempt, and reduce the batch in flight to what is left of it.

        Args:
            are_dead_kept: whether the dead letters are on disk.
        """
        stats = self.stats
        stats.delivered += outcome.taken
        stats.dead += len(outcome.dead) + outcome.unnamed
        if outcome.unnamed:
            stats.lost += outcome.unnamed
            self.first_lost = min(self.first_lost, batch.entries[0][0] or NO_EVENT)
        if not are_dead_kept:
            stats.lost += len(outcome.dead)
            numbers = [batch.entries[index][0] for index in outcome.dead]
            self.first_lost = min([number for number in numbers if number] + [self.first_lost])
        batch.entries = left
        if batch.bytes:
            size = sum(len(body) + ENTRY_BYTES for _, body in left)
            self.queue.memory -= batch.bytes - size
            batch.bytes = size
        if not left:
            self.batch = None
        self.progress += 1
        self.changed.notify_all()

    def begin_change(self, on_disk: int) -> None:
        """Remember which events are where before files change, for an end that does not wait for a slow disk.

        Args:
            on_disk: how many events of this process are on disk.
        """
        self._before_change = on_disk, self.batch_in_memory()

    def end_change(self) -> bool:
        """Note that the files have changed. Return False if the worker ended meanwhile."""
        is_running = self._before_change is not None
        self._before_change = None
        return is_running

    def end(self, on_disk: int) -> None:
        """Stop for good. Events that are only in memory are dropped.

        Args:
            on_disk: how many events of this process are on disk. While files change, the state before that counts.
        """
        on_disk, in_memory = self._before_change or (on_disk, self.batch_in_memory())
        self.has_ended = True
        left = [*in_memory, *self.queue.clear()]
        self.drop(len(left), left[0][0] if left else NO_EVENT)
        self.stats.spooled = on_disk
        self.batch = self._before_change = None
        self.changed.notify_all()
