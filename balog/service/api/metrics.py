"""The metrics of a service for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

from balog.common.cardinality import Cardinality
from balog.common.stats import Stats, StatSample, gauge
from balog.sinks.measuring.families import families_of, registry_of

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the request histogram, in seconds."""


_COUNTERS = {
    "duplicates": "Events whose id was stored already.",
    "body_bytes": "Bytes of bodies as sent.",
    "event_bytes": "Bytes of stored events.",
    "failed_unkept": "Rejected events that were not stored: too many, or no store accepted them.",
}


class ServiceGauges(Stats, kw_only=True):
    """The state of a service now."""

    component: ClassVar[str] = "service"
    in_flight: Annotated[int, gauge("Events that are not durable yet.")]
    in_flight_bytes: Annotated[int, gauge("Bytes of events that are not durable yet.")]
    request_bytes: Annotated[int, gauge("Bytes of requests that are being handled.")]
    fallback_backlog: Annotated[int, gauge("Events that wait in the fallback.")]
    ready: Annotated[bool, gauge("Whether events are accepted now.")]
    uptime_seconds: Annotated[float, gauge("Seconds since the start.")]


class ServiceMetrics:
    """Counts requests and events, as a collector of prometheus-client.

    ``balog_service_requests_total`` by ``path`` (as the API names it) and ``status``; ``…_events_total`` by ``stream``,
    ``status`` and ``store`` (at most 1,000 series, further streams are ``__other__``); ``…_request_seconds``, a
    histogram of ``POST /v1/events``; a few totals; and what ``samples`` returns.

    Args:
        samples: called at each scrape, for the gauges and the counters of jobs.

    Raises:
        MissingExtraError: prometheus-client is not installed.
    """

    def __init__(self, samples: Callable[[], Iterable[StatSample]] = tuple) -> None:
        self._samples = samples
        self._series = Cardinality()
        self.registry = registry_of(self, "metrics of a service")
        from prometheus_client import Counter, Histogram

        name, registry = "balog_service", self.registry
        self._requests = Counter(
            f"{name}_requests", "Requests that were answered.", ("path", "status"), registry=registry
        )
        self._events = Counter(f"{name}_events", "Events by outcome.", ("stream", "status", "store"), registry=registry)
        self._seconds = Histogram(
            f"{name}_request_seconds", "Duration of POST /v1/events.", buckets=BUCKETS, registry=registry
        )

        self._totals = {key: Counter(f"{name}_{key}", text, registry=registry) for key, text in _COUNTERS.items()}

    def count_request(self, path: str, status: int) -> None:
        """Count a request. ``path`` is a path of the API, never an arbitrary one of a client."""
        self._requests.labels(path, status).inc()

    def observe_request(self, seconds: float) -> None:
        """Record the duration of a request with events, in seconds."""
        self._seconds.observe(seconds)

    def count_events(self, counts: Mapping[tuple[str, int, str], int]) -> None:
        """Count events by stream, status and store."""
        for (stream, status, store), count in counts.items():
            tags = self._series.admit("events", {"stream": stream, "status": status, "store": store})
            self._events.labels(**tags).inc(count)

    def add(self, name: str, count: int) -> None:
        """Add to ``duplicates``, ``body_bytes``, ``event_bytes`` or ``failed_unkept``."""
        self._totals[name].inc(count)

    def outcomes(self) -> dict[tuple[str, ...], int]:
        """Return the number of events by stream, status and store."""
        return _counts(self._events, "stream", "status", "store")

    def requests(self) -> dict[tuple[str, ...], int]:
        """Return the number of requests by path and status."""
        return _counts(self._requests, "path", "status")

    def describe(self) -> list[Any]:
        """Return no metrics; prometheus-client calls this first."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the metric families of prometheus-client for the samples."""
        yield from families_of([*self._samples()])


def _counts(counter: Any, *labels: str) -> dict[tuple[str, ...], int]:
    return {
        tuple(sample.labels[label] for label in labels): int(sample.value)
        for family in counter.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }
