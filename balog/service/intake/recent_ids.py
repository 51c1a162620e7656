"""Recently stored ids, to detect duplicates in topics that keep no ids."""

from __future__ import annotations

from collections.abc import Iterable

from balog.service.intake.batch import Store


class RecentIds:
    """Remembers at least the last ``limit / 2`` and at most ``limit`` ids, each with its topic and store."""

    def __init__(self, limit: int = 400_000) -> None:
        self._half = limit // 2
        self._young: dict[str, tuple[str, Store]] = {}
        self._old: dict[str, tuple[str, Store]] = {}

    def store_of(self, topic: str, id: str) -> Store | None:
        """Return the store of an id in a topic; None if it is not known."""
        entry = self._young.get(id) or self._old.get(id)
        return entry[1] if entry is not None and entry[0] == topic else None

    def add(self, topic: str, store: Store, ids: Iterable[str]) -> None:
        """Remember ids. An id has one entry: an earlier one is replaced."""
        entry = topic, store
        for id in ids:
            if len(self._young) >= self._half:
                self._old, self._young = self._young, {}
            self._young[id] = entry
