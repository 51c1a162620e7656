"""Where the source of a stream starts: its bookmark, those that its substreams need, and lookbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from balog.tap.bookmarks.order import Order
from balog.tap.bookmarks.state import RESERVED_KEYS, Rollup
from balog.tap.errors import SyncError

POSITION = "position"
"""The state's key for a bookmark without a replication key."""


@dataclass(eq=False)
class Start:
    """Where one stream starts, as the state had it at the start of the sync.

    Args:
        rollup: how complete the stream is in the streams above it; it has the stream's name and the state.
        key: the replication key; None for a full table and for a position that the tap sets.
        order: the order of replication values.
        lookback: see ``Stream.lookback``.
        date: the config's ``start_date``; see ``Order.first``.
        warn: logs a warning.

    Attributes:
        bookmark: the bookmark in the state; None if there was none.

    Raises:
        SyncError: the bookmark in the state does not have the type of the schema, or its values have no lookback.
    """

    rollup: Rollup
    key: str | None
    order: Order
    lookback: float
    date: Any
    warn: Callable[..., None]
    bookmark: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.key is not None:
            self.bookmark = self._checked(self.key)
            try:
                self.date = self.order.first(self.date)
            except ValueError as error:
                raise SyncError(self.rollup.stream, f"start_date: {error}") from None

    def earliest(self, descendants: Sequence[Start]) -> Any:
        """Return the value from which to query the source, inclusive; None means from the beginning.

        It is the smallest of the bookmark and those that the substreams need, minus the lookback. ``date`` is used
        only if one of them has none. Without a replication key it is the position that the tap set.

        Args:
            descendants: those of the stream's selected descendants.
        """
        if self.key is None:
            positions = [self.rollup.state.get(self.rollup.stream, POSITION)] if self.rollup.is_selected else []
            positions += [each.rollup.parents.get(self.rollup.stream) for each in descendants]
            return positions[0] if positions and positions.count(positions[0]) == len(positions) else None
        bookmarks = [self._less_lookback()] if self.rollup.is_selected else []
        bookmarks += [each._needed_from(self) for each in descendants]
        if any(bookmark is None for bookmark in bookmarks) or not bookmarks:
            return self.date
        return min(bookmarks, key=self.order.rank)

    def latest(self, *values: Any) -> Any:
        """Return the largest replication value; None if all are None.

        Raises:
            SyncError: they cannot be compared.
        """
        try:
            return self.order.latest(*values)
        except ValueError as error:
            raise SyncError(self.rollup.stream, f"the bookmark of {self.key!r}: {error}") from None

    def _less_lookback(self) -> Any:
        return None if self.bookmark is None else self.order.back(self.bookmark, self.lookback)

    def _needed_from(self, above: Start) -> Any:
        """Return the bookmark of a stream above from which this stream needs its records."""
        name = above.rollup.stream
        bookmark = self.rollup.parents.get(name)
        both_times = self.order.kind == above.order.kind == "time"
        if bookmark is None and self.bookmark is not None:  # a state that another toolkit wrote
            return self._less_lookback() if both_times else above._less_lookback()
        if bookmark is None:
            return None
        try:
            above.order.rank(bookmark)
            return above.order.back(bookmark, self.lookback if both_times else 0)
        except ValueError as error:
            raise SyncError(self.rollup.stream, f"its rollup in the state, parents.{name}: {error}") from None

    def _checked(self, key: str) -> Any:
        """Return the bookmark of the replication key in the state."""
        entry = self.rollup.state.entry(self.rollup.stream)
        value = entry.get(key)
        if value is None:
            others = [
                name
                for name, bookmark in entry.items()
                if bookmark is not None and name not in RESERVED_KEYS and not isinstance(bookmark, dict)
            ]
            if others:
                self.warn("The bookmark in the state has another key and is ignored", key=key, found=sorted(others))
            return None
        try:
            is_ahead = self.order.kind == "time" and self.order.is_before(datetime.now(timezone.utc), value)
            self.order.back(value, self.lookback)
        except ValueError as error:
            raise SyncError(self.rollup.stream, f"the bookmark of {key!r} in the state: {error}") from None
        if is_ahead:
            self.warn("The bookmark in the state is in the future: records before it are not requested")
        # A time that another toolkit wrote for a date key would lose the rows of its day.
        return self.order.first(value) if self.order.is_date and isinstance(value, str) else value
