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
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from balog.tap.bookmarks.order import Order, order_of
from balog.tap.bookmarks.state import RESERVED_KEYS, Rollup, State
from balog.tap.bookmarks.strategies import BookmarkStrategy, EndOfStream
from balog.tap.bookmarks.watermark import Watermark
from balog.tap.errors import RecordError, SyncError

_POSITION = "position"


@dataclass
class _Attempt:
    """One attempt to read the source from its start; a retry begins a new one.

    Attributes:
        records: the number of records so far.
        has_watermark: the largest replication value so far is known.
        complete_to: the largest replication value of records whose substreams are complete.
        position: the position that the tap set, in a tuple; empty if it set none.
        has_failed: the stream, or one above it, failed.
    """

    records: int = 0
    has_watermark: bool = False
    complete_to: Any = None
    position: tuple[Any, ...] = ()
    has_failed: bool = False


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
        strategy: when the bookmark is written before the end of the stream.
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

    def __init__(
        self,
        state: State,
        stream: str,
        *,
        key: str | None = None,
        schema: Mapping[str, Any] | None = None,
        strategy: BookmarkStrategy | None = None,
        is_sorted: bool = True,
        lookback: float = 0,
        start_date: Any = None,
        value_of: Callable[[dict[str, Any]], Any] | None = None,
        is_selected: bool = True,
        parent: Progress | None = None,
        log: Any = None,
    ) -> None:
        self.stream = stream
        self.key = key
        self.parent = parent
        self.children: list[Progress] = []
        self._state = state
        self._strategy = strategy or EndOfStream()
        self._is_sorted = is_sorted
        self._lookback = lookback
        self._start_date = start_date
        self._is_selected = is_selected
        self._log = log
        self._order: Order = order_of(schema, key or "")
        self._rollup = Rollup(state, stream, is_selected=is_selected)
        self.start = self._start_bookmark(key) if key is not None else None
        self._watermark = Watermark(stream, key or "", self._order, value_of)
        self.see = self._chosen_see()
        self._attempt = _Attempt(has_watermark=bool(key))
        self._tap_bookmark: Any = None  # the bookmark that the tap set; kept by restarts, as is the next one
        self._is_reverted = False
        if parent is not None:
            parent.children.append(self)

    def restart(self) -> None:
        """Start again from the same bookmark, to retry a stream that failed.

        A source that returned records out of order is not trusted again. A substream goes on, since it is synced over
        all its parents, and substreams that failed stay failed.
        """
        if self.parent is None:
            if self._attempt.has_watermark and not self._watermark.is_ordered:
                self._revert()
            self._watermark.reset()
            self._attempt = _Attempt(has_watermark=bool(self.key))

    # -- the start ------------------------------------------------------------------------------------------------

    @property
    def bookmark(self) -> Any:
        """The value from which to query the source, inclusive; None means from the beginning.

        It is the smallest of the bookmark and those that the substreams need, minus the lookback. ``start_date`` is
        used only if one of them has none. Without a replication key it is the position that the tap set.
        """
        descendants = [each for each in self._descendants() if each._is_selected]
        if self.key is None:
            positions = [self._state.get(self.stream, _POSITION)] if self._is_selected else []
            positions += [each._rollup.parents.get(self.stream) for each in descendants]
            return positions[0] if positions and positions.count(positions[0]) == len(positions) else None
        bookmarks = [self._start_less_lookback()] if self._is_selected else []
        bookmarks += [each._needed_from(self) for each in descendants]
        if any(bookmark is None for bookmark in bookmarks) or not bookmarks:
            return self._start_date
        return min(bookmarks, key=self._order.rank)

    def _start_less_lookback(self) -> Any:
        return None if self.start is None else self._order.back(self.start, self._lookback)

    def _needed_from(self, ancestor: Progress) -> Any:
        """Return the bookmark of a stream above from which this stream needs its records."""
        bookmark = self._rollup.parents.get(ancestor.stream)
        both_times = self._order.kind == ancestor._order.kind == "time"
        if bookmark is None and self.start is not None:  # a state that another toolkit wrote
            return self._start_less_lookback() if both_times else ancestor._start_less_lookback()
        if bookmark is None:
            return None
        try:
            ancestor._order.rank(bookmark)
            return ancestor._order.back(bookmark, self._lookback if both_times else 0)
        except ValueError as error:
            raise SyncError(self.stream, f"its rollup in the state, parents.{ancestor.stream}: {error}") from None

    def _start_bookmark(self, key: str) -> Any:
        entry = self._state.entry(self.stream)
        value = entry.get(key)
        if value is None:
            others = [
                name
                for name, found in entry.items()
                if found is not None and name not in RESERVED_KEYS and not isinstance(found, dict)
            ]
            if others:
                self._warn("The bookmark in the state has another key and is ignored", key=key, found=sorted(others))
            return None
        try:
            is_ahead = self._order.kind == "time" and self._order.is_before(datetime.now(timezone.utc), value)
            self._order.back(value, self._lookback)
        except ValueError as error:
            raise SyncError(self.stream, f"the bookmark of {key!r} in the state: {error}") from None
        if is_ahead:
            self._warn("The bookmark in the state is in the future: records before it are not requested")
        return value

    # -- records --------------------------------------------------------------------------------------------------

    def _chosen_see(self) -> Callable[[dict[str, Any]], bool | None]:
        """Return what ``see`` needs for this stream, since it runs for each record."""
        look: Callable[[dict[str, Any]], None] | None = None
        if self.key:
            look = self._watermark.see if self._is_selected else self._see_unselected
        if not self._strategy.in_middle:
            return look or (lambda record: None)
        is_due = self._strategy.is_due

        def see_counted(record: dict[str, Any]) -> bool:
            if look is not None:
                look(record)
            self._attempt.records += 1
            return is_due(record, self._attempt.records)

        return see_counted

    def _see_unselected(self, record: dict[str, Any]) -> None:
        """Look at a record that is not written, so it was not validated."""
        if self._attempt.has_watermark:
            try:
                self._watermark.see(record)
            except RecordError:  # without a watermark the substreams will get all records again
                self._attempt.has_watermark = False

    @property
    def highest(self) -> Any:
        """The largest replication value of the records so far; None before the first.

        Raises:
            RecordError: it is not a time, because records were not validated.
        """
        return self._watermark.highest

    def done(self) -> None:
        """Mark all records so far as complete: they and their substreams' records were written."""
        if self._attempt.has_watermark:
            try:
                self._attempt.complete_to = self._watermark.highest
            except RecordError:
                if self._is_selected:
                    raise
                self._attempt.has_watermark = False

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
            self._attempt.position = (value,)
            return self.parent is None and self._save_position()
        try:
            self._order.rank(value)
        except ValueError as error:
            raise SyncError(self.stream, f"the bookmark that was set: {error}") from None
        self._tap_bookmark = self._latest(self._tap_bookmark, value)
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
        if not root._attempt.has_watermark or not (is_asked or (root._is_sorted and root._strategy.in_middle)):
            return
        if not (is_asked or (root._watermark.is_ordered and not root._is_reverted)):
            root._revert()
            return
        with suppress(RecordError, SyncError):  # no value is correct, which the end of the stream will report
            value = root._attempt.complete_to if root.children else root._watermark.highest
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
            if each._attempt.has_failed:
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
        for each in [self, *self._descendants()]:
            each._attempt.has_failed = True

    # -- the state ------------------------------------------------------------------------------------------------

    def _commit(self, value: Any, *, is_asked: bool) -> None:
        if is_asked:
            self._tap_bookmark = self._latest(self._tap_bookmark, value)
        if not self._has_failed_descendant():
            self._advance(value)
        for each in self._descendants():
            if not each._attempt.has_failed:
                each._save_rollup({self: value})

    @property
    def _final_bookmark(self) -> Any:
        """The bookmark that the stream has when all was synced."""
        highest = self._watermark.highest if self._attempt.has_watermark else None
        return self._latest(self.start, self._rollup.highest, self._tap_bookmark, highest)

    def _advance(self, value: Any) -> bool:
        """Move the bookmark forward, never back. Return whether it moved."""
        if self.key is None or value is None or not self._is_selected:
            return False
        current = self._state.get(self.stream, self.key)
        later = self._latest(current, value)
        if later == current:
            return False
        self._state.set(self.stream, self.key, later)
        return True

    def _save_position(self) -> bool:
        if not self._attempt.position or self._has_failed_descendant():
            return False
        (value,) = self._attempt.position
        if self._is_selected:
            self._state.set(self.stream, _POSITION, value)
        for each in self._descendants():
            each._rollup.save({**each._rollup.parents, self.stream: value})
        return True

    def _save_rollup(self, parents: dict[Progress, Any], *, is_complete: bool = False) -> None:
        """Save up to which bookmarks of streams above it this stream is complete, and its own largest value so far."""
        if not parents or not self._is_selected:
            return
        bookmarks = dict(self._rollup.parents)
        for above, value in parents.items():
            later = above._latest(bookmarks.get(above.stream), value)
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
            if each.key is not None and self._state.has(each.stream):
                self._state.set(each.stream, each.key, each._latest(each.start, each._tap_bookmark))
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
        return any(each._attempt.has_failed for each in self._descendants())

    def _latest(self, *values: Any) -> Any:
        try:
            return self._order.latest(*values)
        except ValueError as error:
            raise SyncError(self.stream, f"the bookmark of {self.key!r}: {error}") from None

    def _warn(self, message: str, **fields: Any) -> None:
        if self._log is not None:
            self._log.warning(message, **fields)
