"""The circuit breaker of an endpoint: after several failures, only single probes are sent."""

from __future__ import annotations

import time
from collections.abc import Callable

from balog.common.backoff import Backoff, BackoffSequence

THRESHOLD = 5
"""Consecutive failures that open the breaker."""

LONGEST = 60.0
"""Seconds between probes at most: one request a minute does no harm, and a recovery is noticed soon."""


class Breaker:
    """Decides when a request may be sent to an endpoint. Not thread-safe.

    Args:
        first: seconds until the first probe at most; doubled for each that fails, up to a minute, with full jitter.
        clock: returns monotonic seconds.
    """

    def __init__(self, first: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._delays = BackoffSequence(Backoff(min(first, LONGEST), LONGEST))
        self._paused_at = float("-inf")
        self._not_before = 0.0

    @property
    def is_open(self) -> bool:
        """Whether at most one request may be in flight."""
        return self._failures >= THRESHOLD

    @property
    def wait(self) -> float:
        """Seconds until the next request may be sent; 0.0 for now."""
        return max(0.0, self._not_before - self._clock())

    def succeed(self) -> None:
        """Record a response of a healthy endpoint."""
        self._failures = 0
        self._delays.reset()

    def fail(self, begun: float, retry_after: float | None = None) -> None:
        """Record a failure of the endpoint.

        Args:
            begun: when the request began, in seconds of the clock: concurrent failures lengthen the pause once.
            retry_after: seconds that the endpoint asked for, which apply whether the breaker is open or not.
        """
        self._failures += 1
        now = self._clock()
        if self.is_open and begun > self._paused_at:
            self._not_before = max(self._not_before, now + self._delays.next())
            self._paused_at = now
        if retry_after is not None:
            self._not_before = max(self._not_before, now + retry_after)
