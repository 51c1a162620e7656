"""Measure the time spent in a block, even during the block."""

from __future__ import annotations

import time


class Stopwatch:
    """A context that adds up its time; another thread may read ``seconds`` meanwhile."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds spent in the context so far, including the current block."""
        since = self._since
        return self._spent if since is None else self._spent + time.monotonic() - since

    def __enter__(self) -> Stopwatch:
        self._since = time.monotonic()
        return self

    def __exit__(self, *raised: object) -> None:
        # The order matters to a reader: it may miss this part for a moment, but never sees it twice.
        since, self._since = self._since, None
        if since is not None:
            self._spent += time.monotonic() - since
