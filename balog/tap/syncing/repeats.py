"""Detection of a source that returns the same records forever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MIN_REPEATS = 20
_NONE = object()


class RepeatDetector:
    """Warns about a source that returns the same items in a cycle, such as the same page forever.

    A log in which one row is toggled looks the same, so the detector warns and never ends a stream. It warns again
    whenever the number of items has doubled.

    This is Brent's algorithm: an item, the anchor, is compared with those after it, and at each power of two the
    anchor is replaced. It finds a cycle wherever it begins and however long it is, with one comparison per item and
    the memory of two. It reports a cycle after the anchor came twenty more times at the same distance, with the same
    item after it. An object that a source reuses for each record is not a cycle.

    For speed the caller calls ``check`` only if an item equals ``anchor``, if its number is ``power``, or if
    ``is_following`` is true.

    Args:
        warn: called with one line about the cycle.

    Attributes:
        anchor: the item that the others are compared with.
        power: the number of the item that will be the next anchor.
        is_following: the previous item was equal to the anchor.
    """

    __slots__ = ("_at", "_distance", "_next", "_repeats", "_warn", "_warn_from", "anchor", "is_following", "power")

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn = warn
        self._warn_from = 0
        self.anchor: Any = _NONE
        self.power = 1
        self.is_following = False
        self._next: Any = _NONE
        self._at = self._distance = self._repeats = 0

    def check(self, item: Any, number: int) -> None:
        """Check an item, the ``number``-th."""
        if self.is_following:
            self.is_following = False
            if self._next is _NONE:
                self._next = item
            elif item != self._next:
                self._repeats = 0
            elif self._repeats >= _MIN_REPEATS and number >= self._warn_from:
                self._warn_from = 2 * number
                self._warn(
                    f"The source returns the same again and again, maybe forever: item {number} came {self._repeats} "
                    f"times before, {self._distance} items apart"
                )
        if number == self.power:
            self.anchor, self._next, self._at = item, _NONE, number
            self._distance = self._repeats = 0
            self.power, self.is_following = 2 * number, True
        elif item is self.anchor:
            self.anchor = _NONE
        elif item == self.anchor:
            distance = number - self._at
            self._repeats = self._repeats + 1 if distance == self._distance else 0
            self._distance, self._at, self.is_following = distance, number, True
