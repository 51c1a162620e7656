"""A source that returns the same records for ever, or only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Repeats"]

_OFTEN = 20
_NOTHING = object()


class Repeats:
    """Warns about a source that seems to go round in a circle, as one does that returns the same page for ever.

    A log in which one row is toggled looks the same, so the guard reports and never ends a stream. It reports a circle
    again whenever the number of items has doubled.

    Brent's algorithm: an item is compared with those after it, and at each power of two another one is taken. So a
    circle is found wherever it begins and however long it is, for one comparison an item and the memory of two. A
    circle came twenty times more at one distance, with the same item after it. An object that a source refills for each
    record is not a circle.

    ``look`` is for an item that equals ``anchor``, whose number is ``power``, or that comes after such a one
    (``is_following``): the caller checks that, since it runs for each item.

    Args:
        warn: called with one line about the circle.
    """

    __slots__ = ("_at", "_distance", "_next", "_times", "_warn", "_warn_from", "anchor", "is_following", "power")

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn = warn
        self._warn_from = 0
        self.anchor: Any = _NOTHING
        self.power = 1
        self.is_following = False
        self._next: Any = _NOTHING
        self._at = self._distance = self._times = 0

    def look(self, item: Any, number: int) -> None:
        """Look at an item, the ``number``-th."""
        if self.is_following:
            self.is_following = False
            if self._next is _NOTHING:
                self._next = item
            elif item != self._next:
                self._times = 0
            elif self._times >= _OFTEN and number >= self._warn_from:
                self._warn_from = 2 * number
                self._warn(
                    f"The source returns the same again and again, maybe for ever: item {number} came {self._times} "
                    f"times before, {self._distance} items apart"
                )
        if number == self.power:
            self.anchor, self._next, self._at = item, _NOTHING, number
            self._distance = self._times = 0
            self.power, self.is_following = 2 * number, True
        elif item is self.anchor:
            self.anchor = _NOTHING
        elif item == self.anchor:
            distance = number - self._at
            self._times = self._times + 1 if distance == self._distance else 0
            self._distance, self._at, self.is_following = distance, number, True
