"""Metric: a value over or under a threshold."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from msgspec import Struct, field

from balog.event.payload import ExpectedBand
from balog.watch.config.durations import format_duration, parse_duration
from balog.watch.config.kind_config import Threshold
from balog.watch.kinds.base import SeriesSample, Verdict, limit
from balog.watch.observations import MetricObserved

MAX_POINTS = 1000
"""Values of a window; older ones are dropped first."""

_AGGREGATES = {"counter": "sum", "timer": "max", "gauge": "last"}


class MetricState(Struct):
    """The time and value of each point in the window, and how they are aggregated."""

    points: list[tuple[float, float]] = field(default_factory=list)
    aggregate: str = "last"


class MetricEvaluator:
    """Judges a metric, aggregated over a window. Each tag is a label of the series."""

    wants = (MetricObserved,)
    state_type = MetricState
    starts_early = False

    def __init__(self, name: str, threshold: Threshold) -> None:
        self._name = name
        self._threshold = threshold
        self._within = parse_duration(threshold.within)

    def samples(self, observation: MetricObserved) -> Iterator[SeriesSample]:
        """Yield the value of a metric whose name the glob matches."""
        if not fnmatchcase(observation.name, self._name):
            return
        tags = [(key, tag) for key, tag in sorted(observation.tags.items()) if key not in ("stream", "endpoint")]
        labels = (("metric", observation.name), *tags[:20])
        value = (observation.value, observation.type)
        yield SeriesSample(observation.pipeline, observation.stream, value, observation.run, labels)

    def judge(self, state: MetricState, value: tuple[float, str], now: float) -> Verdict:
        """Add a point, and judge the window."""
        number, kind = value
        state.aggregate = _AGGREGATES.get(kind, "last")
        state.points.append((now, number))
        del state.points[:-MAX_POINTS]
        return self.tick(state, now)

    def deadline(self, state: MetricState) -> float | None:
        """Return when the oldest point leaves the window; a level stays until the next one."""
        if state.aggregate == "last" or not state.points:
            return None
        return state.points[0][0] + self._within

    def tick(self, state: MetricState, now: float) -> Verdict:
        """Judge the window at a time."""
        if state.aggregate == "last":
            state.points = state.points[-1:]
        else:
            state.points = [point for point in state.points if point[0] + self._within > now]
        value = _aggregate(state)
        if value is None:
            return Verdict("ok", f"No value has come within {format_duration(self._within)}.")
        return judge_threshold(value, self._threshold)


def judge_threshold(value: float, threshold: Threshold) -> Verdict:
    """Judge a value against a threshold."""
    expected = ExpectedBand(low=threshold.under, high=threshold.over)
    side = limit(value, threshold.under, threshold.over)
    if not side:
        return Verdict("ok", f"{value:,.6g} is within its limits.", value, expected)
    bound = threshold.over if side == "over" else threshold.under
    return Verdict("bad", f"{value:,.6g} is {side} {bound:,.6g}.", value, expected)


def _aggregate(state: MetricState) -> float | None:
    values = [value for _, value in state.points]
    if not values:
        return 0.0 if state.aggregate == "sum" else None
    return sum(values) if state.aggregate == "sum" else max(values) if state.aggregate == "max" else values[-1]
