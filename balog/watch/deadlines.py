"""The next deadline of each series, in the order of time."""

from __future__ import annotations

import heapq


class Deadlines:
    """When each of many keys is due; a key has one deadline at most."""

    def __init__(self) -> None:
        self._due: list[tuple[float, str]] = []
        self._times: dict[str, float] = {}

    def put(self, key: str, due: float | None) -> None:
        """Move the deadline of a key; None or infinity for none."""
        if due is None or due == float("inf"):
            self._times.pop(key, None)
        elif self._times.get(key) != due:
            self._times[key] = due
            heapq.heappush(self._due, (due, key))
            if len(self._due) > 4 * len(self._times) + 1000:  # most were moved
                self._due = [(when, key) for key, when in self._times.items()]
                heapq.heapify(self._due)

    def next(self) -> float | None:
        """Return when the next deadline is; None if there is none."""
        while self._due and self._times.get(self._due[0][1]) != self._due[0][0]:
            heapq.heappop(self._due)  # it was moved
        return self._due[0][0] if self._due else None

    def pop(self, until: float, *, with_end: bool) -> tuple[float, str] | None:
        """Remove and return the next deadline before a time, or at it ``with_end``, with its key; None if none is."""
        due = self.next()
        if due is None or due > until or (due == until and not with_end):
            return None
        when, key = heapq.heappop(self._due)
        del self._times[key]
        return when, key
