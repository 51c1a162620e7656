"""Freshness: the time since the last success, also of a run that did not start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from msgspec import Struct

from balog.watch.config.calendars import Calendar
from balog.watch.config.durations import format_duration, parse_duration
from balog.watch.config.kind_config import Freshness
from balog.watch.kinds.base import SeriesSample, Verdict
from balog.watch.observations import RunObserved


class FreshnessState(Struct):
    """The time of the last success, or that at which watching began; ``rule`` is what ``due`` was computed with."""

    last: float = 0.0
    has_succeeded: bool = False
    is_late: bool = False
    due: float | None = None
    rule: str = ""


class FreshnessEvaluator:
    """Judges the time since the last success. With globs of streams, a success is a run that wrote records of it."""

    wants = (RunObserved,)
    state_type = FreshnessState
    starts_early = True

    def __init__(self, options: Freshness, by_stream: bool) -> None:
        self._wait = parse_duration(options.every) + parse_duration(options.grace)
        self._calendar = Calendar(options.calendar) if options.calendar is not None else None
        self._by_stream = by_stream
        self._rule = f"{self._wait} {options.calendar or ''}"

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

    def judge(self, state: FreshnessState, value: float, now: float) -> Verdict:
        """Learn of a success, which may be an old one that comes late."""
        value = min(value, now)
        if not state.has_succeeded or value > state.last or state.last > now:  # a clock was set back
            state.last, state.has_succeeded = value, True
            self._plan(state)
        if state.due is not None and state.due <= now:
            return self._late(state)
        state.is_late = False
        return Verdict("ok", f"A run succeeded; the next success is due by {_moment(state.due)}.")

    def deadline(self, state: FreshnessState) -> float | None:
        """Return when the next success is due."""
        if state.due is not None and state.rule != self._rule:  # the monitor was changed
            self._plan(state)
        return None if state.is_late else state.due

    def tick(self, state: FreshnessState, now: float) -> Verdict | None:
        """Begin to watch, or report that a success is late."""
        if state.due is None:
            state.last = now
            self._plan(state)
            return None
        return self._late(state) if state.due <= now else None

    def _plan(self, state: FreshnessState) -> None:
        since, calendar = state.last, self._calendar
        state.due = calendar.add(since, self._wait) if calendar is not None else since + self._wait
        state.rule, state.is_late = self._rule, False

    def _late(self, state: FreshnessState) -> Verdict:
        state.is_late = True
        since = f"since {_moment(state.last)}" if state.has_succeeded else "since watching began"
        open_hours = " of open hours" if self._calendar is not None else ""
        return Verdict(
            "bad", f"No run has succeeded {since}; one was due within {format_duration(self._wait)}{open_hours}."
        )


def _moment(when: float | None) -> str:
    return datetime.fromtimestamp(when or 0.0, timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
