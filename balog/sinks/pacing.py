"""Not sending faster than the other side reads."""

from __future__ import annotations

import time

__all__ = ["Pace"]

_BURST = 0.01  # seconds of datagrams that may go at once


class Pace:
    """Holds back what comes faster than ``rate`` a second; a hundredth of a second's worth may come at once."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._next_at = 0.0

    def wait(self) -> None:
        """Wait for the next one's turn."""
        now = time.monotonic()
        self._next_at = max(self._next_at, now) + 1 / self._rate
        if self._next_at - now > _BURST:
            time.sleep(self._next_at - now)
