"""Duration: the time of a run, ended or not, against fixed limits and the 95th percentile of its history."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct, field

from balog.event.payload import ExpectedBand
from balog.watch.bands.arrays import Numbers
from balog.watch.config.durations import format_duration, parse_duration, parse_factor
from balog.watch.config.monitors import DurationLimits, MonitorConfig
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict, limit
from balog.watch.observations import RunObserved, RunStarted

LEAST_LIMIT = 1.0
"""Seconds of the least limit from a history: its 95th percentile may be 0."""

MAX_RUNS = 2000
"""Runs that a history has at most."""

MAX_OPEN = 100
"""Runs of a pipeline that have started and not ended; the oldest of more are forgotten."""


class DurationSample(NamedTuple):
    """A run that has started at a time, or that has ended after some seconds; both are None for one that failed."""

    run: str
    started: float | None = None
    duration: float | None = None


class DurationState(Struct, SeriesMemory):
    """The times and durations of the last successful runs, and the start of those that have not ended, by run id."""

    times: Numbers = field(default_factory=lambda: array("d"))
    values: Numbers = field(default_factory=lambda: array("d"))
    open: dict[str, float] = field(default_factory=dict)

    def judge(self, evaluator: DurationEvaluator, value: DurationSample, now: float) -> Verdict | None:
        """Judge a duration against the runs before it, then learn it; remember a start."""
        if value.started is not None:
            self.open[value.run] = min(value.started, now)
            if len(self.open) > MAX_OPEN:
                del self.open[next(iter(self.open))]
            return None
        self.open.pop(value.run, None)
        return None if value.duration is None else self._judge_duration(evaluator, value.duration, now)

    def deadline(self, evaluator: DurationEvaluator) -> float | None:
        """Return when the oldest run that has not ended reaches the limit."""
        high = self._limit(evaluator) if self.open else None
        return None if high is None else min(self.open.values()) + high

    def tick(self, evaluator: DurationEvaluator, now: float) -> Verdict | None:
        """Report the runs that have reached the limit; each is reported once."""
        high = self._limit(evaluator)
        late = [] if high is None else [run for run, started in self.open.items() if started + high <= now]
        if not late or high is None:
            return None
        run = min(late, key=lambda run_id: self.open[run_id])
        value = now - min(self.open.pop(run_id) for run_id in late)
        words = f"has taken {format_duration(value)} and has not ended; the limit is {format_duration(high)}"
        return Verdict("bad", f"The run {run} {words}.".replace("  ", " "), value, ExpectedBand(high=round(high, 3)))

    def _limit(self, evaluator: DurationEvaluator) -> float | None:
        usual = None
        if evaluator.factor is not None and len(self.values) >= evaluator.min_runs:
            usual = max(percentile(self.values, 0.95) * evaluator.factor, LEAST_LIMIT)
        return min((high for high in (usual, evaluator.over) if high is not None), default=None)

    def _judge_duration(self, evaluator: DurationEvaluator, value: float, now: float) -> Verdict:
        self._forget(now - evaluator.against)
        high = self._limit(evaluator)
        runs = len(self.values)
        if evaluator.factor is not None:
            self.times.append(now)
            self.values.append(value)
        side = limit(value, evaluator.under, high)
        expected = ExpectedBand(low=evaluator.under, high=None if high is None else round(high, 3))
        if side:
            bound = high if side == "over" else evaluator.under
            took, most = format_duration(value), format_duration(bound or 0.0)
            words = f"{took if took != most else f'{value:.3f} s'}, {side} the limit of {most}"
            return Verdict("bad", f"The run took {words}.", value, expected)
        if high is None and evaluator.under is None:
            return Verdict("learning", f"Learning from {runs + 1} runs.", value)
        return Verdict("ok", f"The run took {format_duration(value)}.", value, expected)

    def _forget(self, before: float) -> None:
        old = 0
        while old < len(self.times) and (self.times[old] < before or len(self.times) - old >= MAX_RUNS):
            old += 1
        if old:
            del self.times[:old], self.values[:old]


class DurationEvaluator(Evaluator):
    """Judges the time that successful runs took, and that of runs that have started and not ended."""

    wants = (RunObserved, RunStarted)
    state_type = DurationState

    def __init__(self, options: DurationLimits, monitor: MonitorConfig) -> None:
        self.factor = None if options.p95_over is None else parse_factor(options.p95_over)
        self.over = None if options.over is None else parse_duration(options.over)
        self.under = None if options.under is None else parse_duration(options.under)
        self.against = parse_duration(options.against)
        self.min_runs = options.min_runs

    def samples(self, observation: RunObserved | RunStarted) -> Iterator[SeriesSample]:
        """Yield the start of a run, or its end with its duration if it succeeded."""
        run, pipeline = observation.run, observation.pipeline
        if isinstance(observation, RunStarted):
            yield SeriesSample(pipeline, "", DurationSample(run, started=observation.time), run)
        elif observation.report is not None and observation.outcome == "succeeded":
            yield SeriesSample(pipeline, "", DurationSample(run, duration=observation.report.duration), run)
        else:
            yield SeriesSample(pipeline, "", DurationSample(run))


def percentile(values: Numbers, share: float) -> float:
    """Return a percentile of at least one value, with linear interpolation."""
    ordered: list[float] = sorted(values)
    rank = share * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)
