"""Metrics of an engine for Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from balog.consumers.hooks import Hook, ObservedEngine, Work
from balog.consumers.lag import MAX_AGE, Lag
from balog.consumers.outcomes import PartialFailure, Retry
from balog.errors import ConfigError
from balog.event import Event
from balog.sinks.families import registry_of
from balog.topics import Received

__all__ = ["BUCKETS", "MetricsHook"]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
"""The default upper bounds of the histogram of calls, in seconds."""


class _ConsumerStats:
    """The counters of one consumer."""

    __slots__ = ("calls", "failed", "retried", "seconds", "succeeded")

    def __init__(self, buckets: int) -> None:
        self.succeeded = self.failed = self.retried = 0
        self.calls = [0] * buckets  # of each bucket by itself, the last one without a bound
        self.seconds = 0.0


class MetricsHook(Hook):
    """Counts an engine's messages and calls, and exports them as a collector of prometheus-client.

    In a program that already serves metrics, use ``prometheus_client.REGISTRY.register(hook)``; otherwise
    :class:`balog.consumers.health.Watch` serves them. Counters continue over several runs of the engine.

    ``balog_consumer_received_total``, ``…_acked_total`` and ``…_dead_total`` count messages by ``topic``;
    ``…_succeeded_total``, ``…_failed_total`` (attempts) and ``…_retried_total`` events by ``topic`` and ``consumer``;
    ``…_handler_seconds`` is a histogram of calls by ``topic`` and ``consumer``. The gauges ``…_in_flight``,
    ``…_calls``, ``…_hung`` are the engine's now, ``…_up`` by ``topic`` whether the topic answers, and ``…_lag``,
    ``…_waiting`` and ``…_dead_letters`` by ``topic`` and ``group`` what the group has left, requested at a scrape.

    Args:
        buckets: upper bounds of the histogram, in seconds, ascending.
        max_age: seconds that the lag is cached.

    Raises:
        ConfigError: buckets that do not ascend.
    """

    def __init__(self, buckets: Sequence[float] = BUCKETS, max_age: float = MAX_AGE) -> None:
        if not buckets or any(one >= two for one, two in pairwise(buckets)):
            raise ConfigError("want numbers that ascend", path="buckets")
        self._bounds = tuple(map(float, buckets))
        self._max_age = max_age
        self._lock = threading.Lock()
        self._received: dict[str, int] = {}
        self._acked: dict[str, int] = {}
        self._dead: dict[str, int] = {}
        self._by_consumer: dict[tuple[str, str], _ConsumerStats] = {}
        self._engine: ObservedEngine | None = None
        self._lag: Lag | None = None

    # -- as a hook ----------------------------------------------------------------------------------------------------

    def started(self, engine: ObservedEngine) -> None:
        """Initialize the counters with zero, so that a rate includes the first failure."""
        consumers = engine.consumers
        with self._lock:
            for topic, consumer in consumers:
                self._by_consumer.setdefault((topic, consumer.name), _ConsumerStats(len(self._bounds) + 1))
                for counts in (self._received, self._acked, self._dead):
                    counts.setdefault(topic, 0)
        self._engine = engine
        self._lag = Lag(engine.topics, (topic for topic, _ in consumers), engine.group, self._max_age)

    def stopped(self, engine: ObservedEngine) -> None:
        """Read no more from the engine: its topics may be closed."""
        self._engine = self._lag = None

    def after_receive(self, topic: str, received: Sequence[Received]) -> None:
        """Count messages."""
        self._count(self._received, topic, len(received))

    def after_ack(self, topic: str, received: Sequence[Received]) -> None:
        """Count messages."""
        self._count(self._acked, topic, len(received))

    def dead(self, topic: str, received: Received, event: Event | None, reason: str, consumers: Sequence[str]) -> None:
        """Count a message."""
        self._count(self._dead, topic, 1)

    def after_process(self, work: Work, error: BaseException | None, seconds: float) -> None:
        """Count a call and its events."""
        succeeded, failed = _split(work, error)
        with self._lock:
            stats = self._of(work)
            stats.succeeded += succeeded
            stats.failed += failed
            stats.calls[bisect_left(self._bounds, seconds)] += 1
            stats.seconds += seconds

    def retried(self, work: Work, event: Event, error: BaseException, delay: float) -> None:
        """Count an event."""
        with self._lock:
            self._of(work).retried += 1

    def _count(self, counts: dict[str, int], topic: str, number: int) -> None:
        if number:
            with self._lock:
                counts[topic] = counts.get(topic, 0) + number

    def _of(self, work: Work) -> _ConsumerStats:
        key = (work.topic, work.consumer.name)
        found = self._by_consumer.get(key)
        if found is None:
            found = self._by_consumer[key] = _ConsumerStats(len(self._bounds) + 1)
        return found

    # -- as a collector -----------------------------------------------------------------------------------------------

    def registry(self) -> Any:
        """Return a registry of prometheus-client with only these metrics.

        Raises:
            MissingExtraError: prometheus-client is not installed.
        """
        return registry_of(self, "metrics of consumers")

    def describe(self) -> list[Any]:
        """Return nothing: prometheus-client calls this first, and a description must not request the lag."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the metric families of prometheus-client."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        with self._lock:
            by_topic = (dict(self._received), dict(self._acked), dict(self._dead))
            stats = sorted(self._by_consumer.items())
            by_consumer = (
                [(key, one.succeeded) for key, one in stats],
                [(key, one.failed) for key, one in stats],
                [(key, one.retried) for key, one in stats],
            )
            times = [(key, tuple(one.calls), one.seconds) for key, one in stats]
        for (name, about), counts in zip(_BY_TOPIC, by_topic):
            family = CounterMetricFamily(f"balog_consumer_{name}", about, labels=("topic",))
            for topic, count in sorted(counts.items()):
                family.add_metric((topic,), count)
            yield family
        for (name, about), found in zip(_BY_CONSUMER, by_consumer):
            family = CounterMetricFamily(f"balog_consumer_{name}", about, labels=("topic", "consumer"))
            for key, count in found:
                family.add_metric(key, count)
            yield family
        calls = HistogramMetricFamily(
            "balog_consumer_handler_seconds", "How long calls of a handler took.", labels=("topic", "consumer")
        )
        bounds = [*map(repr, self._bounds), "+Inf"]
        for key, counted, seconds in times:
            calls.add_metric(key, list(zip(bounds, accumulate(counted))), seconds)
        yield calls
        yield from self._collect_engine()

    def _collect_engine(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        engine, lag = self._engine, self._lag
        if engine is None or lag is None:
            return
        state = engine.state
        yield GaugeMetricFamily("balog_consumer_in_flight", "Messages in flight.", state.in_flight)
        yield GaugeMetricFamily("balog_consumer_calls", "Running calls of handlers.", state.calls)
        yield GaugeMetricFamily("balog_consumer_hung", "Handlers that took longer than their timeout.", state.hung)
        states = lag.states()
        up = GaugeMetricFamily("balog_consumer_up", "Whether the topic answers.", labels=("topic",))
        for topic in sorted({*state.errors, *states}):
            up.add_metric((topic,), 0.0 if state.errors.get(topic) or topic not in states else 1.0)
        yield up
        for name, field, about in _OF_GROUP:
            family = GaugeMetricFamily(f"balog_consumer_{name}", about, labels=("topic", "group"))
            for topic, found in states.items():
                family.add_metric((topic, lag.group), getattr(found, field) if found is not None else 0)
            yield family


_BY_TOPIC = (
    ("received", "Messages that were received."),
    ("acked", "Messages that were acked: handled, or wanted by no consumer."),
    ("dead", "Messages that were dead-lettered."),
)
_BY_CONSUMER = (
    ("succeeded", "Events that a consumer handled."),
    ("failed", "Attempts of a consumer at an event that failed."),
    ("retried", "Retries of events."),
)
_OF_GROUP = (
    ("lag", "lag", "Messages that the group never received."),
    ("waiting", "waiting", "Messages that wait to be tried again."),
    ("dead_letters", "dead", "Dead letters that the group has now."),
)


def _split(work: Work, error: BaseException | None) -> tuple[int, int]:
    """Return how many events of a call succeeded and failed; a ``Retry`` is neither."""
    total = len(work.events)
    if error is None:
        return total, 0
    if isinstance(error, Retry):
        return 0, 0
    if not isinstance(error, PartialFailure):
        return 0, total
    if not error.failed.keys() <= {event.header.id for event in work.events}:
        return 0, total  # it names other events, so it is unclear which ones failed
    return total - len(error.failed), sum(not isinstance(reason, Retry) for reason in error.failed.values())
