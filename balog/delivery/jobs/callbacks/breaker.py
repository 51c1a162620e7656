"""The breaker: an endpoint that fails is left alone, and asked again now and then with one request."""

from __future__ import annotations

import time
from collections.abc import Callable

from balog.backoff import Backoff, BackoffSequence

__all__ = ["Breaker"]

THRESHOLD = 5
"""Failures in a row that open it."""

LONGEST = 60.0
"""Seconds between probes at most: one request a minute harms nobody, and a recovery should not go unnoticed."""


class Breaker:
    """Says when an endpoint may be asked. Not for several threads.

    Args:
        first: seconds until the first probe at most; doubled for each that fails, up to a minute, with full jitter.
        clock: seconds that only grow.
    """

    def __init__(self, first: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._delays = BackoffSequence(Backoff(min(first, LONGEST), LONGEST))
        self._paused_at = float("-inf")
        self._not_before = 0.0

    @property
    def is_open(self) -> bool:
        """Whether one request at most may be under way."""
        return self._failures >= THRESHOLD

    @property
    def wait(self) -> float:
        """Seconds until the endpoint may be asked; 0.0 when it may be."""
        return max(0.0, self._not_before - self._clock())

    def succeed(self) -> None:
        """Take note that the endpoint answered as one that is well."""
        self._failures = 0
        self._delays.reset()

    def fail(self, begun: float, retry_after: float | None = None) -> None:
        """Take note of trouble that is the endpoint's own.

        Args:
            begun: when the request began: those that were under way together make one pause longer, not each its own.
            retry_after: seconds that it asked to be left alone, which counts whether the breaker is open or not.
        """
        self._failures += 1
        now = self._clock()
        if self.is_open and begun > self._paused_at:
            self._not_before = max(self._not_before, now + self._delays.next())
            self._paused_at = now
        if retry_after is not None:
            self._not_before = max(self._not_before, now + retry_after)
