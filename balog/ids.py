"""Create event ids: ordered by time, letters and digits only, unique across threads and forks."""

from __future__ import annotations

import itertools
import os
import threading
import time

__all__ = ["IdSeries", "new_id"]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = tuple(a + b for a in _DIGITS for b in _DIGITS)
_COUNTER_LIMIT = 62**4


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width // 2):
        number, pair = divmod(number, 3844)
        digits.append(_PAIRS[pair])
    return "".join(reversed(digits))


class _IdSource:
    """Ids ``LG`` + 8 digits of milliseconds + 10 random digits + 4 digits that count, all base 62 in ASCII order.

    They have 131 bits. Ids of a process only grow, even if the clock steps back. The random part is new for every
    millisecond and after every fork, so ids of two processes collide with a chance of 2^-59 in a millisecond.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may log while its thread is in here
        self._millisecond = 0
        self._prefix_and_counter: tuple[str, itertools.count[int]] = ("", itertools.count(_COUNTER_LIMIT))

    def next(self) -> str:
        if time.time_ns() // 1_000_000 > self._millisecond:
            self._renew()
        prefix, counter = self._prefix_and_counter
        number = next(counter)
        while number >= _COUNTER_LIMIT:  # 14 million ids in one millisecond: use the next one
            self._renew(exhausted=counter)
            prefix, counter = self._prefix_and_counter
            number = next(counter)
        high, low = divmod(number, 3844)
        return prefix + _PAIRS[high] + _PAIRS[low]

    def _renew(self, exhausted: itertools.count[int] | None = None) -> None:
        random = int.from_bytes(os.urandom(8), "big") % 62**10
        with self._lock:
            now = time.time_ns() // 1_000_000
            if exhausted is not None:
                if self._prefix_and_counter[1] is not exhausted:
                    return
                now = max(now, self._millisecond + 1)
            elif now <= self._millisecond:
                return
            self._prefix_and_counter = (f"LG{_base62(now, 8)}{_base62(random, 10)}", itertools.count())
            self._millisecond = now


_ids = _IdSource()
new_id = _ids.next
"""Return a new event id: 24 letters and digits, ordered by time, unique across threads and forks."""


class IdSeries:
    """A reproducible series of ids, by name and number.

    Args:
        name: the name of an earlier series, 18 letters and digits; by default a new one.

    Raises:
        ValueError: the name is invalid.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name or new_id()[2:20]
        if len(self.name) != 18 or not set(self.name) <= set(_DIGITS):
            raise ValueError(f"{self.name!r:.40} is not the name of a series of ids")
        self._millisecond = 0
        for digit in self.name[:8]:
            self._millisecond = self._millisecond * 62 + _DIGITS.index(digit)

    def id(self, number: int) -> str:
        """Return the id of a number, 0 or more. A larger number has a larger id."""
        later, count = divmod(number, _COUNTER_LIMIT)
        return f"LG{_base62(self._millisecond + later, 8)}{self.name[8:]}{_base62(count, 4)}"


def _forget_ids() -> None:
    _ids.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget_ids)
