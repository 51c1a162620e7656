"""Choose the fetched messages that a member receives next, and move delayed retries to the group's retry topic."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from balog.common.errors import BalogError, TopicError
from balog.topics.kafka.partition import AssignedPartition, FetchedMessage

MAX_RECEIVED_BYTES = 64 * 1024 * 1024
"""A batch ends after the message whose body takes it past this size."""

_PRUNE_LEASES = 1000
"""Number of queued leases from which on those of settled messages are removed early."""


class Deliveries:
    """The messages that a member may receive, in order. Call ``take``, ``push`` and ``find`` with the member's lock.

    Args:
        partitions: the partitions assigned to the member, by topic and number; the member changes them.
        where: the name of the topic in errors.
    """

    def __init__(self, partitions: Mapping[tuple[str, int], AssignedPartition], where: str) -> None:
        self._partitions = partitions
        self._where = where
        self._name = secrets.token_hex(6)
        self._count = 0
        self._pushes = 0
        self._later: list[tuple[float, int, FetchedMessage]] = []
        self._ready: list[tuple[int, int, FetchedMessage]] = []
        self._prune_at = _PRUNE_LEASES

    def take(self, limit: int, lease: float) -> list[FetchedMessage]:
        """Lease messages, first those received before, then new ones.

        Args:
            limit: the largest number of messages.
            lease: seconds.
        """
        now = time.monotonic()
        self._collect_due(now)
        taken: list[FetchedMessage] = []
        size = 0
        postponed: list[tuple[int, int, FetchedMessage]] = []
        self._count += 1
        while self._ready and len(taken) < limit and size < MAX_RECEIVED_BYTES:
            entry = heappop(self._ready)
            held = entry[2]
            if not self.is_held(held) or held.settling or held.ready_at > now or held.token == self._count:
                continue
            if held.partition.draining:
                postponed.append(entry)
                continue
            size += self._deliver(held, now + lease)
            taken.append(held)
        for entry in postponed:
            heappush(self._ready, entry)
        for partition in self._partitions.values():
            if partition.draining or not partition.roomy:
                continue
            while partition.fresh and len(taken) < limit and size < MAX_RECEIVED_BYTES:
                held = partition.pop_fresh()
                size += self._deliver(held, now + lease)
                taken.append(held)
        return taken

    def _collect_due(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            _, _, held = heappop(self._later)
            if held.ready_at > now:  # its lease was extended
                self.push(held)
            elif self.is_held(held) and not held.settling:
                self._pushes += 1
                heappush(self._ready, (held.offset, self._pushes, held))

    def _deliver(self, held: FetchedMessage, until: float) -> int:
        held.deliver(self._count, until)
        self.push(held)
        return len(held.body)

    def push(self, held: FetchedMessage, at: float | None = None) -> None:
        """Queue a message for the end of its lease or delay, or for ``at``, in seconds of ``time.monotonic``."""
        self._pushes += 1
        heappush(self._later, (held.ready_at if at is None else at, self._pushes, held))
        if len(self._later) > self._prune_at:  # most are settled by now, and need not stay until their leases end
            self._later = [entry for entry in self._later if self.is_held(entry[2])]
            heapify(self._later)
            self._prune_at = max(_PRUNE_LEASES, 2 * len(self._later))

    def seconds_to_next(self, now: float) -> float:
        """Return the seconds until the next lease or delay ends."""
        return max(0.001, self._later[0][0] - now) if self._later else 3600.0

    def is_held(self, held: FetchedMessage) -> bool:
        """Return whether the message is unsettled and its partition still assigned to the member."""
        partition = held.partition
        owned = self._partitions.get((partition.topic, partition.number))
        return owned is partition and partition.held.get(held.offset) is held

    def receipt(self, held: FetchedMessage) -> str:
        """Return the receipt of a message's current delivery."""
        partition = held.partition
        return f"{self._name}.{held.token}.{partition.number}.{held.offset}.{partition.topic}"

    def find(self, receipt: str) -> FetchedMessage | None:
        """Return the message of a receipt; None if the receipt is stale.

        Raises:
            TopicError: the receipt is not one of a Kafka topic.
        """
        try:
            name, token, number, offset, topic = receipt.split(".", 4)
            if name != self._name:
                return None
            partition = self._partitions.get((topic, int(number)))
            held = partition.held.get(int(offset)) if partition else None
        except ValueError:
            raise TopicError(f"{self._where}: {receipt!r:.80} is not a receipt of a Kafka topic") from None
        return held if held is not None and str(held.token) == token and not held.settling else None


MOVE_BEYOND = 2000
"""Number of offsets between commit and deliveries above which delayed retries are moved."""

_AT_ONCE = 500
_PAUSE = 5.0

log = logging.getLogger("balog.topics.kafka")


@dataclass(eq=False)
class DelayedRetries:
    """Finds delayed retries that hold back a commit, and writes them to the retry topic, so that a few hold back none.

    Args:
        partitions: the partitions assigned to the member; the member changes them.
        changed: the lock of the partitions.
        retry: the name of the group's retry topic.
        move: writes pairs of a message and its due time (seconds since the epoch) to the retry topic, durably.
    """

    partitions: Mapping[tuple[str, int], AssignedPartition]
    changed: threading.Condition
    retry: str
    move: Callable[[Sequence[tuple[FetchedMessage, float]]], None]
    _not_before: float = field(default=0.0, init=False)

    def move_out(self) -> bool:
        """Move the messages that hold back a commit. Return whether there were any."""
        now = time.monotonic()
        if now < self._not_before:
            return False
        epoch = time.time() - now
        with self.changed:
            leaving = [held for assigned in self.partitions.values() for held in self._in_the_way(assigned)][:_AT_ONCE]
            for held in leaving:
                held.claim()
        if not leaving:
            return False
        try:
            self.move([(held, held.ready_at + epoch) for held in leaving])
        except BalogError as error:
            log.warning("messages that wait for a retry could not be moved: %s", error)
            self._not_before = now + _PAUSE
            with self.changed:
                for held in leaving:
                    held.unclaim()
            return False
        with self.changed:
            for held in leaving:
                if held.partition.held.get(held.offset) is held:
                    held.partition.settle(held)
        return True

    def _in_the_way(self, partition: AssignedPartition) -> list[FetchedMessage]:
        trail = partition.trail
        if trail <= MOVE_BEYOND or partition.draining:
            return []
        room = MOVE_BEYOND // 2
        waiting = [held for held in partition.waiting() if held.offset < partition.handed - room]
        # In the retry topic they only go to its end, where they come into the way again: that pays for a few among
        # many that are settled. When most of them wait, it would go on and on.
        return [] if partition.topic == self.retry and 2 * len(waiting) > trail - room else waiting
