"""When a stream's bookmark is written in the middle of it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from balog.tap.errors import TapError

__all__ = ["BookmarkStrategy", "EndOfStream", "EveryN", "EverySeconds", "counting", "make_strategy"]


class BookmarkStrategy:
    """Decides after each record whether the state is written now. One object serves one sync of one stream.

    Attributes:
        in_middle: whether it ever wants a bookmark before the end of the stream.
    """

    in_middle = True

    def is_due(self, record: dict[str, Any], count: int) -> bool:
        """Tell whether the state is to be written after this record, the ``count``-th of the sync."""
        raise NotImplementedError

    def fresh(self) -> BookmarkStrategy:
        """Give one for another sync."""
        return self


class EndOfStream(BookmarkStrategy):
    """Only at the end: for a source that does not give records in the order of their replication key."""

    in_middle = False

    def is_due(self, record: dict[str, Any], count: int) -> bool:
        """Never in the middle."""
        return False


class EveryN(BookmarkStrategy):
    """After each ``n`` records."""

    def __init__(self, n: int) -> None:
        if n < 1:
            raise TapError(f"every_n({n}): want a number of records, at least 1")
        self.n = n

    def is_due(self, record: dict[str, Any], count: int) -> bool:
        """Tell whether ``count`` is a multiple of ``n``."""
        return count % self.n == 0


class EverySeconds(BookmarkStrategy):
    """When ``seconds`` have passed since the state was written."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not seconds > 0:
            raise TapError(f"every_seconds({seconds}): want seconds, more than 0")
        self.seconds = seconds
        self._clock = clock
        self._last = clock()

    def is_due(self, record: dict[str, Any], count: int) -> bool:
        """Tell whether the time is over; begins a new one when it is."""
        now = self._clock()
        if now - self._last < self.seconds:
            return False
        self._last = now
        return True

    def fresh(self) -> BookmarkStrategy:
        """Give one whose time begins now."""
        return EverySeconds(self.seconds, self._clock)


class _Own(BookmarkStrategy):
    def __init__(self, function: Callable[[dict[str, Any], int], bool]) -> None:
        self.is_due = function  # type: ignore[assignment,method-assign]


def make_strategy(said: Any) -> BookmarkStrategy:
    """Make a strategy of what a stream declares: one of the classes here, ``"end_of_stream"`` or a function.

    Raises:
        TapError: it is none of these.
    """
    if isinstance(said, BookmarkStrategy):
        return said
    if said is None or said == "end_of_stream":
        return EndOfStream()
    if callable(said):
        with suppress(ValueError):  # it does not tell, as some that are written in C
            try:
                inspect.signature(said).bind({}, 1)
            except TypeError as error:
                raise TapError(f"bookmark_strategy: want a function of record and count: {error}") from None
        return _Own(said)
    raise TapError(
        f"bookmark_strategy={said!r}: want end_of_stream, tap.every_n(…), tap.every_seconds(…) or a function"
    )


def counting(
    strategy: BookmarkStrategy, look: Callable[[dict[str, Any]], None] | None = None
) -> Callable[[dict[str, Any]], bool | None]:
    """Give what is called with each record of one sync: ``look`` sees it, and it tells whether a state is due."""
    if not strategy.in_middle:
        return look or (lambda record: None)
    is_due, count = strategy.is_due, 0

    def see(record: dict[str, Any]) -> bool:
        nonlocal count
        if look is not None:
            look(record)
        count += 1
        return is_due(record, count)

    return see
