"""When a stream's bookmark is written before the end of the stream."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from balog.tap.errors import TapError, check_number

END_OF_STREAM = ("end_of_stream", "end_of_sync")
"""The names of ``EndOfStream``."""


class BookmarkStrategy:
    """Decides after each record whether the state is written. One object serves one sync of one stream.

    Attributes:
        in_middle: whether it can write a bookmark before the end of the stream.
    """

    in_middle = True

    def is_due(self, record: dict[str, Any], count: int) -> bool:
        """Return whether to write the state after this record, the ``count``-th of the sync."""
        raise NotImplementedError

    def fresh(self) -> BookmarkStrategy:
        """Return a strategy for another sync."""
        return self


class EndOfStream(BookmarkStrategy):
    """Writes the bookmark only at the end, which suits sources that do not sort by the replication key."""

    in_middle = False

    def is_due(self, record: dict[str, Any], count: int) -> bool:
        """Return False."""
        return False


class EveryN(BookmarkStrategy):
    """Writes the bookmark after each ``n`` records."""

    def __init__(self, n: int) -> None:
        check_number("every_n: n", n, least=1)
        self.n = n

    def is_due(self, record: dict[str, Any], count: int) -> bool:
        """Return whether ``count`` is a multiple of ``n``."""
        return count % self.n == 0


class EverySeconds(BookmarkStrategy):
    """Writes the bookmark when ``seconds`` have passed since the last time."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        check_number("every_seconds: seconds", seconds)
        self.seconds = seconds
        self._clock = clock
        self._last = clock()

    def is_due(self, record: dict[str, Any], count: int) -> bool:
        """Return whether the time has passed; if so, start again."""
        now = self._clock()
        if now - self._last < self.seconds:
            return False
        self._last = now
        return True

    def fresh(self) -> BookmarkStrategy:
        """Return a strategy whose time starts now."""
        return EverySeconds(self.seconds, self._clock)


class _Function(BookmarkStrategy):
    def __init__(self, function: Callable[[dict[str, Any], int], bool]) -> None:
        self.is_due = function  # type: ignore[assignment,method-assign]


def make_strategy(strategy: Any) -> BookmarkStrategy:
    """Return the strategy that a stream declares: one of the classes here, a name of ``END_OF_STREAM`` or a function.

    Raises:
        TapError: it is none of these.
    """
    if isinstance(strategy, BookmarkStrategy):
        return strategy
    if strategy is None or strategy in END_OF_STREAM:
        return EndOfStream()
    if callable(strategy):
        with suppress(ValueError):  # functions written in C may have no signature
            try:
                inspect.signature(strategy).bind({}, 1)
            except TypeError as error:
                raise TapError(f"bookmark_strategy: expected a function of record and count: {error}") from None
        return _Function(strategy)
    raise TapError(
        f"bookmark_strategy={strategy!r}: expected end_of_stream, tap.every_n(…), tap.every_seconds(…) or a function"
    )
