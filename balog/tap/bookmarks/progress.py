"""The progress of streams in one sync: where their sources start, and which bookmarks the state may hold.

A family is a stream with its substreams, several levels deep, whose source is queried once for each record of the
parent, and with the streams whose records its source also returns. The state of a family is correct at any moment:

- A substream's bookmark moves when all parents were processed. Until then each parent is queried from the bookmark of
  the start of the run, because the largest value so far would skip records of later parents.
- Until then the substream's progress is in its ``rollup``. ``parents`` has for each stream above the bookmark *of that
  stream* up to which all records of the substream were written. ``highest`` is the largest value until then. An
  interrupted run resumes there.
- A parent starts from the smallest of its own bookmark and the bookmarks in its substreams' rollups, each minus its
  lookback. So a substream that failed, was not selected or is new gets what it missed.
- A parent's own bookmark never passes a record whose substreams are not complete.
- Without a replication key the tap sets a position, which waits as a bookmark does. Positions cannot be compared: a
  position is used if all rollups of the substreams have the same one, otherwise the source starts from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from balog.tap.bookmarks.order import Order, order_of
from balog.tap.bookmarks.query_start import POSITION, Start
from balog.tap.bookmarks.state import Rollup, State
from balog.tap.bookmarks.strategies import BookmarkStrategy
from balog.tap.bookmarks.watermark import Watermark
from balog.tap.errors import RecordError, SyncError


@dataclass(eq=False, repr=False)
class Progress:
    """The progress of one stream in one sync.

    Make the progress of parents first, and read ``bookmark`` when all of a family are made. For each record call
    ``is_due = progress.see(record)``, write it, sync its substreams, and call ``progress.done()`` (not needed without
    substreams). If the state is due, call ``progress.checkpoint()`` and write a STATE. At the end call ``finish()`` or
    ``fail()`` and write a STATE. No signal may end the run between ``see`` and writing the record.

    Args:
        state: updated as the sync goes on.
        stream: its ``tap_stream_id``.
        key: the replication key; None for a full table and for a position that the tap sets.
        schema: the schema of its records.
        strategy: when the bookmark is written before the end of the stream; None means never.
        is_sorted: the source returns records in ascending order of the key.
        lookback: see ``Stream.lookback``.
        start_date: where to start without a bookmark.
        value_of: returns a record's replication value if that is not the value of the key.
        is_selected: its records are written. If not, it is read only for its substreams, and its own bookmark does not
            move.
        parent: the progress of the parent, or of the stream whose source returns this one's records.
        log: a logger with the stream bound; None disables warnings.

    Attributes:
        see: called with each record before it is written; returns whether the strategy wants a STATE after it. Raises
            ``RecordError`` (see ``Watermark``).
        start: the bookmark in the state at the start of this sync; None if there was none.

    Raises:
        SyncError: the bookmark in the state does not have the type of the schema, or its values have no lookback.
    """

    state: State
    stream: str
    _: KW_ONLY
    key: str | None = None
    schema: Mapping[str, Any] | None = None
    strategy: BookmarkStrategy | None = None
    is_sorted: bool = True
    lookback: float = 0
    start_date: Any = None
    value_of: Callable[[dict[str, Any]], Any] | None = None
    is_selected: bool = True
    parent: Progress | None = None
    log: Any = None

    def __post_init__(self) -> None:
        self.children: list[Progress] = []
        self._order: Order = order_of(self.schema, self.key or "")
        self._rollup = Rollup(self.state, self.stream, is_selected=self.is_selected)
        self._start = Start(self._rollup, self.key, self._order, self.lookback, self.start_date, self._warn)
        self.start = self._start.bookmark
        self._watermark = Watermark(self.stream, self.key or "", self._order, self.value_of)
        self._tap_bookmark: Any = None  # that the tap set; it and the next one are kept by a new attempt
        self._is_reverted = False
        self._begin()
        self._look: Callable[[dict[str, Any]], None] = lambda record: None
        if self.key:
            self._look = self._watermark.see if self.is_selected else self._see_unselected
        self.see: Callable[[dict[str, Any]], bool | None] = (
            self._look if self.strategy is None else partial(self._see_counted, self.strategy)
        )
        if self.parent is not None:
            self.parent.children.append(self)

    def restart(self) -> None:
        """Start again from the same bookmark, to retry a stream that failed.

        A source that returned records out of order is not trusted again. A substream goes on, since it is synced over
        all its parents, and substreams that failed stay failed.
        """
        if self.parent is None:
            if self._has_watermark and not self._watermark.is_ordered:
                self._revert()
            self._watermark.reset()
            self._begin()

    def _begin(self) -> None:
        """Begin an attempt to read the source from its start."""
        self._records = 0
        self._has_watermark = bool(self.key)
        self._complete_to: Any = None  # the largest replication value of records whose substreams are complete
        self._position: tuple[Any, ...] = ()  # that the tap set; empty if it set none
        self._has_failed = False  # the stream, or one above it

    # -- the start ------------------------------------------------------------------------------------------------

    @property
    def bookmark(self) -> Any:
        """The value from which to query the source, inclusive; see ``Start.earliest``."""
        return self._start.earliest([each._start for each in self._descendants() if each.is_selected])

    # -- records --------------------------------------------------------------------------------------------------

    def _see_counted(self, is_due: BookmarkStrategy, record: dict[str, Any]) -> bool:
        self._look(record)
        self._records += 1
        try:
            return is_due(record, self._records)
        except Exception as error:
            raise SyncError(self.stream, f"bookmark_strategy: {type(error).__name__}: {error}") from error

    def _see_unselected(self, record: dict[str, Any]) -> None:
        """Look at a record that is not written, so it was not validated."""
        if self._has_watermark:
            try:
                self._watermark.see(record)
            except RecordError:  # without a watermark the substreams will get all records again
                self._has_watermark = False

    @property
    def highest(self) -> Any:
        """The largest replication value of the records so far; None before the first.

        Raises:
            RecordError: it is not a time, because records were not validated.
        """
        return self._watermark.highest

    def done(self) -> None:
        """Mark all records so far as complete: they and their substreams' records were written."""
        if self._has_watermark:
            try:
                self._complete_to = self._watermark.highest
            except RecordError:
                if self.is_selected:
                    raise
                self._has_watermark = False

    def set(self, value: Any) -> bool:
        """Set the bookmark that the tap knows, such as the end of a window: all records up to it were written.

        With a replication key it only moves forward. Without one it is a position, any JSON, and None removes it. The
        bookmark of a stream with a parent waits until all parents are complete.

        Returns:
            Whether the state was changed.

        Raises:
            SyncError: the value does not have the type of the replication key.
        """
        if self.key is None:
            self._position = (value,)
            return self.parent is None and self._save_position()
        try:
            self._order.rank(value)
        except ValueError as error:
            raise SyncError(self.stream, f"the bookmark that was set: {error}") from None
        self._tap_bookmark = self._start.latest(self._tap_bookmark, value)
        if self.parent is not None or self._has_failed_descendant():
            return False
        return self._advance(self._tap_bookmark)

    # -- transitions ----------------------------------------------------------------------------------------------

    def checkpoint(self, *, asked: bool = False) -> None:
        """Update the state in the middle of the stream, as far as that is correct. A STATE may always follow.

        Args:
            asked: the code of a top-level stream asked for it, which means that all records up to the largest value so
                far were returned: whatever the strategy is, and even if records have no order.
        """
        root = self._root
        is_asked = asked and root is self
        if not root._has_watermark or not (is_asked or (root.is_sorted and root.strategy is not None)):
            return
        if not (is_asked or (root._watermark.is_ordered and not root._is_reverted)):
            root._revert()
            return
        with suppress(RecordError, SyncError):  # no value is correct, which the end of the stream will report
            value = root._complete_to if root.children else root._watermark.highest
            if value is not None:
                root._commit(value, is_asked=is_asked)

    def finish(self) -> None:
        """Update the state at the end of the stream. For substreams the stream above does that.

        Raises:
            RecordError: the largest value is not a time, because records were not validated.
            SyncError: it cannot be compared with the bookmark, and the schema has no type.
        """
        if self.parent is not None:
            return
        for each in [self, *self._descendants()]:
            if each._has_failed:
                continue
            parents = {above: above._final_bookmark for above in each._ancestors() if above.key is not None}
            if each._has_failed_descendant():
                each._save_rollup(parents)
            else:
                each._advance(each._final_bookmark)
                each._save_position()
                each._save_rollup(parents, is_complete=True)

    def fail(self) -> None:
        """Mark this stream and its substreams as failed: their bookmarks stay where they are."""
        self.checkpoint()
        self._has_failed = True
        for child in self.children:
            child.fail()

    # -- the state ------------------------------------------------------------------------------------------------

    def _commit(self, value: Any, *, is_asked: bool) -> None:
        if is_asked:
            self._tap_bookmark = self._start.latest(self._tap_bookmark, value)
        if not self._has_failed_descendant():
            self._advance(value)
        for each in self._descendants():
            if not each._has_failed:
                each._save_rollup({self: value})

    @property
    def _final_bookmark(self) -> Any:
        """The bookmark that the stream has when all was synced."""
        highest = self._watermark.highest if self._has_watermark else None
        return self._start.latest(self.start, self._rollup.highest, self._tap_bookmark, highest)

    def _advance(self, value: Any) -> bool:
        """Move the bookmark forward, never back. Return whether it moved."""
        if self.key is None or value is None or not self.is_selected:
            return False
        current = self.state.get(self.stream, self.key)
        later = self._start.latest(current, value)
        if later == current:
            return False
        self.state.set(self.stream, self.key, later)
        return True

    def _save_position(self) -> bool:
        if not self._position or self._has_failed_descendant():
            return False
        (value,) = self._position
        if self.is_selected:
            self.state.set(self.stream, POSITION, value)
        for each in self._descendants():
            each._rollup.save({**each._rollup.parents, self.stream: value})
        return True

    def _save_rollup(self, parents: dict[Progress, Any], *, is_complete: bool = False) -> None:
        """Save up to which bookmarks of streams above it this stream is complete, and its own largest value so far."""
        if not parents or not self.is_selected:
            return
        bookmarks = dict(self._rollup.parents)
        for above, value in parents.items():
            later = above._start.latest(bookmarks.get(above.stream), value)
            if later is not None:
                bookmarks[above.stream] = later
        self._rollup.save(bookmarks, None if is_complete or self.key is None else self._final_bookmark)

    def _revert(self) -> None:
        """Revert the bookmarks of this sync: records are out of order, so the bookmarks were too late."""
        if self._is_reverted:
            return
        self._is_reverted = True
        for each in [self, *self._descendants()]:
            each._rollup.revert()
            if each.key is not None and self.state.has(each.stream):
                self.state.set(each.stream, each.key, each._start.latest(each.start, each._tap_bookmark))
        self._warn(
            "Records are out of order: no bookmark is written before the end; declare is_sorted=False", key=self.key
        )

    # -- the family -----------------------------------------------------------------------------------------------

    @property
    def _root(self) -> Progress:
        return self.parent._root if self.parent is not None else self

    def _ancestors(self) -> list[Progress]:
        return [self.parent, *self.parent._ancestors()] if self.parent is not None else []

    def _descendants(self) -> list[Progress]:
        return [each for child in self.children for each in (child, *child._descendants())]

    def _has_failed_descendant(self) -> bool:
        return any(each._has_failed for each in self._descendants())

    def _warn(self, message: str, **fields: Any) -> None:
        if self.log is not None:
            self.log.warning(message, **fields)
