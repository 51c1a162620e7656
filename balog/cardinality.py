"""A cap on the tags of metrics: each set of them is a time series that somebody stores."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from typing import Any

from balog.errors import ConfigError

__all__ = ["OTHER", "REST", "Cardinality"]

REST = "…"
"""The name under which is counted together what there was no room for."""

OTHER = "__other__"
"""The value of a tag whose own value would have been one too many."""


class _Metric:
    __slots__ = ("folded", "folded_sets", "sets", "values")

    def __init__(self) -> None:
        self.sets: set[int] = set()
        self.folded_sets: set[int] = set()
        self.values: dict[str, set[int]] = {}
        self.folded = 0


class Cardinality:
    """Caps how many different sets of tags a metric may have; each is a time series that somebody stores.

    When a metric has ``limit`` sets, a new one gets the value ``__other__`` for the tag that has had the most values
    (of two the first by name): that is the id or path which should not have been a tag, and the others go on telling.
    Only if ``limit`` sets have come of that too, every tag of a further one is ``__other__``. Values are told apart by
    their text, as a label's are, and kept as hashes, so that memory does not depend on their length. Threads share it.

    Args:
        limit: sets of tags for each metric.
        max_metrics: metrics that are told apart; of further ones every tag is ``__other__``.

    Raises:
        ConfigError: a limit below 1.
    """

    def __init__(self, limit: int = 1000, *, max_metrics: int = 1000) -> None:
        if limit < 1:
            raise ConfigError(f"{limit!r} is no number of tag sets above 0", path="$.limit")
        self._limit = limit
        self._max_metrics = max_metrics
        self._after_fork()
        _forked.add(self)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._metrics: dict[str, _Metric] = {}
        self._without_room = _Metric()

    def admit(self, metric: str, tags: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the tags that a metric's value may carry: the same object when they are fine."""
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
        """How many values had a tag replaced, by metric; ``…`` stands for metrics for which there was no room."""
        with self._lock:
            counts = {name: metric.folded for name, metric in self._metrics.items() if metric.folded}
            return counts | ({REST: self._without_room.folded} if self._without_room.folded else {})

    def _admit_new(self, name: str, tags: Mapping[str, Any], key: int) -> Mapping[str, Any]:
        metric = self._metrics.get(name)
        if metric is None:
            if len(self._metrics) >= self._max_metrics:
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
    for one in list(_forked):
        one._after_fork()


os.register_at_fork(after_in_child=_forget_parent)
