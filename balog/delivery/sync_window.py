"""The window within which an event that its sink has not taken is on disk."""

from __future__ import annotations

from collections import deque

SHORTEST_WINDOW = 0.1
"""Seconds; a shorter window counts as 0: an event is on disk before its line passes on."""

_LONGEST_TICK = 0.25
_TICKS = 16
_STARTS_BY = 0.75  # of the window


def tick_of(window: float) -> float:
    """Return the seconds between two checks of a window, which is in seconds, too."""
    return min(window / _TICKS, _LONGEST_TICK) if window >= SHORTEST_WINDOW else _LONGEST_TICK


class SyncWindow:
    """Records when events arrived, once per tick instead of once per event.

    Args:
        seconds: the window. Writing begins after three quarters of it; the last quarter is for the disk.
    """

    def __init__(self, seconds: float) -> None:
        self._delay = seconds * _STARTS_BY - 2 * tick_of(seconds) if seconds >= SHORTEST_WINDOW else 0.0
        self._marks: deque[tuple[float, int]] = deque()
        self._last = 0
        self._due = 0

    def due(self, now: float, arrived: int) -> int:
        """Return the number of the last event that must be on disk.

        Args:
            now: the monotonic clock, in seconds.
            arrived: the number of the last event that has arrived.
        """
        if arrived > self._last:
            self._last = arrived
            self._marks.append((now, arrived))
        while self._marks and now - self._marks[0][0] >= self._delay:
            self._due = self._marks.popleft()[1]
        return self._due
