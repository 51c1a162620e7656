"""The metrics of a service for Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from balog.cardinality import Cardinality
from balog.sinks.families import registry_of

__all__ = ["BUCKETS", "ServiceMetrics"]

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the request histogram, in seconds."""

_Gauges = Callable[[], Mapping[str, tuple[str, float]]]


class ServiceMetrics:
    """Counts requests and events, as a collector of prometheus-client.

    ``balog_service_requests_total`` by ``path`` (as the API names it) and ``status``; ``…_events_total`` by ``stream``,
    ``status`` and ``store`` (at most 1,000 series, further streams are ``__other__``); ``…_duplicates_total``;
    ``…_body_bytes_total`` as sent and ``…_event_bytes_total`` as stored; ``…_request_seconds``, a histogram of
    ``POST /v1/events``; ``…_failed_unkept_total`` for rejected events that were not stored; and gauges.

    Args:
        gauges: called at each scrape; returns help and value by name.
    """

    def __init__(self, gauges: _Gauges = dict) -> None:
        self._gauges = gauges
        self._lock = threading.Lock()
        self._series = Cardinality()
        self._requests: dict[tuple[str, str], int] = {}
        self._events: dict[tuple[str, str, str], int] = {}
        self._plain = {"duplicates": 0, "body_bytes": 0, "event_bytes": 0, "failed_unkept": 0}
        self._times = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def count_request(self, path: str, status: int) -> None:
        """Count a request. ``path`` is a path of the API, never an arbitrary one of a client."""
        with self._lock:
            key = (path, str(status))
            self._requests[key] = self._requests.get(key, 0) + 1

    def observe_request(self, seconds: float) -> None:
        """Record the duration of a request with events, in seconds."""
        with self._lock:
            self._times[bisect_left(BUCKETS, seconds)] += 1
            self._seconds += seconds

    def count_events(self, counts: Mapping[tuple[str, int, str], int]) -> None:
        """Count events by stream, status and store."""
        with self._lock:
            for (stream, status, store), count in counts.items():
                tags = self._series.admit("events", {"stream": stream, "status": status, "store": store})
                key = (str(tags["stream"]), str(tags["status"]), str(tags["store"]))
                self._events[key] = self._events.get(key, 0) + count

    def add(self, name: str, count: int) -> None:
        """Count one of ``duplicates``, ``body_bytes``, ``event_bytes``, ``failed_unkept``."""
        if count:
            with self._lock:
                self._plain[name] += count

    def outcomes(self) -> dict[tuple[str, str, str], int]:
        """Return the number of events by stream, status and store."""
        with self._lock:
            return dict(self._events)

    def registry(self) -> Any:
        """Return a registry of prometheus-client with only these metrics.

        Raises:
            MissingExtraError: prometheus-client is not installed.
        """
        return registry_of(self, "metrics of a service")

    def describe(self) -> list[Any]:
        """Return no metrics; prometheus-client calls this first."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the metric families of prometheus-client."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        with self._lock:
            requests, events, plain = sorted(self._requests.items()), sorted(self._events.items()), dict(self._plain)
            times, seconds = tuple(self._times), self._seconds
        family = CounterMetricFamily(
            "balog_service_requests", "Requests that were answered.", labels=("path", "status")
        )
        for request, count in requests:
            family.add_metric(request, count)
        yield family
        family = CounterMetricFamily("balog_service_events", "Events by outcome.", labels=("stream", "status", "store"))
        for event, count in events:
            family.add_metric(event, count)
        yield family
        for name, about in _PLAIN.items():
            yield CounterMetricFamily(f"balog_service_{name}", about, plain[name])
        calls = HistogramMetricFamily("balog_service_request_seconds", "Duration of POST /v1/events.", labels=())
        calls.add_metric((), list(zip([*map(repr, BUCKETS), "+Inf"], accumulate(times))), seconds)
        yield calls
        for name, (about, value) in self._gauges().items():
            yield GaugeMetricFamily(f"balog_service_{name}", about, value)


_PLAIN = {
    "duplicates": "Events whose id was stored already.",
    "body_bytes": "Bytes of bodies as sent.",
    "event_bytes": "Bytes of stored events.",
    "failed_unkept": "Rejected events that were not stored: too many, or no store accepted them.",
}
