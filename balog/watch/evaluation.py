"""Evaluate monitors: observations and the clock in, alerts out. The same in the stream and over history.

Each deadline is met at its own time, in the order of time, after the observations of that time and before later ones.
So the alerts depend on the observations only, and not on how often the clock is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from balog.event import Event
from balog.event.payload import AlertPayload, AlertState
from balog.watch.config.monitors import MonitorConfig
from balog.watch.deadlines import Deadlines
from balog.watch.evaluators import CompiledMonitor
from balog.watch.incidents import Incidents
from balog.watch.kinds.base import SeriesSample, Verdict
from balog.watch.observations import AcknowledgementObserved, Observation, SilenceObserved, observe
from balog.watch.series import Series, key_of, load_series, new_series

STEP_SECONDS = 60.0
"""A clock that is set back by more than this sets the evaluation's back, too."""

MAX_SERIES = 100_000
"""Series of all monitors; further ones are counted and not watched."""

_QUIET = ("ok", "learning")
_KNOWN_TO_PEOPLE = ("firing", "acknowledged")


class TimedAlert(NamedTuple):
    """An alert, and when the state changed, in seconds since the epoch."""

    payload: AlertPayload
    time: float


class Evaluation:
    """The state of all series of some monitors.

    Args:
        monitors: monitors without problems.
        on_verdict: is called with each verdict on a series and its time, for charts; None for nothing.

    Attributes:
        clock: the time up to which the deadlines are met, in seconds since the epoch.
        changed: keys of the series that changed since the caller cleared it; a key without a series is a removed one.
        monitors, series: by name, and by key.
        refused: number of samples of series beyond ``MAX_SERIES``.
    """

    def __init__(
        self,
        monitors: Sequence[MonitorConfig],
        on_verdict: Callable[[Series, Verdict, float], None] | None = None,
    ) -> None:
        self.clock = 0.0
        self.changed: set[str] = set()
        self.refused = 0
        self.on_verdict = on_verdict
        self.silences: dict[str, float] = {}
        self.series: dict[str, Series] = {}
        self._found: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], Series] = {}  # so that keys are made once
        self._deadlines = Deadlines()
        self._incidents = Incidents()
        self._compile(monitors)

    def begin(self, now: float) -> None:
        """Start the clock, and the series of the pipelines that monitors name, so that a missing run is noticed."""
        self.clock = now
        for monitor in self.monitors.values():
            if not monitor.evaluator.starts_early or monitor.config.stream != "*" or monitor.config.where is not None:
                continue
            for pipeline in monitor.pipelines:
                is_new = key_of(monitor.config.name, pipeline, "", ()) not in self.series
                series = self._find(monitor, SeriesSample(pipeline, "", None), now) if is_new else None
                if series is not None:
                    series.memory.tick(monitor.evaluator, now)
                    self._settle(monitor, series, now)

    def take(self, event: Event, latest: float = float("inf")) -> list[TimedAlert]:
        """Evaluate the observations of an event.

        Args:
            latest: the time to assume for an event from the future, whose producer's clock is wrong.
        """
        alerts: list[TimedAlert] = []
        for observation in observe(event):
            alerts += self.observe(observation, event, latest)
        return alerts

    def observe(
        self, observation: Observation, event: Event | None = None, latest: float = float("inf")
    ) -> list[TimedAlert]:
        """Evaluate an observation, after all deadlines before its time: what comes at a deadline is in time.

        One that comes late counts from now on.

        Args:
            event: the event that it comes from, for the conditions of monitors.
            latest: as in ``take``.
        """
        if not self.clock:
            self.begin(min(observation.time, latest))
        now = max(self.clock, min(observation.time, latest))
        alerts = self.advance(now, with_end=False)
        if isinstance(observation, SilenceObserved | AcknowledgementObserved):
            return alerts + self._silence(observation, now)
        for monitor in self._by_type[type(observation)]:
            if not monitor.selects(observation.pipeline, event):
                continue
            for sample in monitor.evaluator.samples(observation):
                if monitor.selects_stream(sample.stream):
                    alerts += self._judge(monitor, sample, now)
        return alerts

    def advance(self, until: float, *, with_end: bool = True) -> list[TimedAlert]:
        """Meet all deadlines up to a time, each at its own time.

        Args:
            with_end: whether those at the time itself are met, since no further observation of that time comes.
        """
        alerts: list[TimedAlert] = []
        if not self.clock:
            self.begin(until)
        while (due := self._deadlines.pop(until, with_end=with_end)) is not None:
            self.clock = max(self.clock, due[0])
            series = self.series[due[1]]
            monitor = self.monitors[series.monitor]
            alerts += self._apply(monitor, series, series.tick(monitor, self.clock), self.clock)
        self.clock = max(self.clock, until)
        return alerts

    def follow(self, now: float) -> list[TimedAlert]:
        """Meet the deadlines up to a wall clock's time, which may have been set back by ``STEP_SECONDS`` or more."""
        if self.clock - now > STEP_SECONDS:
            self.clock = now
        return self.advance(now) if now > self.clock else []

    def next_deadline(self) -> float | None:
        """Return when the next deadline is; None if there is none."""
        return self._deadlines.next()

    def restore(self, clock: float, silences: dict[str, float], stored: Iterable[bytes]) -> list[str]:
        """Continue from a stored state. Return the keys of stored series that no monitor has any more."""
        self.clock = clock
        self.silences = silences
        kept = []
        for data in stored:
            series = load_series(data, self.monitors)
            if series is None:
                continue
            kept.append(series.key)
            self.series[series.key] = series
            self._incidents.restore(series)
            monitor = self.monitors[series.monitor]
            self._deadlines.put(series.key, series.due(monitor, self._silenced_until(monitor, series, clock)))
        return kept

    def replace_monitors(self, monitors: Sequence[MonitorConfig]) -> list[TimedAlert]:
        """Use other monitors from now on. The series of a monitor with the same name and kind go on."""
        before = self.monitors
        self._compile(monitors)
        alerts: list[TimedAlert] = []
        for series in list(self.series.values()):
            monitor = self.monitors.get(series.monitor)
            if monitor is not None and monitor.config.kind == before[series.monitor].config.kind:
                self._settle(monitor, series, self.clock)
                continue
            if series.is_alerting:
                series.end("The monitor was removed.")
                alerts += self._report(before[series.monitor], series, "resolved", self.clock)
            self._remove(series)
        if self.clock:
            self.begin(self.clock)
        return alerts

    def _compile(self, monitors: Sequence[MonitorConfig]) -> None:
        self.monitors = {config.name: CompiledMonitor(config) for config in monitors}
        self._by_type: defaultdict[type, list[CompiledMonitor]] = defaultdict(list)
        for monitor in self.monitors.values():
            for kind in monitor.evaluator.wants:
                self._by_type[kind].append(monitor)

    def _find(self, monitor: CompiledMonitor, sample: SeriesSample, now: float) -> Series | None:
        identity = monitor.config.name, sample.pipeline, sample.stream, sample.labels
        series = self._found.get(identity)
        if series is not None:
            return series
        key = key_of(*identity)
        series = self.series.get(key)
        if series is None:
            if len(self.series) >= MAX_SERIES:
                self.refused += 1
                return None
            series = self.series[key] = new_series(monitor, key, sample, now)
        self._found[identity] = series
        return series

    def _judge(self, monitor: CompiledMonitor, sample: SeriesSample, now: float) -> list[TimedAlert]:
        series = self._find(monitor, sample, now)
        if series is None:
            return []
        return self._apply(monitor, series, series.judge(monitor, sample, now), now)

    def _apply(self, monitor: CompiledMonitor, series: Series, verdict: Verdict | None, now: float) -> list[TimedAlert]:
        if verdict is not None and self.on_verdict is not None:
            self.on_verdict(series, verdict, now)
        if verdict is not None and series.stay_ok(monitor, verdict):  # the usual case
            self.changed.add(series.key)
            self._deadlines.put(series.key, series.due(monitor, 0.0))
            return []
        return self._settle(monitor, series, now, is_repeated=series.apply(monitor, verdict, now))

    def _settle(
        self, monitor: CompiledMonitor, series: Series, now: float, *, is_repeated: bool = False
    ) -> list[TimedAlert]:
        """Report a state that differs from the last reported one, and schedule the next deadline."""
        self.changed.add(series.key)
        alerts: list[TimedAlert] = []
        state = series.state_at(now, self._silenced_until(monitor, series, now))
        if series.shown is None and state in _QUIET:
            series.show(state, now)
        elif state != series.shown or is_repeated:
            alerts = self._report(monitor, series, state, now)
        self._deadlines.put(series.key, series.due(monitor, self._silenced_until(monitor, series, now)))
        return alerts

    def _report(self, monitor: CompiledMonitor, series: Series, state: AlertState, now: float) -> list[TimedAlert]:
        incident, firing = self._incidents.update(series, now)
        return [TimedAlert(series.report(monitor, state, now, incident, firing), now)]

    def _silence(self, observation: SilenceObserved | AcknowledgementObserved, now: float) -> list[TimedAlert]:
        """Silence or acknowledge the series that match a name or a key."""
        if isinstance(observation, SilenceObserved):
            self.silences = {match: until for match, until in self.silences.items() if until > now}
            self.silences[observation.match] = observation.until
        alerts: list[TimedAlert] = []
        for series in list(self.series.values()):
            if series.heed(observation):
                alerts += self._settle(self.monitors[series.monitor], series, now)
        return alerts

    def _silenced_until(self, monitor: CompiledMonitor, series: Series, now: float) -> float:
        """Return until when an alert is silenced; quiet hours silence only alerts that were not sent before."""
        if not series.is_alerting:
            return 0.0
        until = max((until for match, until in self.silences.items() if series.matches(match)), default=0.0)
        if monitor.quiet_hours is not None and series.shown not in _KNOWN_TO_PEOPLE:
            until = max(until, monitor.quiet_hours.closes(now))
        return until

    def _remove(self, series: Series) -> None:
        self.changed.add(series.key)
        self._deadlines.put(series.key, None)
        self._found.pop((series.monitor, series.pipeline, series.stream, tuple(series.labels)), None)
        del self.series[series.key]
