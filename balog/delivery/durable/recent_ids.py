"""The ids of late, for topics that keep none: the same event again is known for a while."""

from __future__ import annotations

from collections.abc import Iterable

from balog.delivery.durable.batch import Store

__all__ = ["RecentIds"]


class RecentIds:
    """Remembers at least the last ``limit / 2`` ids, and at most ``limit``, each with its topic and who stored it."""

    def __init__(self, limit: int = 400_000) -> None:
        self._half = limit // 2
        self._young: dict[str, tuple[str, Store]] = {}
        self._old: dict[str, tuple[str, Store]] = {}

    def store_of(self, topic: str, id: str) -> Store | None:
        """Return the store that took an id for a topic; None where that is not known."""
        place = self._young.get(id) or self._old.get(id)
        return place[1] if place is not None and place[0] == topic else None

    def add(self, topic: str, store: Store, ids: Iterable[str]) -> None:
        """Remember ids; one that was elsewhere before is only known to be here."""
        place = topic, store
        for id in ids:
            if len(self._young) >= self._half:
                self._old, self._young = self._young, {}
            self._young[id] = place
