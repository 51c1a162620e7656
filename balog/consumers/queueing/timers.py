"""Timers of a run: actions that are due at a later moment."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Hashable
from functools import partial
from itertools import count


class Timers:
    """Actions by the moment at which they are due, in seconds of ``time.monotonic``. The caller holds the lock.

    Args:
        wake: called when an action is due earlier than all others, so that the waiting thread waits anew.
    """

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._planned: dict[Hashable, float] = {}

    def add(self, due: float, action: Callable[[], None]) -> None:
        """Schedule an action."""
        heapq.heappush(self._actions, (due, next(self._numbers), action))
        if self._actions[0][0] == due:
            self._wake()

    def add_once(self, key: Hashable, due: float, action: Callable[[], None]) -> None:
        """Schedule an action unless the key has one that is due no later."""
        if due < self._planned.get(key, math.inf):
            self._planned[key] = due
            self.add(due, partial(self._run_once, key, due, action))

    def run(self) -> float | None:
        """Run the actions that are due and return the seconds until the next one; None when there is none."""
        while self._actions:
            rest = self._actions[0][0] - time.monotonic()
            if rest > 0:
                return rest
            heapq.heappop(self._actions)[2]()
        return None

    def _run_once(self, key: Hashable, due: float, action: Callable[[], None]) -> None:
        if self._planned.get(key) == due:  # otherwise an earlier one ran, which has scheduled the next
            del self._planned[key]
            action()
