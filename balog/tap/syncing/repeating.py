"""A source that gives the same again and again, without end."""

from __future__ import annotations

from typing import Any

from balog.tap.errors import SourceError

__all__ = ["Repeats"]

_OFTEN = 20
_NOTHING = object()


class Repeats:
    """Finds out that a source goes round in a circle, as one does that is given the same page for ever.

    By Brent's algorithm: an item is held against those that come after it, and at each power of two another one is
    taken, so that the circle is found wherever it begins and however long it is, in at most some eighty rounds, for one
    comparison an item and the memory of two. What is a circle came twenty times more at one distance, with the same
    item after it; one object that a source fills anew each time is none.

    ``look`` is for an item that equals ``anchor``, whose number is ``power``, or that comes after such a one
    (``is_following``): who asks looks for that himself, since it runs for each item.
    """

    __slots__ = ("_at", "_distance", "_next", "_times", "anchor", "is_following", "power")

    def __init__(self) -> None:
        self.anchor: Any = _NOTHING
        self.power = 1
        self.is_following = False
        self._next: Any = _NOTHING
        self._at = self._distance = self._times = 0

    def look(self, item: Any, number: int) -> None:
        """Look at an item, the ``number``-th.

        Raises:
            SourceError: it is part of a circle.
        """
        if self.is_following:
            self.is_following = False
            if self._next is _NOTHING:
                self._next = item
            elif item != self._next:
                self._times = 0
            elif self._times >= _OFTEN:
                raise SourceError(
                    f"the source gives the same again and again: item {number} came {self._times} times before, "
                    f"{self._distance} items apart"
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
