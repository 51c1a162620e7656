"""When a stream's bookmark is written before the end of the stream."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias, cast

from balog.tap.errors import TapError, check_number

END_OF_STREAM = ("end_of_stream", "end_of_sync")
"""The names of the strategy that writes the bookmark only at the end of the stream."""

BookmarkStrategy: TypeAlias = Callable[[dict[str, Any], int], bool]
"""Returns whether to write the state after a record, the n-th of the sync: called with the record and n."""


class EveryN:
    """Writes the bookmark after each ``n`` records."""

    def __init__(self, n: int) -> None:
        check_number("every_n: n", n, least=1)
        self.n = n

    def __call__(self, record: dict[str, Any], count: int) -> bool:
        """Return whether ``count`` is a multiple of ``n``."""
        return count % self.n == 0


class EverySeconds:
    """Writes the bookmark when ``seconds`` have passed since the last time, or since the sync began."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        check_number("every_seconds: seconds", seconds)
        self.seconds = seconds
        self.clock = clock
        self._last = clock()

    def __call__(self, record: dict[str, Any], count: int) -> bool:
        """Return whether the time has passed; if so, start again."""
        now = self.clock()
        if now - self._last < self.seconds:
            return False
        self._last = now
        return True


def make_strategy(strategy: Any) -> BookmarkStrategy | None:
    """Return the strategy that a stream declares, for one sync; None writes the bookmark only at the end.

    Args:
        strategy: a function of a record and its number, such as ``EveryN`` and ``EverySeconds`` make; None or a name of
            ``END_OF_STREAM`` suits sources that do not sort by the replication key.

    Raises:
        TapError: it is none of these.
    """
    if strategy is None or strategy in END_OF_STREAM:
        return None
    if not callable(strategy):
        raise TapError(
            f"bookmark_strategy={strategy!r}: expected end_of_stream, tap.every_n(…), tap.every_seconds(…) or a "
            "function"
        )
    if isinstance(strategy, EverySeconds):
        return EverySeconds(strategy.seconds, strategy.clock)  # its time starts now
    with suppress(ValueError):  # functions written in C may have no signature
        try:
            inspect.signature(strategy).bind({}, 1)
        except TypeError as error:
            raise TapError(f"bookmark_strategy: expected a function of record and count: {error}") from None
    return cast("BookmarkStrategy", strategy)
