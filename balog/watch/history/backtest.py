"""Backtest: which alerts monitors would have sent over stored events, when, and for how long.

The evaluation is that of the stream. It gets the events in the order of their times, and meets the deadlines between
them. Silences and acknowledgements in the events count, as they did in the stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime, timezone
from typing import NamedTuple

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

DAY = 86400.0
WEEK = 7 * DAY

_ALERTING = ("firing", "silenced", "acknowledged")
_TYPES = {
    RunObserved: {"run"},
    MetricObserved: {"metric", "metrics"},
    StateObserved: {"run", "state"},
    RunStarted: {"run_started"},
    SchemaObserved: {"stream_schema"},
}
SILENCING_TYPES = frozenset({"alert_silence", "alert_acknowledgement"})
"""Types of events that count for all pipelines."""


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
    types = set(SILENCING_TYPES).union(*(_TYPES.get(kind, set()) for kind in wanted))
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
            monitor.state and monitor.state.unchanged_for,
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
    """Replay events, and return what would have fired.

    Args:
        events: in the order of their times, from before ``since`` if monitors are to learn from them.
        since, until: the time whose firings count, in seconds since the epoch; events from ``until`` on are left out.
        on_verdict: is called with each judgement of a series, and its time.
    """
    replay = Replay(monitors, since, until, on_verdict)
    seen = SeenEvents(since, until)
    for event in events:
        if not seen.add(event):
            break
        replay.take(event)
    return seen.result([replay.finish()])


class SeenEvents:
    """The events of a backtest: their number, and the first and the last one."""

    def __init__(self, since: float, until: float) -> None:
        self._since, self._until = since, until
        self._first: float | None = None
        self._last = since
        self._count = 0

    def add(self, event: Event) -> bool:
        """Count an event; return False for one from the end on."""
        when = event.header.timestamp.timestamp()
        if when >= self._until:
            return False
        self._first = when if self._first is None else self._first
        self._last = when
        self._count += 1
        return True

    def result(self, parts: Sequence[Replayed]) -> Backtest:
        """Return the result of replays of different pipelines."""
        covered = with_events(self._since, self._until, self._first, self._last)
        firings = sorted(
            (firing for part in parts for firing in part.firings), key=lambda firing: (firing.started, firing.key)
        )
        return Backtest(
            since=_time(self._since),
            until=_time(self._until),
            learned_from=None if self._first is None else _time(self._first),
            with_events=covered,
            events=self._count,
            refused=sum(part.refused for part in parts),
            monitors=[_add_up(same, covered / WEEK) for same in zip(*(part.monitors for part in parts))],
            firings=firings[:MAX_FIRINGS],
        )


def with_events(since: float, until: float, first: float | None, last: float) -> float:
    """Return the seconds with events: from the first to the last of them, at least a day, or all of a shorter time."""
    return max(last - max(since, until if first is None else first), min(DAY, until - since))


class Replayed(NamedTuple):
    """What came of a replay."""

    monitors: list[MonitorHistory]
    firings: list[Firing]
    refused: int


class Replay:
    """The evaluation of events, and the firings from its changes of states."""

    def __init__(
        self,
        monitors: Sequence[MonitorConfig],
        since: float,
        until: float,
        on_verdict: Callable[[Series, Verdict, float], None] | None = None,
        pipelines: Set[str] | None = None,
    ) -> None:
        self.evaluation = Evaluation(monitors, on_verdict, pipelines)
        self._since, self._until = since, until
        self._open: dict[str, Firing] = {}
        self._firings: list[Firing] = []
        self._totals = {
            monitor.name: MonitorHistory(name=monitor.name, kind=monitor.kind, note=note_on(monitor))
            for monitor in monitors
        }

    def take(self, event: Event) -> None:
        """Evaluate an event."""
        self._add(self.evaluation.take(event))

    def finish(self) -> Replayed:
        """Go on to the end, and return what fired. A firing that has not ended is counted to the end."""
        if not self.evaluation.clock:
            self.evaluation.begin(self._since)
        self._add(self.evaluation.advance(self._until, with_end=False))
        for firing in self._open.values():
            self._keep(firing)
        all_series = self.evaluation.series.values()
        counts = Counter(series.monitor for series in all_series)
        learning = Counter(series.monitor for series in all_series if series.life.state == "learning")
        monitors = [
            structs.replace(total, series=counts[name], learning=learning[name]) for name, total in self._totals.items()
        ]
        return Replayed(monitors, self._firings, self.evaluation.refused)

    def _add(self, alerts: Iterable[TimedAlert]) -> None:
        for alert, when in alerts:
            firing = self._open.get(alert.key)
            if firing is None and alert.state in _ALERTING:
                firing = self._open[alert.key] = Firing.of(alert, when)
            if firing is not None:
                firing.add(alert, when)
                if firing.ended is not None:
                    self._keep(self._open.pop(alert.key))

    def _keep(self, firing: Firing) -> None:
        firing.close(_time(self._until))
        if firing.started < _time(self._since):
            return
        self._totals[firing.monitor].add(firing)
        if len(self._firings) < MAX_FIRINGS:
            self._firings.append(firing)


def _add_up(same: Sequence[MonitorHistory], weeks: float) -> MonitorHistory:
    """Return what one monitor did in several replays."""
    firings, silenced = sum(history.firings for history in same), sum(history.silenced for history in same)
    return MonitorHistory(
        name=same[0].name,
        kind=same[0].kind,
        series=sum(history.series for history in same),
        learning=sum(history.learning for history in same),
        firings=firings,
        silenced=silenced,
        per_week=(firings - silenced) / weeks if weeks else 0.0,
        seconds=round(sum(history.seconds for history in same), 6),
        longest=max(history.longest for history in same),
        note=same[0].note,
    )


def note_on(monitor: MonitorConfig) -> str:
    """Return why events alone cannot answer for a monitor; "" if they can."""
    if monitor.lag is not None and monitor.lag.topic is not None:
        return "the lag of a topic is not in the events"
    return ""


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
