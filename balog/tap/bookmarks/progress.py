"""How far a stream is in one sync, what its state may say of that, and from where its source is asked.

A family is a stream with its streams of children, several levels deep, whose source is asked once for each record of
the parent, and with those that its source gives beside its own. It has one state that is right at any moment:

- A child's bookmark moves when all parents were asked, and each of them is asked from the bookmark of the start of the
  run: the largest value so far would cut off rows of the parents that come later.
- How far it is meanwhile is in its ``rollup``: ``parents`` says for each stream above up to which bookmark *of that
  stream* all of the child's records were written, ``highest`` the largest value until then. A run that was interrupted
  goes on there.
- A parent is asked from the smallest of its own bookmark and of what its children's ``rollup`` says of it, each less
  its lookback. So a child that failed, that was not selected or that is new gets what it missed.
- A parent's own bookmark never passes a record whose children are not done.
- Where there is no replication key the tap sets a position, which is kept back as a bookmark is. Positions have no
  order: it is used when it is also what the children's ``rollup`` says, else the source begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from balog.tap.bookmarks.order import Order, order_of
from balog.tap.bookmarks.rollup import Rollup
from balog.tap.bookmarks.state import NO_KEYS, State
from balog.tap.bookmarks.strategies import BookmarkStrategy, EndOfStream, counting
from balog.tap.bookmarks.watching import Watch
from balog.tap.errors import RecordError, StreamError

__all__ = ["Progress"]

_POSITION = "position"


class Progress:
    """One stream in one sync. Make those of the parents first; ``bookmark`` may be asked when all of a family are made.

    For each record: ``is_due = progress.see(record)``, write it, have its children synced, ``progress.done()`` (which a
    stream without children does not need), and when due ``progress.checkpoint()`` and a STATE. In the end ``finish()``
    or ``fail()`` and a STATE. No signal may end the run between ``see`` and writing.

    Args:
        state: what is moved on.
        stream: its ``tap_stream_id``.
        key: the replication key; None for a full table and for a bookmark that the tap sets itself.
        schema: of its records.
        strategy: when the bookmark is written in the middle.
        is_sorted: its source gives records in ascending order of the key.
        lookback: see ``Stream.lookback``.
        start_date: where to begin when there is no bookmark.
        value_of: gives a record's replication value where that is not what the record has under its key.
        is_selected: its records are written. Those of a parent that is asked for its children alone are not, and its
            own bookmark does not move.
        parent: of the stream above, or of the one that gives this one's records.
        log: a logger with the stream bound; nothing is said without one.

    Attributes:
        see: called with each record before it is written; tells whether the strategy wants the state written after
            it. Raises ``RecordError`` (see ``Watch``).
        start: the bookmark at the start of this sync, as it was in the state; None when there was none.

    Raises:
        StreamError: the bookmark in the state is not of the kind that the schema says, or there is a lookback for a key
            that has none.
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
        self._value_of = value_of
        self._own: Any = None
        self._position: tuple[Any, ...] = ()
        self._is_told = False
        self._given = state.entry(stream)
        self._rollup = Rollup(state, stream, is_selected=is_selected)
        self.start = self._bookmark_given() if key is not None else None
        self._has_failed = False
        self._done: Any = None
        self._watch = Watch(stream, key, self._order, value_of) if key else None
        self.see = self._looking()
        if parent is not None:
            parent.children.append(self)

    def restart(self) -> None:
        """Begin again from the same bookmark: for another try of a stream that failed.

        The order of records is watched anew, though what had none is not trusted to have one now. That of a child goes
        on, as it is over all its parents, and what failed below stays so.
        """
        if self.parent is None:
            if self._watch is not None and not self._watch.is_ordered:
                self._go_back()
            self._has_failed = False
            self._done = None
            self._position = ()
            self._watch = Watch(self.stream, self.key, self._order, self._value_of) if self.key else None
            self.see = self._looking()

    # -- from where -----------------------------------------------------------------------------------------------

    @property
    def bookmark(self) -> Any:
        """From where to ask the source, including that value; None when from the beginning.

        The bookmark of the state, or what the children lack before it, less the lookback. ``start_date`` is for when
        there is none: a bookmark wins over it. Without a replication key it is the position that the tap set.
        """
        if self.key is None:
            places = [self._state.get(self.stream, _POSITION)] if self._is_selected else []
            places += [member._rollup.marks.get(self.stream) for member in self._below() if member._is_selected]
            return places[0] if places and places.count(places[0]) == len(places) else None
        marks = [self._start_less_lookback()] if self._is_selected else []
        marks += [member._mark_of(self) for member in self._below() if member._is_selected]
        if any(mark is None for mark in marks) or not marks:
            return self._start_date
        return min(marks, key=self._order.rank)

    def _start_less_lookback(self) -> Any:
        return None if self.start is None else self._order.back(self.start, self._lookback)

    def _mark_of(self, above: Progress) -> Any:
        """Give up to where this stream is complete in the bookmarks of one above it."""
        mark = self._rollup.marks.get(above.stream)
        both_times = self._order.kind == above._order.kind == "time"
        if mark is None and self.start is not None:  # a state that another toolkit wrote
            return self._start_less_lookback() if both_times else above._start_less_lookback()
        if mark is None:
            return None
        try:
            above._order.rank(mark)
            return above._order.back(mark, self._lookback if both_times else 0)
        except ValueError as error:
            raise StreamError(self.stream, f"its rollup in the state, parents.{above.stream}: {error}") from None

    def _bookmark_given(self) -> Any:
        value = self._given.get(self.key or "")
        if value is None:
            others = [
                name
                for name, found in self._given.items()
                if found is not None and name not in NO_KEYS and not isinstance(found, dict)
            ]
            if others:
                self._warn("The state's bookmark is of another key: it is not used", key=self.key, found=sorted(others))
            return None
        try:
            is_ahead = self._order.kind == "time" and self._order.is_before(datetime.now(timezone.utc), value)
            self._order.back(value, self._lookback)
        except ValueError as error:
            raise StreamError(self.stream, f"the bookmark of {self.key!r} in the state: {error}") from None
        if is_ahead:
            self._warn("The state's bookmark is in the future: what the source has until then is not asked for")
        return value

    # -- how far --------------------------------------------------------------------------------------------------

    def _looking(self) -> Callable[[dict[str, Any]], bool | None]:
        if self._watch is None:
            return counting(self._strategy)
        return counting(self._strategy, self._watch.see if self._is_selected else self._look_at_what_is_not_written)

    def _look_at_what_is_not_written(self, record: dict[str, Any]) -> None:
        if self._watch is not None:
            try:
                self._watch.see(record)
            except RecordError:  # nobody makes such records fit their schema: the children will be asked for all
                self._watch = None

    def done(self) -> None:
        """Say that all records so far were written, and all children of them."""
        if self._watch is not None:
            try:
                self._done = self._watch.highest
            except RecordError:
                if self._is_selected:
                    raise
                self._watch = None

    def set(self, value: Any) -> bool:
        """Set the bookmark as the tap knows it: the end of a window, a position in a log; up to it all was written.

        With a replication key it only moves forward, without one it is any JSON; None takes that away. That of a stream
        with a parent waits until all parents are done. Returns whether the state has it now.

        Raises:
            StreamError: the value is not of the replication key's kind.
        """
        if self.key is None:
            self._position = (value,)
            return self.parent is None and self._move_position()
        try:
            self._order.rank(value)
        except ValueError as error:
            raise StreamError(self.stream, f"the bookmark that was set: {error}") from None
        self._own = self._latest(self._own, value)
        if self.parent is not None or any(member._has_failed for member in self._below()):
            return False
        return self._move(self._own)

    def checkpoint(self, *, asked: bool = False) -> None:
        """Put into the state what is right in the middle of the stream, if anything: a STATE may always follow.

        Args:
            asked: by the code of a stream without parent, which so says that up to the largest value so far it gave
                all: whatever the strategy is, and also where records have no order.
        """
        top = self._top
        watch, is_said = top._watch, asked and top is self
        if watch is None or not (is_said or (top._is_sorted and top._strategy.in_middle)):
            return
        if not (is_said or (watch.is_ordered and not top._is_told)):
            top._go_back()
            return
        with suppress(RecordError, StreamError):  # there is no right one, which the end of the stream will say
            value = top._done if top.children else watch.highest
            if value is not None:
                top._commit(value, is_said=is_said)

    def finish(self) -> None:
        """Put into the state that the stream was synced to its end. That of children is told by the stream above.

        Raises:
            RecordError: the largest value is no time, of records that were not made to fit their schema.
            StreamError: it is of another kind than the bookmark, where the schema does not say the kind.
        """
        if self.parent is not None:
            return
        for member in [self, *self._below()]:
            if member._has_failed:
                continue
            parents = {above: above._end for above in member._above() if above.key is not None}
            if any(below._has_failed for below in member._below()):
                member._roll_up(parents)
            else:
                member._move(member._end)
                member._move_position()
                member._roll_up(parents, is_whole=True)

    def fail(self) -> None:
        """Say that this stream failed: what is of it, and of those below, stays where it was before."""
        self.checkpoint()
        for member in [self, *self._below()]:
            member._has_failed = True

    # -- what is written into the state ----------------------------------------------------------------------------

    def _commit(self, value: Any, *, is_said: bool) -> None:
        if is_said:
            self._own = self._latest(self._own, value)
        if not any(member._has_failed for member in self._below()):
            self._move(value)
        for member in self._below():
            if not member._has_failed:
                member._roll_up({self: value})

    @property
    def _end(self) -> Any:
        """The bookmark that the stream has when all was synced."""
        seen = self._watch.highest if self._watch is not None else None
        return self._latest(self.start, self._rollup.highest, self._own, seen)

    def _move(self, value: Any) -> bool:
        """Move the bookmark forward; nothing moves it back."""
        if self.key is None or value is None or not self._is_selected:
            return False
        now = self._state.get(self.stream, self.key)
        later = self._latest(now, value)
        if later == now:
            return False
        self._state.set(self.stream, self.key, later)
        return True

    def _move_position(self) -> bool:
        if not self._position or any(member._has_failed for member in self._below()):
            return False
        (value,) = self._position
        if self._is_selected:
            self._state.set(self.stream, _POSITION, value)
        for member in self._below():
            member._rollup.keep({**member._rollup.marks, self.stream: value})
        return True

    def _roll_up(self, parents: dict[Progress, Any], *, is_whole: bool = False) -> None:
        """Keep how far this stream is in those above, and until it is whole its largest value so far."""
        if not parents or not self._is_selected:
            return
        marks = dict(self._rollup.marks)
        for above, value in parents.items():
            later = above._latest(marks.get(above.stream), value)
            if later is not None:
                marks[above.stream] = later
        self._rollup.keep(marks, None if is_whole or self.key is None else self._end)

    def _go_back(self) -> None:
        """Take back what was written in the middle: the source gives records out of order, so it said too much."""
        if self._is_told:
            return
        self._is_told = True
        for member in [self, *self._below()]:
            member._rollup.take_back()
            if member.key is not None and self._state.has(member.stream):
                self._state.set(member.stream, member.key, member._latest(member.start, member._own))
        self._warn("Records are out of order: no bookmark is written before the end; say is_sorted=False", key=self.key)

    # -- the family ------------------------------------------------------------------------------------------------

    @property
    def _top(self) -> Progress:
        return self.parent._top if self.parent is not None else self

    def _above(self) -> list[Progress]:
        return [self.parent, *self.parent._above()] if self.parent is not None else []

    def _below(self) -> list[Progress]:
        return [member for child in self.children for member in (child, *child._below())]

    def _latest(self, *values: Any) -> Any:
        try:
            return self._order.latest(*values)
        except ValueError as error:
            raise StreamError(self.stream, f"the bookmark of {self.key!r}: {error}") from None

    def _warn(self, message: str, **fields: Any) -> None:
        if self._log is not None:
            self._log.warning(message, **fields)
