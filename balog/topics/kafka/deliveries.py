"""Choose the fetched messages that a member receives next, and find them again by their receipts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from balog.common.errors import TopicError
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
        held.partition.deliver(held, self._count, until)
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
