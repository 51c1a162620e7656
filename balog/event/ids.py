"""Ids and timestamps of new events: ids are ordered by time, and unique across threads and forks."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from time import time_ns

from balog.common.errors import EventError

MAX_ID_LENGTH = 128
"""Largest number of characters of an event's id."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = tuple(a + b for a in _DIGITS for b in _DIGITS)
_ENDS = tuple(pair.encode() for pair in _PAIRS)
_RANDOMS = 62**10

is_id = re.compile(f"[!-~]{{1,{MAX_ID_LENGTH}}}").fullmatch
"""Match an id: 1 to 128 visible ASCII characters. Balog's own are LG and 22 letters and digits, ordered by time."""


def check_id(text: str, path: str = "$.header.id") -> None:
    """Check the id of an event.

    Raises:
        EventError: the id is invalid; the error has ``path``.
    """
    if not is_id(text):
        raise EventError(f"expected 1 to {MAX_ID_LENGTH} visible characters of ASCII, without spaces", path)


def base62(number: int, width: int) -> str:
    """Return the last digits of a number; ``width`` is even."""
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
        millisecond = time_ns() // 1_000_000
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
            random = int.from_bytes(os.urandom(8), "big") % _RANDOMS
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
        self._stem = f"LG{base62(millisecond * _RANDOMS + random, 18)}".encode()
        self._high = 0
        self._batch = self._stem + _ENDS[0], iter(_ENDS)
        self._millisecond = millisecond


_ids = _IdSource()
id_batch = _ids.batch
new_id = _ids.next
"""Return a new event id: 24 letters and digits, ordered by time, unique across threads and forks."""

_MICROSECONDS = tuple(b"%03dZ" % number for number in range(1000))
_NOTHING_KNOWN: tuple[int, bytes, bytes, Iterator[bytes]] = -1, b"", b"", iter(())
_current = _NOTHING_KNOWN
"""The last millisecond, its timestamp without microseconds, and its ids as in ``id_batch``. Replaced, never changed."""


def next_stamp() -> tuple[bytes, bytes, bytes, bytes]:
    """Return a new id and the current time as RFC 3339 in UTC with microseconds, from one reading of the clock.

    Returns:
        The id in two parts, then the time in two parts: whoever joins them with others saves two joins.
    """
    microsecond = time_ns() // 1000
    millisecond = microsecond // 1000
    known, time, prefix, ends = _current
    if known != millisecond:
        time, prefix, ends = _renew(millisecond)
    end = next(ends, None)
    while end is None:
        time, prefix, ends = _renew(millisecond, ends)
        end = next(ends, None)
    return prefix, end, time, _MICROSECONDS[microsecond - millisecond * 1000]


def _renew(millisecond: int, exhausted: Iterator[bytes] | None = None) -> tuple[bytes, bytes, Iterator[bytes]]:
    global _current
    time = format_timestamp(millisecond * 1_000_000)[:23].encode()
    prefix, ends = id_batch(millisecond, exhausted)
    _current = millisecond, time, prefix, ends
    return time, prefix, ends


_second: tuple[int, str] = (-1, "")
_THREE_DIGITS = tuple(f"{number:03d}" for number in range(1000))  # half the time that a format of six digits takes


def format_timestamp(nanoseconds: int) -> str:
    """Format nanoseconds since the epoch as RFC 3339 in UTC with microseconds."""
    global _second
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    known, text = _second
    if seconds != known:
        text = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.")
        _second = (seconds, text)
    milliseconds, microseconds = divmod(rest // 1000, 1000)
    return f"{text}{_THREE_DIGITS[milliseconds]}{_THREE_DIGITS[microseconds]}Z"


def _forget_ids() -> None:
    global _current
    _ids.__init__()  # type: ignore[misc]
    _current = _NOTHING_KNOWN


os.register_at_fork(after_in_child=_forget_ids)  # the child's ids have a random part of their own
