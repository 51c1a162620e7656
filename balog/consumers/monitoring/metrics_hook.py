"""Metrics of an engine for Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from balog.common.stats import Stats, StatSample, counter, gauge
from balog.consumers.engine import Engine
from balog.consumers.hooks import Hook, Work
from balog.consumers.monitoring.lag import MAX_AGE, Lag
from balog.consumers.outcomes import PartialFailure, Requeue, Retry
from balog.consumers.stats import EngineStats
from balog.event import Event
from balog.sinks.measuring.families import families_of, registry_of
from balog.topics import Received

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
"""The upper bounds of the histogram of calls, in seconds."""


class TopicStats(Stats):
    """Counters of one topic."""

    component: ClassVar[str] = "consumer"
    received: Annotated[int, counter("Messages that were received.")] = 0
    acked: Annotated[int, counter("Messages that were acked: handled, or wanted by no consumer.")] = 0
    dead: Annotated[int, counter("Messages that were dead-lettered.")] = 0


class ConsumerStats(Stats):
    """Counters of one consumer."""

    component: ClassVar[str] = "consumer"
    succeeded: Annotated[int, counter("Events that a consumer handled.")] = 0
    failed: Annotated[int, counter("Attempts of a consumer at an event that failed.")] = 0
    retried: Annotated[int, counter("Retries of events.")] = 0


class GroupStats(Stats):
    """What a group has left in one topic."""

    component: ClassVar[str] = "consumer"
    lag: Annotated[int, gauge("Messages that the group never received.")] = 0
    waiting: Annotated[int, gauge("Messages that wait to be tried again.")] = 0
    dead_letters: Annotated[int, gauge("Dead letters that the group has now.")] = 0


class TopicHealth(Stats):
    """Whether a topic answers."""

    component: ClassVar[str] = "consumer"
    up: Annotated[bool, gauge("Whether the topic answers.")] = False


class MetricsHook(Hook):
    """Counts an engine's messages and calls, and exports them as a collector of prometheus-client.

    In a program that already serves metrics, use ``prometheus_client.REGISTRY.register(hook)``; otherwise
    :class:`balog.consumers.monitoring.health.HealthServer` serves them. Counters continue over the engine's runs.

    Counters by ``topic`` (:class:`TopicStats`), by ``topic`` and ``consumer`` (:class:`ConsumerStats`), of the engine
    (:class:`EngineStats`) and by ``sink`` (``SinkStats``); gauges of the engine (:class:`EngineState`), by ``topic``
    (:class:`TopicHealth`), and by ``topic`` and ``group`` (:class:`GroupStats`), which are requested at a scrape.
    ``balog_consumer_handler_seconds`` is a histogram of calls by ``topic`` and ``consumer``.

    Args:
        max_age: seconds that the lag is cached.
    """

    def __init__(self, max_age: float = MAX_AGE) -> None:
        self._max_age = max_age
        self._lock = threading.Lock()
        self._by_topic: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._by_consumer: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._buckets: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        self._seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._earlier = EngineStats()
        self._engine: Engine | None = None
        self._lag: Lag | None = None

    # -- as a hook ----------------------------------------------------------------------------------------------------

    def started(self, engine: Engine) -> None:
        """Initialize the counters with zero, so that a rate includes the first failure."""
        consumers = engine.consumers
        with self._lock:
            for topic, consumer in consumers:
                self._by_topic[topic].update(())
                self._by_consumer[topic, consumer.name].update(())
        self._engine = engine
        self._lag = Lag(engine.topics, (topic for topic, _ in consumers), engine.group, self._max_age)

    def stopped(self, engine: Engine) -> None:
        """Read no more from the engine: its topics may be closed."""
        self._engine = self._lag = None
        self._earlier.add(engine.counts)

    def after_receive(self, topic: str, received: Sequence[Received]) -> None:
        """Count messages."""
        with self._lock:
            self._by_topic[topic]["received"] += len(received)

    def after_ack(self, topic: str, received: Sequence[Received]) -> None:
        """Count messages."""
        with self._lock:
            self._by_topic[topic]["acked"] += len(received)

    def dead(self, topic: str, received: Received, event: Event | None, reason: str, consumers: Sequence[str]) -> None:
        """Count a message."""
        with self._lock:
            self._by_topic[topic]["dead"] += 1

    def after_process(self, work: Work, error: BaseException | None, seconds: float) -> None:
        """Count a call and its events."""
        succeeded, failed = _split(work, error)
        key = (work.topic, work.consumer.name)
        with self._lock:
            self._by_consumer[key].update(succeeded=succeeded, failed=failed)
            self._buckets[key][bisect_left(BUCKETS, seconds)] += 1
            self._seconds[key] += seconds

    def retried(self, work: Work, event: Event, error: BaseException, delay: float) -> None:
        """Count an event."""
        with self._lock:
            self._by_consumer[work.topic, work.consumer.name]["retried"] += 1

    # -- as a collector -----------------------------------------------------------------------------------------------

    def registry(self) -> Any:
        """Return a registry of prometheus-client with only these metrics.

        Raises:
            MissingExtraError: prometheus-client is not installed.
        """
        return registry_of(self, "a metrics endpoint")

    def describe(self) -> list[Any]:
        """Return nothing: prometheus-client calls this first, and a description must not request the lag."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the metric families of prometheus-client."""
        from prometheus_client.core import HistogramMetricFamily

        with self._lock:
            samples = [
                sample
                for topic, counts in sorted(self._by_topic.items())
                for sample in TopicStats(**counts).samples({"topic": topic})
            ]
            times = []
            for (topic, consumer), counts in sorted(self._by_consumer.items(), key=itemgetter(0)):
                samples += ConsumerStats(**counts).samples({"topic": topic, "consumer": consumer})
                buckets, seconds = self._buckets[topic, consumer], self._seconds[topic, consumer]
                times.append(((topic, consumer), [buckets[number] for number in range(len(BUCKETS) + 1)], seconds))
        yield from families_of([*samples, *self._samples_of_engine()])
        calls = HistogramMetricFamily(
            "balog_consumer_handler_seconds", "How long calls of a handler took.", labels=("topic", "consumer")
        )
        bounds = [*map(repr, BUCKETS), "+Inf"]
        for key, counted, seconds in times:
            calls.add_metric(key, list(zip(bounds, accumulate(counted))), seconds)
        yield calls

    def _samples_of_engine(self) -> Iterator[StatSample]:
        engine, lag = self._engine, self._lag
        totals = replace(self._earlier)
        if engine is not None:
            totals.add(engine.counts)
        yield from totals.samples()
        if engine is None or lag is None:
            return
        state = engine.state
        yield from state.samples()
        for _, consumer in engine.consumers:
            yield from consumer.samples()
        states = lag.states()
        for topic in sorted({*state.errors, *states}):
            yield from TopicHealth(up=not state.errors.get(topic) and topic in states).samples({"topic": topic})
        for topic, group in states.items():
            left = GroupStats() if group is None else GroupStats(group.lag, group.waiting, group.dead)
            yield from left.samples({"topic": topic, "group": lag.group})


def _split(work: Work, error: BaseException | None) -> tuple[int, int]:
    """Return how many events of a call succeeded and failed; a ``Retry`` and a ``Requeue`` are neither."""
    total = len(work.events)
    if error is None:
        return total, 0
    if isinstance(error, (Retry, Requeue)):
        return 0, 0
    if not isinstance(error, PartialFailure):
        return 0, total
    if not error.failed.keys() <= {event.header.id for event in work.events}:
        return 0, total  # it names other events, so it is unclear which ones failed
    return total - len(error.failed), sum(not isinstance(reason, (Retry, Requeue)) for reason in error.failed.values())
