"""Prometheus metric families: measurements added up into series, and their text format.

Names and labels follow Prometheus' "Metric and label naming" and "Writing client libraries": a counter ends in
``_total``, and a timer becomes a histogram that ends in ``_seconds``.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from balog.common.errors import MissingExtraError
from balog.common.stats import StatSample
from balog.common.text import printable
from balog.sinks.measuring.measures import Kind, Measure

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Default upper bounds of histograms, in seconds: from one request to a whole run."""

_MAX_FAMILIES = 1000
_MAX_SERIES = 100_000
_MAX_KNOWN = 10_000
_SUFFIXES: dict[Kind, tuple[str, ...]] = {
    "counter": ("", "_total", "_created"),
    "timer": ("", "_bucket", "_count", "_sum", "_created"),
    "gauge": ("",),
}
_TYPES = {"counter": "counter", "timer": "histogram", "gauge": "gauge"}

_Labels = tuple[tuple[str, str], ...]


class _Histogram(NamedTuple):
    counts: tuple[int, ...]  # of each bucket, not cumulative; the last one has no upper bound
    sum: float


class _Family:
    def __init__(self, kind: Kind, about: str) -> None:
        self.kind = kind
        self.about = about
        self.series: dict[_Labels, float | _Histogram] = {}


class _Entry(NamedTuple):
    name: str
    labels: _Labels
    before: float | _Histogram | None


class FamilyChange(NamedTuple):
    """The changes by a batch: the reasons for refused events by index, and a journal to undo the rest."""

    refused: dict[int, str]
    journal: list[_Entry]


class Families:
    """Adds up measurements. Thread-safe.

    Args:
        buckets: upper bounds of the histograms, in seconds, ascending.
    """

    def __init__(self, buckets: Sequence[float] = BUCKETS) -> None:
        self._buckets = tuple(map(float, buckets))
        self._families: dict[str, _Family] = {}
        self._owners: dict[str, str] = {}  # sample name -> family name
        self._series = 0
        self._known_series: dict[int, tuple[dict[str, str], Kind, str, str, _Labels]] = {}
        self._lock = threading.Lock()

    def add(self, measurements: Sequence[tuple[int, Measure]]) -> FamilyChange:
        """Add measurements. Those of one event are added completely or not at all.

        Args:
            measurements: measurements with their events' indexes, grouped by event.
        """
        change = FamilyChange({}, [])
        with self._lock:
            for index, measures in groupby(measurements, key=itemgetter(0)):
                mark = len(change.journal)
                try:
                    for _, measure in measures:
                        change.journal.append(self._add(measure))
                except ValueError as error:
                    change.refused[index] = str(error)
                    self._undo(change.journal, mark)
        return change

    def undo(self, change: FamilyChange) -> None:
        """Undo the changes by the last batch."""
        with self._lock:
            self._undo(change.journal, 0)

    def render(self) -> bytes:
        """Return all families in Prometheus' text format 0.0.4.

        Raises:
            MissingExtraError: prometheus-client is not installed.
        """
        from prometheus_client import generate_latest

        return generate_latest(self.registry())

    def registry(self) -> Any:
        """Return a registry of prometheus-client that collects the current families.

        Raises:
            MissingExtraError: prometheus-client is not installed.
        """
        return registry_of(self, "the sink prometheus")

    def describe(self) -> list[Any]:
        """Return nothing, since families are not known in advance; prometheus-client calls this."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield each family as a ``Metric`` of prometheus-client."""
        from prometheus_client.core import Metric

        with self._lock:
            families = [
                (name, family.kind, family.about, list(family.series.items()))
                for name, family in self._families.items()
            ]
        for name, kind, about, series in families:
            metric = Metric(name, about, _TYPES[kind])
            for labels, value in series:
                if isinstance(value, _Histogram):
                    self._add_histogram(metric, dict(labels), value)
                else:
                    metric.add_sample(name + "_total" if kind == "counter" else name, dict(labels), value)
            yield metric

    def _add_histogram(self, metric: Any, labels: dict[str, str], value: _Histogram) -> None:
        name = metric.name
        totals = list(accumulate(value.counts))
        for bound, total in zip((*map(repr, self._buckets), "+Inf"), totals):
            metric.add_sample(f"{name}_bucket", {**labels, "le": bound}, total)
        metric.add_sample(f"{name}_count", labels, totals[-1])
        metric.add_sample(f"{name}_sum", labels, value.sum)

    def _add(self, measure: Measure) -> _Entry:
        """Add one measurement; change nothing if that raises a ``ValueError``."""
        name, labels = self._series_of(measure)
        family = self._families.get(name)
        if measure.kind == "counter" and measure.value < 0:
            raise ValueError(f"the counter {name}_total cannot go down by {-measure.value:g}")
        if family is None or family.kind != measure.kind:
            family = self._new_family(name, measure)
        before = family.series.get(labels)
        if before is None and self._series >= _MAX_SERIES:
            if not family.series:
                self._forget(name)
            raise ValueError(f"there are {_MAX_SERIES} series already; lower max_series")
        self._series += before is None
        family.series[labels] = self._after(measure, before)
        return _Entry(name, labels, before)

    def _series_of(self, measure: Measure) -> tuple[str, _Labels]:
        """Return a measurement's family and series, cached by the identity of its tags."""
        kind, raw, _, tags, _ = measure
        known = self._known_series.get(id(tags))
        if known is None or known[0] is not tags or known[1] != kind or known[2] != raw:
            if len(self._known_series) >= _MAX_KNOWN:
                self._known_series.clear()
            known = self._known_series[id(tags)] = (tags, kind, raw, family_name(kind, raw), _labels(measure))
        return known[3], known[4]

    def _after(self, measure: Measure, before: Any) -> float | _Histogram:
        if measure.kind == "gauge":
            return measure.value
        if measure.kind == "counter":
            return measure.value + (before or 0.0)
        counts = list(before.counts if before else (0,) * (len(self._buckets) + 1))
        counts[bisect_left(self._buckets, measure.value)] += 1
        return _Histogram(tuple(counts), measure.value + (before.sum if before else 0.0))

    def _new_family(self, name: str, measure: Measure) -> _Family:
        names = [name + suffix for suffix in _SUFFIXES[measure.kind]]
        taken = next((self._owners[full_name] for full_name in names if full_name in self._owners), None)
        if taken is not None:
            raise ValueError(
                f"the {measure.kind} {measure.name[:200]} would be {name} in Prometheus, which the "
                f"{self._families[taken].kind} {taken} has a name of"
            )
        if len(self._families) >= _MAX_FAMILIES:
            raise ValueError(f"there are {_MAX_FAMILIES} metrics already")
        family = self._families[name] = _Family(measure.kind, f"The {measure.kind} {measure.name[:200]} of events.")
        self._owners.update(dict.fromkeys(names, name))
        return family

    def _undo(self, journal: list[_Entry], mark: int) -> None:
        while len(journal) > mark:
            name, labels, before = journal.pop()
            series = self._families[name].series
            if before is not None:
                series[labels] = before
                continue
            del series[labels]
            self._series -= 1
            if not series:
                self._forget(name)

    def _forget(self, name: str) -> None:
        del self._families[name]
        self._owners = {full_name: owner for full_name, owner in self._owners.items() if owner != name}


