"""Metric: a value over or under a threshold."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from msgspec import Struct, field

from balog.event.payload import ExpectedBand
from balog.watch.config.durations import format_duration, parse_duration
from balog.watch.config.monitors import MonitorConfig, Threshold
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict, limit
from balog.watch.observations import MetricObserved

MAX_POINTS = 1000
"""Values of a window; older ones are dropped first."""

_AGGREGATES = {"counter": "sum", "timer": "max", "gauge": "last"}


class MetricState(Struct, SeriesMemory):
    """The time and value of each point in the window, and how they are aggregated."""

    points: list[tuple[float, float]] = field(default_factory=list)
    aggregate: str = "last"

    def judge(self, evaluator: MetricEvaluator, value: tuple[float, str], now: float) -> Verdict:
        """Add a point, and judge the window."""
        number, kind = value
        self.aggregate = _AGGREGATES.get(kind, "last")
        self.points.append((now, number))
        del self.points[:-MAX_POINTS]
        return self.tick(evaluator, now)

    def deadline(self, evaluator: MetricEvaluator) -> float | None:
        """Return when the oldest point leaves the window; a level stays until the next one."""
        if self.aggregate == "last" or not self.points:
            return None
        return self.points[0][0] + evaluator.within

    def tick(self, evaluator: MetricEvaluator, now: float) -> Verdict:
        """Judge the window at a time."""
        if self.aggregate == "last":
            self.points = self.points[-1:]
        else:
            self.points = [point for point in self.points if point[0] + evaluator.within > now]
        value = self._value()
        if value is None:
            return Verdict("ok", f"No value has come within {format_duration(evaluator.within)}.")
        return judge_threshold(value, evaluator.threshold)

    def _value(self) -> float | None:
        values = [value for _, value in self.points]
        if not values:
            return 0.0 if self.aggregate == "sum" else None
        return sum(values) if self.aggregate == "sum" else max(values) if self.aggregate == "max" else values[-1]


class MetricEvaluator(Evaluator):
    """Judges a metric, aggregated over a window. Each tag is a label of the series."""

    wants = (MetricObserved,)
    state_type = MetricState

    def __init__(self, name: str, monitor: MonitorConfig) -> None:
        self._name = name
        self.threshold = monitor.threshold or Threshold()
        self.within = parse_duration(self.threshold.within)

    def samples(self, observation: MetricObserved) -> Iterator[SeriesSample]:
        """Yield the value of a metric whose name the glob matches."""
        if not fnmatchcase(observation.name, self._name):
            return
        tags = [(key, tag) for key, tag in sorted(observation.tags.items()) if key not in ("stream", "endpoint")]
        labels = (("metric", observation.name), *tags[:20])
        value = (observation.value, observation.type)
        yield SeriesSample(observation.pipeline, observation.stream, value, observation.run, labels)


def judge_threshold(value: float, threshold: Threshold) -> Verdict:
    """Judge a value against a threshold."""
    expected = ExpectedBand(low=threshold.under, high=threshold.over)
    side = limit(value, threshold.under, threshold.over)
    if not side:
        return Verdict("ok", f"{value:,.6g} is within its limits.", value, expected)
    bound = threshold.over if side == "over" else threshold.under
    return Verdict("bad", f"{value:,.6g} is {side} {bound:,.6g}.", value, expected)
