"""Create event ids: ordered by time, letters and digits only, unique across threads and forks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = tuple(a + b for a in _DIGITS for b in _DIGITS)
_ENDS = tuple(pair.encode() for pair in _PAIRS)
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
        self._stem = b""
        self._high = len(_ENDS)  # all ids of this millisecond are in use
        self._batch: tuple[bytes, Iterator[bytes]] = b"", iter(())

    def next(self) -> str:
        millisecond = time.time_ns() // 1_000_000
        prefix, ends = self.batch(millisecond)
        while (end := next(ends, None)) is None:
            prefix, ends = self.batch(millisecond, ends)
        return (prefix + end).decode()

    def batch(self, millisecond: int, exhausted: Iterator[bytes] | None = None) -> tuple[bytes, Iterator[bytes]]:
        """Return the current ids of the process, of a millisecond or of a later one.

        Args:
            millisecond: since the epoch.
            exhausted: ends of an earlier batch that are all in use.

        Returns:
            The first 22 characters, and their ends of two characters. Each end is an id of its own, whichever thread
            takes it.
        """
        if millisecond > self._millisecond or exhausted is not None:
            random = int.from_bytes(os.urandom(8), "big") % 62**10
            with self._lock:
                if millisecond > self._millisecond:
                    self._begin(millisecond, random)
                elif exhausted is self._batch[1]:
                    if self._high + 1 < len(_ENDS):
                        self._high += 1
                    else:  # 14 million ids in one millisecond: use the next one
                        self._begin(self._millisecond + 1, random)
                    self._batch = self._stem + _ENDS[self._high], iter(_ENDS)
        return self._batch

    def _begin(self, millisecond: int, random: int) -> None:
        self._stem = f"LG{_base62(millisecond, 8)}{_base62(random, 10)}".encode()
        self._high = 0
        self._batch = self._stem + _ENDS[0], iter(_ENDS)
        self._millisecond = millisecond


_ids = _IdSource()
id_batch = _ids.batch
new_id = _ids.next
"""Return a new event id: 24 letters and digits, ordered by time, unique across threads and forks."""


def _forget_ids() -> None:
    _ids.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget_ids)
