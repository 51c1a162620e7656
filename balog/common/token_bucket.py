"""A token bucket: a limit of a rate, with bursts."""

from __future__ import annotations

import time
from collections.abc import Callable


class TokenBucket:
    """Tokens that come at a steady rate and are kept up to a burst. Full in the beginning; not thread-safe.

    Args:
        rate: tokens a second.
        burst: tokens at most that are kept.
        clock: a monotonic clock, in seconds.
    """

    __slots__ = ("_clock", "_full_at", "burst", "rate")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._full_at = 0.0

    @property
    def available(self) -> float:
        """The tokens that are there; below 0 if more were taken than had come."""
        return self.burst - max(self._full_at - self._clock(), 0.0) * self.rate

    def take(self, tokens: float = 1.0) -> float:
        """Return the seconds until the taken tokens have come, 0 if they are there. They count as taken at once."""
        now = self._clock()
        self._full_at = max(self._full_at, now) + tokens / self.rate
        wait = self._full_at - now - self.burst / self.rate
        return wait if wait > 1e-9 else 0.0  # a nanosecond is rounding

    def wait(self) -> None:
        """Wait for a token and take it; after a wait, a whole burst is there."""
        if seconds := self.take():
            time.sleep(seconds + self.burst / self.rate)
