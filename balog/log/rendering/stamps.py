"""Ids and timestamps of new events, encoded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import time_ns

from balog.event import format_timestamp
from balog.event.ids import id_batch

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


def _forget() -> None:
    global _current
    _current = _NOTHING_KNOWN


os.register_at_fork(after_in_child=_forget)  # the child's ids have a random part of their own
