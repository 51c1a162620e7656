"""Rate limit for datagrams, which a slow receiver drops."""

from __future__ import annotations

import time

_BURST = 0.01  # seconds


class RateLimit:
    """Limits calls to ``rate`` a second, with bursts of a hundredth of a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._next_at = 0.0

    def wait(self) -> None:
        """Wait until the next call is allowed."""
        now = time.monotonic()
        self._next_at = max(self._next_at, now) + 1 / self._rate
        if self._next_at - now > _BURST:
            time.sleep(self._next_at - now)
