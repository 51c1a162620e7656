"""The time as a server has it, for signatures that it rejects when they are too old or from the future."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

_TOLERATED = 30.0


class ServerClock:
    """A clock that can be set by the ``Date`` of a server's responses.

    Args:
        clock: returns seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._offset = 0.0

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._clock() + self._offset

    def learn(self, date: str | None) -> bool:
        """Set the clock by a ``Date``, unless they differ by at most 30 s; return whether it was set."""
        try:
            server = parsedate_to_datetime(date or "").timestamp()
        except (ValueError, OverflowError, OSError):
            return False
        if abs(server - self.now()) <= _TOLERATED:
            return False
        self._offset = server - self._clock()
        return True
