"""Incidents: the firing series of a pipeline are one, from the first that fires until the last has resolved."""

from __future__ import annotations

from balog.event import format_timestamp
from balog.watch.series import Series


class Incidents:
    """The open incidents, by pipeline; a series without a pipeline belongs to its monitor's."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, set[str]]] = {}

    def join(self, series: Series, now: float) -> str:
        """Add a series that fires; return the incident's key."""
        group = _group(series)
        if group not in self._open:
            self._open[group] = (f"{group}@{format_timestamp(round(now) * 10**9)}", set())
        key, members = self._open[group]
        members.add(series.key)
        return key

    def leave(self, series: Series) -> None:
        """Remove a series that has resolved; the last one closes the incident."""
        group = _group(series)
        if group in self._open:
            self._open[group][1].discard(series.key)
            if not self._open[group][1]:
                del self._open[group]

    def count(self, series: Series) -> int:
        """Return the number of series in the open incident of a series; 0 if none is open."""
        return len(self._open.get(_group(series), ("", ()))[1])

    def restore(self, series: Series) -> None:
        """Add a series of a stored state with the incident that it has."""
        if series.incident:
            self._open.setdefault(_group(series), (series.incident, set()))[1].add(series.key)


def _group(series: Series) -> str:
    return series.pipeline or series.monitor
