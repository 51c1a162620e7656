"""The ids of late, for topics that keep none: the same event again is known for a while."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["RecentIds"]


class RecentIds:
    """Remembers at least the last ``limit / 2`` ids, and at most ``limit``, each with its topic."""

    def __init__(self, limit: int = 400_000) -> None:
        self._half = limit // 2
        self._young: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def holds(self, topic: str, id: str) -> bool:
        """Tell whether an id is known to be in a topic, or on its way there from the fallback."""
        return self._young.get(id) == topic or self._old.get(id) == topic

    def add(self, topic: str, ids: Iterable[str]) -> None:
        """Remember ids; one that was elsewhere before is only known to be here."""
        for id in ids:
            if len(self._young) >= self._half:
                self._old, self._young = self._young, {}
            self._young[id] = topic
