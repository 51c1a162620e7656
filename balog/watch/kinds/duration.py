"""Duration: the time of a run, against fixed limits and the 95th percentile of its history."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from msgspec import Struct, field

from balog.payload import ExpectedBand
from balog.watch.arrays import Numbers
from balog.watch.durations import format_duration, parse_duration, parse_factor
from balog.watch.kind_config import DurationLimits
from balog.watch.kinds.base import SeriesSample, Verdict, WithoutClock, limit
from balog.watch.observations import RunObserved

LEAST_LIMIT = 1.0
"""Seconds of the least limit from a history: its 95th percentile may be 0."""

MAX_RUNS = 2000
"""Runs that a history has at most."""


class DurationState(Struct):
    """The times and durations of the last successful runs."""

    times: Numbers = field(default_factory=lambda: array("d"))
    values: Numbers = field(default_factory=lambda: array("d"))


class DurationEvaluator(WithoutClock):
    """Judges the time that successful runs took."""

    wants = (RunObserved,)
    state_type = DurationState

    def __init__(self, options: DurationLimits) -> None:
        self._factor = None if options.p95_over is None else parse_factor(options.p95_over)
        self._over = None if options.over is None else parse_duration(options.over)
        self._under = None if options.under is None else parse_duration(options.under)
        self._against = parse_duration(options.against)
        self._min_runs = options.min_runs

    def samples(self, observation: RunObserved) -> Iterator[SeriesSample]:
        """Yield the duration of a run that succeeded."""
        if observation.report.outcome == "succeeded":
            yield SeriesSample(observation.pipeline, "", observation.report.duration, observation.run)

    def judge(self, state: DurationState, value: float, now: float) -> Verdict:
        """Judge a duration against the runs before it, then learn it."""
        _forget(state, now - self._against)
        usual = None
        if self._factor is not None and len(state.values) >= self._min_runs:
            usual = max(percentile(state.values, 0.95) * self._factor, LEAST_LIMIT)
        high = min((one for one in (usual, self._over) if one is not None), default=None)
        runs = len(state.values)
        if self._factor is not None:
            state.times.append(now)
            state.values.append(value)
        side = limit(value, self._under, high)
        expected = ExpectedBand(low=self._under, high=None if high is None else round(high, 3))
        if side:
            bound = high if side == "over" else self._under
            words = f"{format_duration(value)}, {side} the limit of {format_duration(bound or 0.0)}"
            return Verdict("bad", f"The run took {words}.", value, expected)
        if high is None and self._under is None:
            return Verdict("learning", f"Learning from {runs + 1} runs.", value)
        return Verdict("ok", f"The run took {format_duration(value)}.", value, expected)


def _forget(state: DurationState, before: float) -> None:
    old = 0
    while old < len(state.times) and (state.times[old] < before or len(state.times) - old >= MAX_RUNS):
        old += 1
    if old:
        del state.times[:old], state.values[:old]


def percentile(values: Numbers, share: float) -> float:
    """Return a percentile of at least one value, with linear interpolation."""
    ordered: list[float] = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
