"""A clock for deadlines: the wall's, except that a sudden step must last before it counts."""

from __future__ import annotations

import time
from collections.abc import Callable

SETTLE_SECONDS = 30.0
"""Seconds that a step of the wall clock must last."""

_SLEW = 1.0


class SteadyClock:
    """Seconds since the epoch, which follow the monotonic clock over a step of the wall clock.

    A step of a second or less counts at once. A larger one counts after ``SETTLE_SECONDS``: a clock that is set wrong
    for a moment makes no deadline pass, and a clock that is set right is believed.

    Args:
        wall: returns seconds since the epoch.
        monotonic: returns monotonic seconds.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._offset = wall() - monotonic()
        self._stepped: float | None = None

    def now(self) -> float:
        """Return the time."""
        passed, wall = self._monotonic(), self._wall()
        if abs(wall - passed - self._offset) <= _SLEW:
            self._stepped = None
        elif self._stepped is None:
            self._stepped = passed
        if self._stepped is not None and passed - self._stepped < SETTLE_SECONDS:
            return passed + self._offset
        self._stepped = None
        self._offset = wall - passed
        return wall
