"""Limit the number of tag sets of a metric, because each set is a stored time series."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from typing import Any

REST = "…"
"""The name for the total of everything beyond a limit."""

OTHER = "__other__"
"""The value that replaces a tag's value beyond the limit."""

_MAX_METRICS = 1000  # every tag of further ones is ``__other__``


class _Metric:
    __slots__ = ("_folded_sets", "_values", "folded", "sets")

    def __init__(self) -> None:
        self.sets: set[int] = set()
        self.folded = 0
        self._folded_sets: set[int] = set()
        self._values: dict[str, set[int]] = {}

    def admit(self, tags: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
        if len(self.sets) < limit:
            self.sets.add(_hash(tags))
            for tag, value in tags.items():
                self._values.setdefault(tag, set()).add(hash(str(value)))
            return tags
        self.folded += 1
        widest = max(sorted(tags, key=str), key=lambda tag: len(self._values.get(tag, ())))
        folded = {**tags, widest: OTHER}
        key = _hash(folded)
        if key not in self._folded_sets:
            if len(self._folded_sets) >= limit:
                return dict.fromkeys(tags, OTHER)
            self._folded_sets.add(key)
        return folded


class Cardinality:
    """Limits how many sets of tags a metric may have, because each is a stored time series. Thread-safe.

    Beyond ``limit`` sets, the tag with the most values (usually an id or a path that should not be a tag; of two, the
    first by name) becomes ``__other__``. Beyond ``limit`` such folded sets, every tag becomes ``__other__``. Values are
    compared by their text and kept as hashes, so that memory does not depend on their length.

    Args:
        limit: number of sets of tags for each metric.
    """

    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._after_fork()
        _forked.add(self)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._metrics: dict[str, _Metric] = {}
        self._without_room = 0

    def admit(self, metric: str, tags: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the tags for a metric's value: the same object if they are within the limits."""
        if not tags:
            return tags
        known = self._metrics.get(metric)
        if known is not None and _hash(tags) in known.sets:
            return tags
        with self._lock:
            if known is None:
                known = self._metrics.get(metric)
            if known is None:
                if len(self._metrics) >= _MAX_METRICS:
                    self._without_room += 1
                    return dict.fromkeys(tags, OTHER)
                known = self._metrics[metric] = _Metric()
            return known.admit(tags, self._limit)

    @property
    def folded(self) -> dict[str, int]:
        """The number of values with a replaced tag by metric; ``…`` for metrics beyond the limit."""
        with self._lock:
            counts = {name: metric.folded for name, metric in self._metrics.items() if metric.folded}
            return counts | ({REST: self._without_room} if self._without_room else {})


def _hash(tags: Mapping[str, Any]) -> int:
    return hash(frozenset(zip(tags, map(str, tags.values()))))


_forked: weakref.WeakSet[Cardinality] = weakref.WeakSet()


def _forget_parent() -> None:
    for cardinality in list(_forked):
        cardinality._after_fork()


os.register_at_fork(after_in_child=_forget_parent)
