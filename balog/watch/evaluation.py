"""Evaluate monitors: observations and the clock in, alerts out. The same in the stream and over history.

Each deadline is met at its own time, in the order of time, after the observations of that time and before later ones.
So the alerts depend on the observations only, and not on how often the clock is read.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from balog.event import Event, format_timestamp
from balog.event.payload import AlertEvidence, AlertPayload, AlertState
from balog.watch.config.monitors import MonitorConfig
from balog.watch.evaluators import CompiledMonitor
from balog.watch.incidents import Incidents
from balog.watch.kinds.base import SeriesSample, Verdict
from balog.watch.observations import AcknowledgementObserved, Observation, SilenceObserved, observe
from balog.watch.series import Series, key_of, load_series, new_series
from balog.watch.state_machine import change, deadline

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

    Attributes:
        clock: the time up to which the deadlines are met, in seconds since the epoch.
        changed: keys of the series that changed since the caller cleared it; a key without a series is a removed one.
        refused: number of samples of series beyond ``MAX_SERIES``.
        on_verdict: is called with each verdict on a series and its time, for charts; None for nothing.
    """

    def __init__(self, monitors: Sequence[MonitorConfig]) -> None:
        self.clock = 0.0
        self.changed: set[str] = set()
        self.refused = 0
        self.on_verdict: Callable[[Series, Verdict, float], None] | None = None
        self.silences: dict[str, float] = {}
        self._series: dict[str, Series] = {}
        self._found: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], Series] = {}  # so that keys are made once
        self._due: list[tuple[float, str]] = []
        self._deadlines: dict[str, float] = {}
        self._incidents = Incidents()
        self._compile(monitors)

    @property
    def monitors(self) -> dict[str, CompiledMonitor]:
        """The monitors by name."""
        return self._monitors

    @property
    def series(self) -> dict[str, Series]:
        """The series by key."""
        return self._series

    def begin(self, now: float) -> None:
        """Start the clock, and the series of the pipelines that monitors name, so that a missing run is noticed."""
        self.clock = now
        for monitor in self._monitors.values():
            if not monitor.evaluator.starts_early or monitor.config.stream != "*" or monitor.config.where is not None:
                continue
            for pipeline in monitor.pipelines:
                is_new = key_of(monitor.config.name, pipeline, "", ()) not in self._series
                series = self._find(monitor, SeriesSample(pipeline, "", None), now) if is_new else None
                if series is not None:
                    monitor.evaluator.tick(series.memory, now)
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
        while self._due and (self._due[0][0] < until or (with_end and self._due[0][0] == until)):
            when, key = heapq.heappop(self._due)
            if self._deadlines.get(key) != when:
                continue  # it was moved
            del self._deadlines[key]
            self.clock = max(self.clock, when)
            series = self._series[key]
            alerts += self._tick(self._monitors[series.monitor], series, self.clock)
        self.clock = max(self.clock, until)
        return alerts

    def next_deadline(self) -> float | None:
        """Return when the next deadline is; None if there is none."""
        while self._due and self._deadlines.get(self._due[0][1]) != self._due[0][0]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def restore(self, clock: float, silences: dict[str, float], stored: Iterable[bytes]) -> list[str]:
        """Continue from a stored state. Return the keys of stored series that no monitor has any more."""
        self.clock = clock
        self.silences = silences
        kept = []
        for data in stored:
            series = load_series(data, self._monitors)
            if series is None:
                continue
            kept.append(series.key)
            self._series[series.key] = series
            self._incidents.restore(series)
            self._schedule(self._monitors[series.monitor], series, clock)
        return kept

    def replace_monitors(self, monitors: Sequence[MonitorConfig]) -> list[TimedAlert]:
        """Use other monitors from now on. The series of a monitor with the same name and kind go on."""
        before = self._monitors
        self._compile(monitors)
        alerts: list[TimedAlert] = []
        for series in list(self._series.values()):
            monitor = self._monitors.get(series.monitor)
            if monitor is not None and monitor.config.kind == before[series.monitor].config.kind:
                self._settle(monitor, series, self.clock)
                continue
            if series.is_alerting:
                series.life.state = "resolved"
                series.reason = "The monitor was removed."
                alerts += self._report(before[series.monitor], series, self.clock)
            self._remove(series)
        if self.clock:
            self.begin(self.clock)
        return alerts

    def _compile(self, monitors: Sequence[MonitorConfig]) -> None:
        self._monitors = {config.name: CompiledMonitor(config) for config in monitors}
        self._by_type: defaultdict[type, list[CompiledMonitor]] = defaultdict(list)
        for monitor in self._monitors.values():
            for kind in monitor.evaluator.wants:
                self._by_type[kind].append(monitor)

    def _find(self, monitor: CompiledMonitor, sample: SeriesSample, now: float) -> Series | None:
        identity = monitor.config.name, sample.pipeline, sample.stream, sample.labels
        series = self._found.get(identity)
        if series is not None:
            return series
        key = key_of(*identity)
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= MAX_SERIES:
                self.refused += 1
                return None
            series = self._series[key] = new_series(monitor, key, sample, now)
        self._found[identity] = series
        return series

    def _judge(self, monitor: CompiledMonitor, sample: SeriesSample, now: float) -> list[TimedAlert]:
        series = self._find(monitor, sample, now)
        if series is None:
            return []
        series.seen = now
        series.add_run(sample.run)
        verdict = monitor.evaluator.judge(series.memory, sample.value, now)
        return self._apply(monitor, series, verdict, now)

    def _tick(self, monitor: CompiledMonitor, series: Series, now: float) -> list[TimedAlert]:
        verdict = None
        due = monitor.evaluator.deadline(series.memory)
        if due is not None and due <= now:
            verdict = monitor.evaluator.tick(series.memory, now)
        if verdict is None and monitor.no_data is not None and series.seen + monitor.no_data <= now:
            verdict = Verdict("no_data", "No event has come for the time that no_data sets.")
        return self._apply(monitor, series, verdict, now)

    def _apply(self, monitor: CompiledMonitor, series: Series, verdict: Verdict | None, now: float) -> list[TimedAlert]:
        was_alerting = series.is_alerting
        if verdict is not None and self.on_verdict is not None:
            self.on_verdict(series, verdict, now)
        if verdict is not None and verdict.signal == series.life.state == series.shown == "ok":  # the usual case
            series.note(verdict, monitor.config.severity)
            self.changed.add(series.key)
            self._schedule(monitor, series, now)
            return []
        change(series.life, verdict.signal if verdict is not None else None, now, monitor.timing)
        if verdict is not None and (verdict.signal == "bad" or not series.is_alerting):
            series.note(verdict, monitor.config.severity, was_alerting=was_alerting)
        elif verdict is not None and verdict.signal == "ok":
            series.good = verdict
        elif was_alerting and not series.is_alerting and series.good is not None:
            series.note(series.good, monitor.config.severity)
        is_repeated = verdict is not None and verdict.is_repeated and was_alerting and series.is_alerting
        return self._settle(monitor, series, now, is_repeated=is_repeated)

    def _settle(
        self, monitor: CompiledMonitor, series: Series, now: float, *, is_repeated: bool = False
    ) -> list[TimedAlert]:
        """Report a state that differs from the last reported one, and schedule the next deadline."""
        self.changed.add(series.key)
        alerts: list[TimedAlert] = []
        state = self._state(monitor, series, now)
        if series.shown is None and state in _QUIET:
            series.shown, series.since = state, now
        elif state != series.shown or is_repeated:
            alerts = self._report(monitor, series, now)
        self._schedule(monitor, series, now)
        return alerts

    def _state(self, monitor: CompiledMonitor, series: Series, now: float) -> AlertState:
        if not series.is_alerting:
            series.acknowledged = 0.0
            return series.life.state
        if self._silenced_until(monitor, series, now) > now:
            return "silenced"
        return "acknowledged" if series.acknowledged > now else "firing"

    def _report(self, monitor: CompiledMonitor, series: Series, now: float) -> list[TimedAlert]:
        state, previous = self._state(monitor, series, now), series.shown
        if state != previous:
            series.shown, series.since = state, now
        if series.is_alerting and series.started is None:
            series.started = now
            series.incident = self._incidents.join(series, now)
        is_over = not series.is_alerting and series.started is not None
        if is_over:
            self._incidents.leave(series)
        series.sequence += 1
        alert = AlertPayload(
            monitor=series.monitor,
            kind=monitor.config.kind,
            state=state,
            previous=previous,
            key=series.key,
            incident=series.incident,
            incident_firing=self._incidents.count(series) if series.incident else 0,
            severity=series.severity,  # type: ignore[arg-type]
            labels=_labels(monitor.config, series),
            value=series.value,
            expected=series.expected,
            reason=series.reason,
            since=_moment(series.since),
            started=None if series.started is None else _moment(series.started),
            evidence=AlertEvidence(runs=list(series.runs), link=_link(monitor.config, series)),
            sequence=series.sequence,
        )
        if is_over:
            series.started, series.incident, series.runs = None, "", series.runs[-1:]
        return [TimedAlert(alert, now)]

    def _schedule(self, monitor: CompiledMonitor, series: Series, now: float) -> None:
        due = monitor.evaluator.deadline(series.memory)
        if series.life.state != "ok" or monitor.no_data is not None:
            dues = [due, deadline(series.life, monitor.timing)]
            if monitor.no_data is not None and series.life.state not in ("firing", "no_data"):
                dues.append(series.seen + monitor.no_data)
            if series.shown == "silenced":
                dues.append(self._silenced_until(monitor, series, now))
            elif series.shown == "acknowledged":
                dues.append(series.acknowledged)
            due = min((time for time in dues if time is not None), default=None)
        if due is None or due == float("inf"):
            self._deadlines.pop(series.key, None)
        elif self._deadlines.get(series.key) != due:
            self._deadlines[series.key] = due
            heapq.heappush(self._due, (due, series.key))
            if len(self._due) > 4 * len(self._deadlines) + 1000:  # most were moved
                self._due = [(when, key) for key, when in self._deadlines.items()]
                heapq.heapify(self._due)

    def _silence(self, observation: SilenceObserved | AcknowledgementObserved, now: float) -> list[TimedAlert]:
        """Silence or acknowledge the series that match a name or a key."""
        if isinstance(observation, SilenceObserved):
            self.silences = {match: until for match, until in self.silences.items() if until > now}
            self.silences[observation.match] = observation.until
        alerts: list[TimedAlert] = []
        for series in list(self._series.values()):
            if not series.is_alerting or not _matches(observation.match, series):
                continue
            if isinstance(observation, AcknowledgementObserved):
                series.acknowledged = observation.until
            alerts += self._settle(self._monitors[series.monitor], series, now)
        return alerts

    def _silenced_until(self, monitor: CompiledMonitor, series: Series, now: float) -> float:
        """Return until when a series is silenced; quiet hours silence only alerts that were not sent before."""
        until = max((until for match, until in self.silences.items() if _matches(match, series)), default=0.0)
        if monitor.quiet_hours is not None and series.shown not in _KNOWN_TO_PEOPLE:
            until = max(until, monitor.quiet_hours.closes(now))
        return until

    def _remove(self, series: Series) -> None:
        self.changed.add(series.key)
        self._deadlines.pop(series.key, None)
        self._found.pop((series.monitor, series.pipeline, series.stream, tuple(series.labels)), None)
        del self._series[series.key]


def _matches(match: str, series: Series) -> bool:
    return match in (series.monitor, series.key) or any(
        fnmatchcase(name, match) for name in (series.monitor, series.key)
    )


def _labels(config: MonitorConfig, series: Series) -> dict[str, str]:
    labels = dict(config.labels)
    labels.update((name, value) for name, value in (("pipeline", series.pipeline), ("stream", series.stream)) if value)
    labels.update(series.labels)
    return labels


def _link(config: MonitorConfig, series: Series) -> str | None:
    if config.link is None:
        return None
    from urllib.parse import quote

    parts = {"pipeline": series.pipeline, "stream": series.stream, "run_id": series.runs[-1] if series.runs else ""}
    link = config.link
    for name, value in parts.items():
        link = link.replace(f"{{{name}}}", quote(value, safe=""))
    return link


def _moment(seconds: float) -> str:
    return format_timestamp(round(seconds * 1_000_000) * 1000)
