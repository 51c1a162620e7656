"""Incidents: the firing series of a pipeline are one, from the first that fires until the last has resolved."""

from __future__ import annotations

from balog.event import format_timestamp
from balog.watch.series import Series


class Incidents:
    """The open incidents, by pipeline; a series without a pipeline belongs to its monitor's."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, set[str]]] = {}

    def update(self, series: Series, now: float) -> tuple[str, int]:
        """Add a series that fires, or remove one that has resolved; the last one closes the incident.

        Returns:
            The incident's key, and the number of series that fire in it; "" and 0 for a series without one.
        """
        group = series.pipeline or series.monitor
        if series.is_alerting:
            new = (f"{group}@{format_timestamp(round(now) * 10**9)}", set[str]())
            key, members = self._open.setdefault(group, new)
            members.add(series.key)
            return key, len(members)
        _, members = self._open.get(group, ("", set()))
        members.discard(series.key)
        if not members:
            self._open.pop(group, None)
        return series.incident, len(members) if series.incident else 0

    def restore(self, series: Series) -> None:
        """Add a series of a stored state with the incident that it has."""
        if series.incident:
            group = series.pipeline or series.monitor
            self._open.setdefault(group, (series.incident, set()))[1].add(series.key)
