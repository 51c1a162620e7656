"""Backtest: which alerts monitors would have sent over stored events, when, and for how long.

The evaluation is that of the stream. It gets the events in the order of their times, and meets the deadlines between
them. Silences and acknowledgements in the events count, as they did in the stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone

from msgspec import Struct, field, structs

from balog.event import Event
from balog.event.payload import AlertPayload, AlertState, ExpectedBand
from balog.watch.bands.band_history import TRAINING
from balog.watch.config.durations import parse_duration
from balog.watch.config.monitors import MonitorConfig
from balog.watch.evaluation import Evaluation, TimedAlert
from balog.watch.kinds.base import Verdict
from balog.watch.observations import (
    ErrorObserved,
    MetricObserved,
    RunObserved,
    RunStarted,
    SchemaObserved,
    StateObserved,
)
from balog.watch.series import Series

MAX_FIRINGS = 100_000
"""Firings that are listed; further ones are counted only."""

_DAY = 86400.0
_WEEK = 7 * _DAY

_ALERTING = ("firing", "silenced", "acknowledged")
_TYPES = {
    RunObserved: {"run"},
    MetricObserved: {"metric", "metrics"},
    StateObserved: {"run", "state"},
    RunStarted: {"run_started"},
    SchemaObserved: {"stream_schema"},
}
_SILENCING_TYPES = ("alert_silence", "alert_acknowledgement")


class Firing(Struct, kw_only=True):
    """A time during which a series fired.

    Attributes:
        sent: when it was sent: later than ``started`` if it was silenced at first; None if it never was.
        ended: None while it fires at the end of the backtest.
        seconds: its length, at most to the end of the backtest.
        state: the last one: ``resolved``, or that at the end of the backtest.
        value, expected, reason: what was judged when it began.
    """

    monitor: str
    kind: str
    key: str
    severity: str
    labels: dict[str, str]
    started: datetime
    sent: datetime | None = None
    ended: datetime | None = None
    seconds: float = 0.0
    state: AlertState = "firing"
    value: float | str | None = None
    expected: ExpectedBand | None = None
    reason: str = ""
    runs: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, alert: AlertPayload, when: float) -> Firing:
        """Return the firing that an alert begins."""
        return cls(
            monitor=alert.monitor,
            kind=alert.kind,
            key=alert.key,
            severity=alert.severity,
            labels=dict(alert.labels),
            started=_time(when),
            value=alert.value,
            expected=alert.expected,
            reason=alert.reason,
            runs=list(alert.evidence.runs),
        )

    def add(self, alert: AlertPayload, when: float) -> None:
        """Add an alert of the series: it is sent, silenced, acknowledged, or over."""
        self.state = alert.state
        if alert.state not in _ALERTING:
            self.ended = _time(when)
        elif alert.state == "firing" and self.sent is None:
            self.sent = _time(when)

    def close(self, until: datetime) -> None:
        """Measure the firing, which counts to the end of the backtest if it has not ended."""
        self.seconds = ((self.ended or until) - self.started).total_seconds()


class MonitorHistory(Struct, kw_only=True):
    """What one monitor would have done.

    Attributes:
        learning: series that had too few runs for a verdict until the end.
        firings: how often a series began to fire.
        silenced: how many of them were never sent.
        per_week: the others, by week of the time with events.
        seconds: the time that its series fired, added up; ``longest`` is the longest of them.
        note: why its count is not complete; "" if it is.
    """

    name: str
    kind: str
    series: int = 0
    learning: int = 0
    firings: int = 0
    silenced: int = 0
    per_week: float = 0.0
    seconds: float = 0.0
    longest: float = 0.0
    note: str = ""

    def add(self, firing: Firing) -> None:
        """Count a firing."""
        self.firings += 1
        self.silenced += firing.sent is None
        self.seconds += firing.seconds
        self.longest = max(self.longest, firing.seconds)


class Backtest(Struct, kw_only=True):
    """The result of a backtest.

    Attributes:
        since, until: the time whose firings count.
        learned_from: the first event that was read; monitors learn from those before ``since``, too.
        with_events: seconds from the first to the last event between ``since`` and ``until``; at least a day, or all of
            a shorter time.
        refused: samples of series beyond ``evaluation.MAX_SERIES``.
        firings: in the order of their beginnings, at most ``MAX_FIRINGS``.
    """

    since: datetime
    until: datetime
    learned_from: datetime | None
    with_events: float
    events: int
    refused: int
    monitors: list[MonitorHistory]
    firings: list[Firing]


class EventSelection(Struct, frozen=True):
    """The events that monitors judge: their payload types, and whether errors of all types belong to them."""

    types: tuple[str, ...]
    errors: bool


def select_events(monitors: Sequence[MonitorConfig]) -> EventSelection:
    """Return which events a backtest of monitors has to read."""
    wanted = {kind for monitor in Evaluation(monitors).monitors.values() for kind in monitor.evaluator.wants}
    types = set(_SILENCING_TYPES).union(*(_TYPES.get(kind, set()) for kind in wanted))
    return EventSelection(tuple(sorted(types)), ErrorObserved in wanted)


def training_seconds(monitors: Sequence[MonitorConfig]) -> float:
    """Return how long before a backtest events are of use: the longest history that a monitor keeps."""
    texts = [
        text
        for monitor in monitors
        for text in (
            monitor.duration and monitor.duration.p95_over and monitor.duration.against,
            monitor.failures and monitor.failures.new_fingerprint and "28d",  # what is forgotten then
            monitor.failures and monitor.failures.rate_over and monitor.failures.within,
            monitor.failures and monitor.failures.in_a_row and "7d",  # a row of failed runs that began before
            monitor.freshness and monitor.freshness.every,
        )
    ]
    kept = [parse_duration(text) for text in texts if text]
    return max([0.0, *kept, *(TRAINING for monitor in monitors if monitor.volume is not None)])


def run_backtest(
    monitors: Sequence[MonitorConfig],
    events: Iterable[Event],
    since: float,
    until: float,
    on_verdict: Callable[[Series, Verdict, float], None] | None = None,
) -> Backtest:
    """Evaluate events, and return what would have fired.

    Args:
        events: in the order of their times, from before ``since`` if monitors are to learn from them.
        since, until: the time whose firings count, in seconds since the epoch; events from ``until`` on are left out.
        on_verdict: is called with each judgement of a series, and its time.
    """
    evaluation = Evaluation(monitors, on_verdict)
    firings = _Firings(monitors, since, until)
    first, last, count = None, since, 0
    for event in events:
        when = event.header.timestamp.timestamp()
        if when >= until:
            break
        first, last, count = when if first is None else first, when, count + 1
        firings.add(evaluation.take(event))
    if not evaluation.clock:
        evaluation.begin(since)
    firings.add(evaluation.advance(until, with_end=False))
    firings.close()
    with_events = max(last - max(since, until if first is None else first), min(_DAY, until - since))
    return Backtest(
        since=_time(since),
        until=_time(until),
        learned_from=None if first is None else _time(first),
        with_events=with_events,
        events=count,
        refused=evaluation.refused,
        monitors=firings.by_monitor(evaluation.series.values(), with_events / _WEEK),
        firings=sorted(firings.kept, key=lambda firing: (firing.started, firing.key)),
    )


class _Firings:
    """The firings of a backtest, from its alerts; ``kept`` are the first ``MAX_FIRINGS`` that count."""

    def __init__(self, monitors: Sequence[MonitorConfig], since: float, until: float) -> None:
        self.kept: list[Firing] = []
        self._since, self._until = _time(since), _time(until)
        self._open: dict[str, Firing] = {}
        self._totals = {
            monitor.name: MonitorHistory(name=monitor.name, kind=monitor.kind, note=_note_on(monitor))
            for monitor in monitors
        }

    def add(self, alerts: Iterable[TimedAlert]) -> None:
        """Add alerts in the order of time."""
        for alert, when in alerts:
            firing = self._open.get(alert.key)
            if firing is None and alert.state in _ALERTING:
                firing = self._open[alert.key] = Firing.of(alert, when)
            if firing is not None:
                firing.add(alert, when)
                if firing.ended is not None:
                    self._keep(self._open.pop(alert.key))

    def close(self) -> None:
        """End the input: a firing that has not ended is counted to the end of the time."""
        for firing in self._open.values():
            self._keep(firing)

    def by_monitor(self, all_series: Iterable[Series], weeks: float) -> list[MonitorHistory]:
        """Return what each monitor would have done.

        Args:
            all_series: those of all monitors.
            weeks: the time with events.
        """
        states = [(series.monitor, series.life.state) for series in all_series]
        counts = Counter(name for name, _ in states)
        learning = Counter(name for name, state in states if state == "learning")
        return [
            structs.replace(
                total,
                series=counts[name],
                learning=learning[name],
                per_week=(total.firings - total.silenced) / weeks if weeks else 0.0,
                seconds=round(total.seconds, 6),
            )
            for name, total in self._totals.items()
        ]

    def _keep(self, firing: Firing) -> None:
        firing.close(self._until)
        if firing.started < self._since:
            return
        self._totals[firing.monitor].add(firing)
        if len(self.kept) < MAX_FIRINGS:
            self.kept.append(firing)


def _note_on(monitor: MonitorConfig) -> str:
    """Return why events alone cannot answer for a monitor; "" if they can."""
    return "" if monitor.lag is None else "the lag of a topic is not in the events"


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
