"""Reduce records by sampling or throttling."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Sequence

from balog.broker.records.config import Sample
from balog.broker.records.json_members import Members, read_members, read_value, write
from balog.broker.records.paths import Steps, parse_path

_SLEEP_SECONDS = 0.01
_BURST_SECONDS = 0.1


class Sampling:
    """Decides which records of a stream to keep.

    By key, the decision is a hash of the values of some properties, with neither the stream nor the properties' names
    in it: users by ``id`` and orders by ``user_id`` give the orders of the users that stay. Where there are no key
    properties, all of a record decides.

    Args:
        config: what part, and by what.
        stream: two streams with one seed are independent of each other.
    """

    def __init__(self, config: Sample, stream: str) -> None:
        self._limit = int(config.rate * (1 << 64))
        self._by = [parse_path(path) for path in config.by]
        self._is_fixed = bool(self._by)
        self._random = random.Random(f"{config.seed}:{stream}") if config.seed is not None else None

    def set_keys(self, key_properties: Sequence[str]) -> None:
        """Sample by these properties from now on, unless the config names others."""
        if not self._is_fixed:
            self._by = [(name,) for name in key_properties]

    def takes(self, record: Members) -> bool:
        """Return whether to keep a record."""
        if self._random is not None:
            return self._random.getrandbits(64) < self._limit
        parts = [_find(record, steps) for steps in self._by] if self._by else [write(record)]
        digest = hashlib.blake2b(b"\x1f".join(parts), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self._limit


def _find(members: Members, steps: Steps) -> bytes:
    """Return the canonical JSON at a path; null without a value."""
    raw = members.get(steps[0])
    value = b"null" if raw is None else bytes(raw)
    if len(steps) > 1:
        return _find(read_members(value), steps[1:]) if value[:1] == b"{" else b"null"
    return write(read_value(value)) if b"\\" in value else value


class Throttle:
    """Limits records per second by waiting, which slows down the pipe and the tap.

    Args:
        rate: records a second.
        sleep: waits so many seconds; may come back early when the program is to stop.
        clock: seconds, as ``time.monotonic``.
    """

    def __init__(
        self, rate: float, sleep: Callable[[float], object] = time.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = 1 / rate
        self._sleep = sleep
        self._clock = clock
        self._next = clock()

    def wait(self) -> None:
        """Wait until the next record may pass."""
        now = self._clock()
        ahead = self._next - now
        if ahead > 0 and max(ahead, self._interval) > _SLEEP_SECONDS:
            self._sleep(ahead)
        # Unused capacity is kept for a moment only.
        self._next = max(self._next, now - _BURST_SECONDS) + self._interval
