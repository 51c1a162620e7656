"""The watcher: events and the clock in, alerts out, with its state in a store.

The changes of the state, the ids of the events that caused them and the alerts are written in one transaction, before
the events are acknowledged and before the alerts are sent. So a watcher that is killed loses no alert. One that it had
sent but not marked as sent is sent again, with the same id. A target that has an alert does not get it again because
another one has not.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from balog.event import Event, decode, encode
from balog.watch.alerts.alert_events import as_event
from balog.watch.alerts.targets import AlertTarget
from balog.watch.config.monitors import MonitorConfig
from balog.watch.evaluation import Evaluation, TimedAlert
from balog.watch.observations import Observation, observe
from balog.watch.series import dump_series
from balog.watch.state.redis import RedisWatchStore
from balog.watch.state.sqlite import SqliteWatchStore
from balog.watch.steady_clock import SteadyClock

LATE_SECONDS = 2.0
"""Seconds that events are given to arrive before a deadline counts."""

WatchStore = SqliteWatchStore | RedisWatchStore
"""Where a watcher keeps its state. Every method raises TopicError if the store is damaged or out of reach."""


class Watcher:
    """Evaluates monitors over events. Threads may share it.

    Args:
        monitors: monitors without problems.
        store: keeps the state.
        targets: get the alerts, by a name under which the store keeps what each has.
        clock: the time for deadlines.

    Attributes:
        evaluation: the state of the series; its clock is 0 before the first event or tick.

    Raises:
        TopicError: the store cannot be read.
    """

    def __init__(
        self,
        monitors: Sequence[MonitorConfig],
        store: WatchStore,
        targets: Mapping[str, AlertTarget],
        clock: SteadyClock,
    ) -> None:
        self._monitors = list(monitors)
        self._store = store
        self._targets = targets
        self._clock = clock
        self._lock = threading.RLock()
        self._sent = 0
        self._reached: dict[str, int] = dict.fromkeys(targets, 0)
        self._is_stale = False
        self._has_unsent = True
        self.evaluation = self._load()
        self.flush()

    def handle(self, events: Sequence[Event]) -> None:
        """Evaluate events that have arrived, and commit. When this returns, they may be acknowledged.

        Raises:
            TopicError: the store failed; nothing has changed.
        """
        with self._lock:
            evaluation = self._current()
            known = self._store.handled([event.header.id for event in events])
            alerts: list[TimedAlert] = []
            handled: list[str] = []
            for event in events:
                id = event.header.id
                if id in known:
                    continue
                latest = self._clock.now()
                seen = list(observe(event))
                for observation in seen:
                    alerts += evaluation.observe(observation, event, latest)
                if seen:
                    handled.append(id)
                    known.add(id)
            self._commit(alerts, handled)

    def observe(self, observations: Sequence[Observation]) -> None:
        """Evaluate observations that come from no event, such as the lag of a topic.

        Raises:
            TopicError: as ``handle``.
        """
        with self._lock:
            evaluation = self._current()
            alerts = [alert for observation in observations for alert in evaluation.observe(observation)]
            self._commit(alerts, ())

    def now(self) -> float:
        """Return the time up to which events are expected to have arrived, in seconds since the epoch."""
        return self._clock.now() - LATE_SECONDS

    def is_due(self) -> bool:
        """Return whether a deadline has passed."""
        with self._lock:
            evaluation = self._current()
            due = evaluation.next_deadline() if evaluation.clock else 0.0
            return due is not None and due <= self.now()

    def tick(self) -> None:
        """Meet the deadlines that have passed. Call it only when no event waits to be handled.

        Raises:
            TopicError: as ``handle``.
        """
        with self._lock:
            self._commit(self._current().follow(self.now()), ())

    def replace_monitors(self, monitors: Sequence[MonitorConfig]) -> None:
        """Use other monitors from now on.

        Raises:
            TopicError: as ``handle``.
        """
        with self._lock:
            self._monitors = list(monitors)
            self._commit(self._current().replace_monitors(monitors), ())

    def flush(self) -> None:
        """Send what could not be sent, and forget the alerts that have arrived at their targets."""
        with self._lock:
            if self._has_unsent:
                self._send()
            reached = {name: self._reach(name) for name in self._targets}
            if reached != self._reached:
                self._store.sent(reached)
                self._reached = reached

    def _load(self) -> Evaluation:
        evaluation = Evaluation(self._monitors)
        state = self._store.load()
        self._reached = {name: max(number, state.reached.get(name, 0)) for name, number in self._reached.items()}
        if state.clock:
            evaluation.restore(state.clock, state.silences, state.series)
            evaluation.begin(state.clock)
        return evaluation

    def _current(self) -> Evaluation:
        """Return the evaluation, as it is stored if the last commit failed."""
        if self._is_stale:
            self.evaluation = self._load()
            self._is_stale = False
        return self.evaluation

    def _commit(self, alerts: Sequence[TimedAlert], handled: Sequence[str]) -> None:
        evaluation = self.evaluation
        if not (alerts or handled or evaluation.changed):
            return
        series = evaluation.series
        changes = {key: dump_series(series[key]) if key in series else None for key in evaluation.changed}
        events = [encode(as_event(alert)) for alert in alerts]
        try:
            self._store.commit(evaluation.clock, evaluation.silences, changes, handled, events)
        except BaseException:
            self._is_stale = True  # as if the events had not come; they come again
            raise
        evaluation.changed.clear()
        if alerts:
            self._has_unsent = True
            with suppress(Exception):  # the events are handled; ``flush`` tries again and raises
                self.flush()

    def _send(self) -> None:
        for number, body in self._store.unsent(self._sent):
            for name, target in self._targets.items():
                if number > self._reach(name):
                    target.send(number, decode(body), body)
            self._sent = number
        self._has_unsent = False

    def _reach(self, name: str) -> int:
        """Return the number of the last alert that a target has, from this process or one before."""
        return max(self._targets[name].delivered(), self._reached[name])
