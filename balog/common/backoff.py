"""Exponential backoff with full jitter: how long to wait before the next attempt."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import NamedTuple


def read_retry_after(value: str | None, now: float | None = None, longest: float = float("inf")) -> float | None:
    """Return the seconds of a ``Retry-After`` header (RFC 9110, 10.2.3), which is a number or a date.

    Args:
        value: the header's value; None when there is none.
        now: seconds since the epoch to which a date is compared; the current time when omitted.
        longest: seconds at most.

    Returns:
        From 0 to ``longest`` seconds; None if the value is neither a number nor a date.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime  # slow to import, and rarely needed

        try:
            at = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        if at.tzinfo is None:  # -0000: UTC without a known zone
            from datetime import timezone

            at = at.replace(tzinfo=timezone.utc)
        seconds = at.timestamp() - (time.time() if now is None else now)
    return min(max(seconds, 0.0), longest) if seconds == seconds else None


LONGEST_BACKOFF = 60.0
"""Seconds between two attempts at most, where nobody configured another limit."""


class Backoff(NamedTuple):
    """Delays that double from one attempt to the next, with full jitter.

    Full jitter draws each delay from 0 to its upper limit, so that clients that failed together do not retry together
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).

    Attributes:
        first: the upper limit of the first delay, in seconds.
        longest: the upper limit of every delay, in seconds.
    """

    first: float
    longest: float = LONGEST_BACKOFF

    def limit(self, failures: int) -> float:
        """Return the upper limit of the delay after so many failures in a row (from 1), in seconds."""
        return min(self.first * 2.0 ** min(failures - 1, 60), max(self.first, self.longest))

    def delay(
        self, failures: int, retry_after: float | None = None, *, chance: Callable[[], float] | None = None
    ) -> float:
        """Return the delay before the next attempt, in seconds, rounded to milliseconds.

        Args:
            failures: failed attempts in a row, from 1.
            retry_after: seconds that the other side asked for; a longer wait than the drawn one wins.
            chance: returns numbers from 0 to 1, for tests. ``random.random`` when omitted.
        """
        limit = self.limit(failures)
        drawn = limit * (chance or random.random)()
        return max(min(round(drawn, 3), limit), retry_after or 0.0)


class BackoffSequence:
    """The delays of one series of failures. Not for several threads.

    ::

        delays = BackoffSequence(Backoff(1.0))
        while not is_over.is_set():
            try:
                step()
                delays.reset()
            except TopicError:
                is_over.wait(delays.next())

    Args:
        backoff: the limits of the delays.
    """

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff
        self.failures = 0

    def next(self, retry_after: float | None = None) -> float:
        """Count a failure and return the delay before the next attempt, in seconds; see ``Backoff.delay``."""
        self.failures += 1
        return self.backoff.delay(self.failures, retry_after)

    def reset(self) -> None:
        """Forget the failures: the next delay is a first one."""
        self.failures = 0
