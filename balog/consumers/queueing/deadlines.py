"""The deadlines of running calls."""

from __future__ import annotations

import time
from functools import partial

from balog.consumers.queueing.consumer_queue import ConsumerQueue
from balog.consumers.queueing.delivery import HandlerCall
from balog.consumers.queueing.timers import Timers


class Deadlines:
    """Finds the calls that take longer than their consumer's timeout. The caller holds the schedule's lock."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._overdue: list[HandlerCall] = []

    def set(self, queue: ConsumerQueue, call: HandlerCall, seconds: float) -> None:
        """Set when a call of a queue must end, in seconds from now."""
        call.deadline = time.monotonic() + seconds
        self._plan(queue, call.deadline)

    def take_overdue(self) -> list[HandlerCall]:
        """Return the calls that passed their deadline since the last time."""
        overdue, self._overdue = self._overdue, []
        return overdue

    def _plan(self, queue: ConsumerQueue, deadline: float) -> None:
        self._timers.add_once((queue, "deadline"), deadline, partial(self._check, queue))

    def _check(self, queue: ConsumerQueue) -> None:
        now = time.monotonic()
        self._overdue += [call for call in queue.running if call.deadline <= now]
        later = [call.deadline for call in queue.running if call.deadline > now]
        if later:
            self._plan(queue, min(later))
