"""Move delayed retries to the group's retry topic, so that a few of them do not hold back a commit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from balog.common.errors import BalogError
from balog.topics.kafka.partition import AssignedPartition, FetchedMessage

MOVE_BEYOND = 2000
"""Number of offsets between commit and deliveries above which delayed retries are moved."""

_AT_ONCE = 500
_PAUSE = 5.0

log = logging.getLogger("balog.topics.kafka")


@dataclass(eq=False)
class DelayedRetries:
    """Finds delayed retries that hold back a commit, and writes them to the group's retry topic.

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
                held.settling = True
        if not leaving:
            return False
        try:
            self.move([(held, held.ready_at + epoch) for held in leaving])
        except BalogError as error:
            log.warning("messages that wait for a retry could not be moved: %s", error)
            self._not_before = now + _PAUSE
            with self.changed:
                for held in leaving:
                    held.settling = False
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
