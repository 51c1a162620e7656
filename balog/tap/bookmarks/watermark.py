"""The largest replication value of the records so far, and whether the records came in its order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from balog.tap.bookmarks import times
from balog.tap.bookmarks.order import Order
from balog.tap.errors import RecordError


class Watermark:
    """The largest replication value of one stream in one sync.

    ``see`` runs for each record. It compares values directly that have the class of the previous one and, for times,
    its length and zone. All others are compared by ``Order.rank``, which is slower.

    Args:
        stream: its ``tap_stream_id``.
        key: its replication key.
        order: how values of the key are compared.
        value_of: returns a record's replication value if that is not the value of the key.

    Attributes:
        see: called with each record; null values are ignored. It raises ``RecordError``, and ignores the record, if the
            key is missing or its value cannot be compared. A text with the length and zone of the previous one is not
            checked for being a time, so records must have been validated.
        is_ordered: no record so far had a smaller value than one before it.
    """

    def __init__(
        self, stream: str, key: str, order: Order, value_of: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self._stream = stream
        self._key = key
        self._order = order
        self._is_time = order.kind == "time"
        self.see: Callable[[dict[str, Any]], None] = (
            self._see_property if value_of is None else lambda record: self._compare(value_of(record))
        )
        self.reset()

    def reset(self) -> None:
        """Forget all records."""
        self.is_ordered = True
        self._highest: Any = None
        # The class of values that are compared directly; times must also have this length and end with this zone.
        self._quick_class: Any = None
        self._length = 0
        self._zone = ""

    @property
    def highest(self) -> Any:
        """The largest value so far; None before the first.

        Raises:
            RecordError: it is not a time, because the stream's records were not validated.
        """
        if self._highest is not None:
            try:
                self._order.rank(self._highest)
            except ValueError as error:
                raise RecordError(self._stream, str(error), f"$.{self._key}") from None
        return self._highest

    def _see_property(self, record: dict[str, Any]) -> None:
        try:
            value = record[self._key]
        except KeyError:
            raise RecordError(self._stream, "the replication key is missing", f"$.{self._key}") from None
        if value.__class__ is self._quick_class and (
            not self._is_time or (len(value) == self._length and value[10] == "T" and value.endswith(self._zone))
        ):
            if value >= self._highest:
                self._highest = value
            else:
                self.is_ordered = False
        else:
            self._compare(value)

    def _compare(self, value: Any) -> None:
        if value is None:
            return
        try:
            self._order.rank(value)
            is_before = self._highest is not None and self._order.is_before(value, self._highest)
        except ValueError as error:
            raise RecordError(self._stream, str(error), f"$.{self._key}") from None
        if is_before:
            self.is_ordered = False
            return
        self._highest = value
        if self._is_time:
            self._zone = times.comparable_end(value) if isinstance(value, str) else ""
            self._quick_class, self._length = (str, len(value)) if self._zone else (None, 0)
        else:  # not float, which may be infinite, nor texts of numbers
            is_quick = type(value) is int or (type(value) is str and self._order.kind == "text")
            self._quick_class = type(value) if is_quick else None
