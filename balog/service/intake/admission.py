"""Flow control: how many events of each stream may wait in memory, and when to retry the others."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from balog.common.token_bucket import TokenBucket

_SHORTEST, _LONGEST = 1.0, 60.0  # seconds of Retry-After
_FULL_WAIT = 2.0  # seconds of Retry-After while too much waits
_KEPT = 4096


class StreamState(Struct, frozen=True, kw_only=True):
    """The state of a stream.

    ``waiting`` and ``bytes`` are of events that are not durable yet, ``refused`` counts the events that were rejected
    with a retry time.
    """

    waiting: int = 0
    bytes: int = 0
    refused: int = 0


class FlowControl:
    """Admits events to memory by stream.

    A stream may hold as many bytes as are free: a single stream holds at most half of the memory, a second one half of
    the rest, and so on. So a busy stream leaves room for others (dynamic thresholds, A. Choudhury and E. Hahne, 1998).
    A stream without waiting events may always admit one event that fits.

    Args:
        limit: bytes of all streams together.
        clock: a monotonic clock, in seconds.
        jitter: returns a factor for each retry time, so that clients do not retry at once.
    """

    def __init__(
        self,
        limit: int,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = lambda: random.uniform(0.8, 1.2),
    ) -> None:
        self.limit = limit
        self.bytes = 0
        self.waiting = 0
        self._rates: Mapping[str, float] = {}
        self._clock = clock
        self._jitter = jitter
        self._streams: dict[str, _Stream] = {}

    def limit_rates(self, rates: Mapping[str, float]) -> None:
        """Set the limits of events per second by stream; a burst may have one second's worth."""
        self._rates = rates

    def admit(self, stream: str, sizes: Sequence[int]) -> tuple[int, float]:
        """Admit events from the front: events behind a rejected one must not overtake it.

        Args:
            sizes: bytes of each event.

        Returns:
            The number of admitted events, and the seconds until a retry of the others; 0 if all are admitted.
        """
        state = self._streams.get(stream)
        if state is None:
            state = self._make(stream)
        count, rate = len(sizes), self._rates.get(stream)
        wait = 0.0
        limit = None if rate is None else state.limit(rate, self._clock)
        if limit is not None:
            available = limit.available
            if count > (may := int(available + 1e-9)):
                wait = (min(count, limit.burst) - available) / limit.rate
                count = may
        size = sum(sizes) if count == len(sizes) else sum(sizes[:count])
        if not self._fits(state, size):
            count, size = self._fitting(state, sizes[:count])
            wait = max(wait, _FULL_WAIT)
        if limit is not None:
            limit.take(count)
        state.admit(count, size, len(sizes) - count)
        self.waiting += count
        self.bytes += size
        if count == len(sizes):
            return count, 0.0
        return count, self._later(wait)

    def done(self, stream: str, count: int, size: int) -> None:
        """Release events that no longer wait."""
        self._streams[stream].admit(-count, -size)
        self.waiting -= count
        self.bytes -= size

    def states(self) -> dict[str, StreamState]:
        """Return the state of each stream by name, without streams that were idle for long."""
        return {
            name: StreamState(waiting=state.waiting, bytes=state.bytes, refused=state.refused)
            for name, state in sorted(self._streams.items())
        }

    def _fits(self, stream: _Stream, size: int) -> bool:
        return stream.bytes + size <= self.limit - self.bytes - size

    def _fitting(self, stream: _Stream, sizes: Sequence[int]) -> tuple[int, int]:
        total = 0
        for count, size in enumerate(sizes):
            is_first = not (stream.bytes or total)
            if not (self._fits(stream, total + size) or (is_first and self.bytes + size <= self.limit)):
                return count, total
            total += size
        return len(sizes), total

    def _later(self, seconds: float) -> float:
        return round(min(max(min(seconds, _LONGEST) * self._jitter(), _SHORTEST), _LONGEST), 3)

    def _make(self, stream: str) -> _Stream:
        if len(self._streams) >= _KEPT:  # unbounded types, each a stream: drop idle ones
            self._streams = {name: state for name, state in self._streams.items() if state.waiting}
        state = self._streams[stream] = _Stream()
        return state


class _Stream:
    """One stream: its waiting events, and its token bucket."""

    def __init__(self) -> None:
        self.waiting = self.bytes = self.refused = 0
        self._limit: TokenBucket | None = None

    def admit(self, count: int, size: int, refused: int = 0) -> None:
        """Count events that wait from now on, and those that were rejected. Negative numbers are of events done."""
        self.waiting += count
        self.bytes += size
        self.refused += refused

    def limit(self, rate: float, clock: Callable[[], float]) -> TokenBucket:
        if self._limit is None or self._limit.rate != rate:
            self._limit = TokenBucket(rate, max(rate, 1.0), clock)
        return self._limit
