"""How far a stream has come in one sync, as one struct whose transitions have names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Reached:
    """How far one stream has come.

    Attributes:
        records: the number of records in this attempt to read the source.
        has_watermark: the largest replication value of this attempt is known.
        complete_to: the largest replication value of records whose substreams are complete.
        position: the position that the tap set, in a tuple; empty if it set none.
        has_failed: the stream, or one above it, failed.
        tap_bookmark: the bookmark that the tap set. It and the next one are kept by a new attempt.
        is_reverted: the bookmarks of this sync were reverted, because records are out of order.
    """

    records: int = 0
    has_watermark: bool = False
    complete_to: Any = None
    position: tuple[Any, ...] = ()
    has_failed: bool = False
    tap_bookmark: Any = None
    is_reverted: bool = False

    def begin(self, *, has_key: bool) -> None:
        """Begin an attempt to read the source from its start."""
        self.records, self.has_watermark = 0, has_key
        self.complete_to, self.position, self.has_failed = None, (), False

    def lose_watermark(self) -> None:
        """Record that a replication value was no value: the largest one is unknown."""
        self.has_watermark = False

    def complete(self, value: Any) -> None:
        """Record that all records up to a replication value are complete, with their substreams."""
        self.complete_to = value

    def place(self, position: Any) -> None:
        """Record the position that the tap set; None removes the one in the state."""
        self.position = (position,)

    def fail(self) -> None:
        """Record that the stream, or one above it, failed."""
        self.has_failed = True

    def revert(self) -> bool:
        """Record that the bookmarks were reverted. Return whether they were not before."""
        was_reverted, self.is_reverted = self.is_reverted, True
        return not was_reverted
