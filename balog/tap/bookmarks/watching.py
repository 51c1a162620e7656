"""The largest replication value of a sync, kept record by record, and whether the records came in its order.

This runs once for each record: values of the usual kinds, in the form that the one before had, are compared as they
are; all others go the slow way round over ``Order.rank``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.tap.bookmarks import times
from balog.tap.bookmarks.order import Order
from balog.tap.errors import RecordError

__all__ = ["Watch"]


class Watch:
    """Looks at the records of one sync of one stream.

    Args:
        stream: its ``tap_stream_id``.
        key: its replication key.
        order: how values of the key are compared.
        value_of: gives a record's replication value where that is not what the record has under its key.

    Attributes:
        see: called with each record. A null value passes. It raises ``RecordError`` where the key is missing, or its
            value has no place in the order; nothing is kept of such a record. That a text is a time is not looked at
            when it has the length and the zone of the one before: this is for records that fit their schema.
        is_ordered: no record so far had a smaller value than one before it.
    """

    def __init__(
        self, stream: str, key: str, order: Order, value_of: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self._stream = stream
        self._key = key
        self._order = order
        self.is_ordered = True
        self.see, self._highest = self._closures(value_of)

    @property
    def highest(self) -> Any:
        """The largest value so far; None before the first.

        Raises:
            RecordError: it is no time, of a stream whose records were not made to fit their schema.
        """
        found = self._highest()
        if found is not None:
            try:
                self._order.rank(found)
            except ValueError as error:
                raise RecordError(self._stream, str(error), f"$.{self._key}") from None
        return found

    def _closures(
        self, value_of: Callable[[dict[str, Any]], Any] | None
    ) -> tuple[Callable[[dict[str, Any]], None], Callable[[], Any]]:
        key = self._key
        highest: Any = None
        # What a value must be for the quick way: of this class; and for times of this length, with this end.
        quick: Any = None
        size = 0
        end = ""

        def slowly(value: Any) -> None:
            nonlocal highest, quick, size, end
            if value is None:
                return
            try:
                self._order.rank(value)
                is_before = highest is not None and self._order.is_before(value, highest)
            except ValueError as error:
                raise RecordError(self._stream, str(error), f"$.{key}") from None
            if is_before:
                self.is_ordered = False
                return
            highest = value
            if self._order.kind == "time":
                end = times.comparable_end(value) if isinstance(value, str) else ""
                quick, size = (str, len(value)) if end else (None, 0)
            else:  # not float, which may be infinite, nor texts of numbers
                is_quick = type(value) is int or (type(value) is str and self._order.kind != "number")
                quick = type(value) if is_quick else None

        def see_time(record: dict[str, Any]) -> None:
            nonlocal highest
            try:
                value: Any = record[key]
            except KeyError:
                raise RecordError(self._stream, "the replication key is missing", f"$.{key}") from None
            if value.__class__ is quick and len(value) == size and value[10] == "T" and value.endswith(end):
                if value >= highest:
                    highest = value
                else:
                    self.is_ordered = False
            else:
                slowly(value)

        def see_plain(record: dict[str, Any]) -> None:
            nonlocal highest
            try:
                value = record[key]
            except KeyError:
                raise RecordError(self._stream, "the replication key is missing", f"$.{key}") from None
            if value.__class__ is quick:
                if value >= highest:
                    highest = value
                else:
                    self.is_ordered = False
            else:
                slowly(value)

        def see_own(record: dict[str, Any]) -> None:
            slowly(value_of(record))  # type: ignore[misc]

        see = see_own if value_of is not None else see_time if self._order.kind == "time" else see_plain
        return see, lambda: highest
