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
    __slots__ = ("folded", "folded_sets", "sets", "values")

    def __init__(self) -> None:
        self.sets: set[int] = set()
        self.folded_sets: set[int] = set()
        self.values: dict[str, set[int]] = {}
        self.folded = 0


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
        self._without_room = _Metric()

    def admit(self, metric: str, tags: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the tags for a metric's value: the same object if they are within the limits."""
        if not tags:
            return tags
        known = self._metrics.get(metric)
        key = _hash(tags)
        if known is not None and key in known.sets:
            return tags
        with self._lock:
            return self._admit_new(metric, tags, key)

    @property
    def folded(self) -> dict[str, int]:
        """The number of values with a replaced tag by metric; ``…`` for metrics beyond the limit."""
        with self._lock:
            counts = {name: metric.folded for name, metric in self._metrics.items() if metric.folded}
            return counts | ({REST: self._without_room.folded} if self._without_room.folded else {})

    def _admit_new(self, name: str, tags: Mapping[str, Any], key: int) -> Mapping[str, Any]:
        metric = self._metrics.get(name)
        if metric is None:
            if len(self._metrics) >= _MAX_METRICS:
                self._without_room.folded += 1
                return dict.fromkeys(tags, OTHER)
            metric = self._metrics[name] = _Metric()
        if len(metric.sets) < self._limit:
            metric.sets.add(key)
            for tag, value in tags.items():
                metric.values.setdefault(tag, set()).add(hash(str(value)))
            return tags
        metric.folded += 1
        widest = max(sorted(tags, key=str), key=lambda tag: len(metric.values.get(tag, ())))
        folded = {**tags, widest: OTHER}
        key = _hash(folded)
        if key not in metric.folded_sets:
            if len(metric.folded_sets) >= self._limit:
                return dict.fromkeys(tags, OTHER)
            metric.folded_sets.add(key)
        return folded


def _hash(tags: Mapping[str, Any]) -> int:
    return hash(frozenset(zip(tags, map(str, tags.values()))))


_forked: weakref.WeakSet[Cardinality] = weakref.WeakSet()


def _forget_parent() -> None:
    for cardinality in list(_forked):
        cardinality._after_fork()


os.register_at_fork(after_in_child=_forget_parent)