def _labels(measure: Measure) -> _Labels:
    labels = {}
    for key, value in measure.tags.items():
        label = clean_label(key)
        labels["exported_le" if label == "le" and measure.kind == "timer" else label] = clean_value(value)
    return tuple(sorted(labels.items()))


@lru_cache(maxsize=4096)
def family_name(kind: Kind, name: str) -> str:
    """Return the family name of a metric: without ``_total`` for a counter, with ``_seconds`` for a timer."""
    clean = clean_metric_name(name)
    if kind == "counter":
        return clean.removesuffix("_total") or clean
    return clean if kind == "gauge" or clean.endswith("_seconds") else f"{clean.rstrip('_')}_seconds"


def clean_metric_name(name: str) -> str:
    """Return a name that matches ``[a-zA-Z_][a-zA-Z0-9_]*``; ``:`` is reserved for recording rules."""
    clean = re.sub(r"[^a-zA-Z0-9_]+", "_", name)
    return clean if clean[:1].isalpha() or clean.startswith("_") else f"_{clean}"


@lru_cache(maxsize=4096)
def clean_label(key: str) -> str:
    """Return a label name that matches ``[a-zA-Z_][a-zA-Z0-9_]*``; a leading ``__`` is reserved by Prometheus."""
    clean = re.sub(r"_*[^a-zA-Z0-9_]+_*", "_", key)
    clean = "_" + clean.lstrip("_") if clean.startswith("__") else clean
    return clean if clean[:1].isalpha() or clean.startswith("_") else f"_{clean}"


@lru_cache(maxsize=4096)
def clean_value(text: str) -> str:
    """Return a label value without control characters, which would break the lines of the text format."""
    return printable(text, " ")


def registry_of(collector: Any, what: str) -> Any:
    """Return a registry of prometheus-client with one collector.

    Args:
        what: the feature that needs the package, for the error.

    Raises:
        MissingExtraError: prometheus-client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry
    except ImportError:
        raise MissingExtraError(what, "sinks") from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return registry


def families_of(samples: Iterable[StatSample]) -> Iterator[Any]:
    """Yield the metric families of prometheus-client for the counters and gauges of components.

    Samples of one name must have the same labels, each with values of its own.
    """
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    by_name: dict[str, list[StatSample]] = defaultdict(list)
    for sample in samples:
        by_name[sample.family].append(sample)
    for name, family_samples in by_name.items():
        first = family_samples[0]
        make = CounterMetricFamily if first.kind == "counter" else GaugeMetricFamily
        family = make(name, first.help, labels=tuple(first.labels))
        for sample in family_samples:
            family.add_metric(tuple(sample.labels.values()), sample.value)
        yield family
