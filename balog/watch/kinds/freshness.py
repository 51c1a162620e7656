"""Freshness: the time since the last success, also of a run that did not start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from msgspec import Struct

from balog.watch.config.calendars import Calendar
from balog.watch.config.durations import format_duration, parse_duration
from balog.watch.config.monitors import Freshness, MonitorConfig
from balog.watch.kinds.base import Evaluator, SeriesMemory, SeriesSample, Verdict
from balog.watch.observations import RunObserved


class FreshnessState(Struct, SeriesMemory):
    """The time of the last success, or that at which watching began; ``rule`` is what ``due`` was computed with."""

    last: float = 0.0
    has_succeeded: bool = False
    is_late: bool = False
    due: float | None = None
    rule: str = ""

    def judge(self, evaluator: FreshnessEvaluator, value: float, now: float) -> Verdict:
        """Learn of a success, which may be an old one that comes late."""
        value = min(value, now)
        if not self.has_succeeded or value > self.last or self.last > now:  # a clock was set back
            self.last, self.has_succeeded = value, True
            self._plan(evaluator)
        if self.due is not None and self.due <= now:
            return self._late(evaluator)
        self.is_late = False
        return Verdict("ok", f"A run succeeded; the next success is due by {_moment(self.due)}.")

    def deadline(self, evaluator: FreshnessEvaluator) -> float | None:
        """Return when the next success is due."""
        if self.due is not None and self.rule != evaluator.rule:  # the monitor was changed
            self._plan(evaluator)
        return None if self.is_late else self.due

    def tick(self, evaluator: FreshnessEvaluator, now: float) -> Verdict | None:
        """Begin to watch, or report that a success is late."""
        if self.due is None:
            self.last = now
            self._plan(evaluator)
            return None
        return self._late(evaluator) if self.due <= now else None

    def _plan(self, evaluator: FreshnessEvaluator) -> None:
        self.due, self.rule, self.is_late = evaluator.due(self.last), evaluator.rule, False

    def _late(self, evaluator: FreshnessEvaluator) -> Verdict:
        self.is_late = True
        since = f"since {_moment(self.last)}" if self.has_succeeded else "since watching began"
        return Verdict("bad", f"No run has succeeded {since}; one was due within {evaluator.words}.")


class FreshnessEvaluator(Evaluator):
    """Judges the time since the last success. With globs of streams, a success is a run that wrote records of it.

    Attributes:
        rule: tells apart what deadlines are computed with.
        words: the time between two successes, for people.
    """

    wants = (RunObserved,)
    state_type = FreshnessState
    starts_early = True

    def __init__(self, options: Freshness, monitor: MonitorConfig) -> None:
        self._wait = parse_duration(options.every) + parse_duration(options.grace)
        self._calendar = Calendar(options.calendar) if options.calendar is not None else None
        self._by_stream = monitor.stream != "*"
        self.rule = f"{self._wait} {options.calendar or ''}"
        self.words = format_duration(self._wait) + (" of open hours" if self._calendar is not None else "")

    def samples(self, observation: RunObserved) -> Iterator[SeriesSample]:
        """Yield the time of a success, of the run or of each stream with records."""
        if observation.outcome != "succeeded":
            return
        pipeline, when, run = observation.pipeline, observation.time, observation.run
        if not self._by_stream:
            yield SeriesSample(pipeline, "", when, run)
            return
        for count in observation.report.streams if observation.report else ():
            if count.records:
                yield SeriesSample(pipeline, count.stream, when, run)

    def due(self, since: float) -> float:
        """Return when a success is due after one, or after the beginning."""
        return since + self._wait if self._calendar is None else self._calendar.add(since, self._wait)


def _moment(when: float | None) -> str:
    return datetime.fromtimestamp(when or 0.0, timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
