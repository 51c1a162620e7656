"""The watcher: killed between any two steps, with a failing store, over restarts and steps of the clock."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from balog.common.errors import TopicError
from balog.event import Event, decode
from balog.topics import Message
from balog.topics.memory import MemoryTopics
from balog.watch.alerts.alert_events import as_event
from balog.watch.evaluation import Evaluation, TimedAlert
from balog.watch.source import evaluate_events
from balog.watch.state.sqlite import SqliteWatchStore
from balog.watch.steady_clock import SteadyClock
from balog.watch.stream import TopicWatch
from balog.watch.watcher import LATE_SECONDS, Watcher
from tests.watch.events import evaluate, monitor, run, seconds
from tests.watch.test_evaluation import MONITORS, events_of


class Killed(BaseException):
    """The process ends here."""


class Steps:
    """Counts the steps of a watcher, and kills it before one of them."""

    def __init__(self, last: int = -1) -> None:
        self.last, self.count = last, 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.last:
            raise Killed


class Clock(SteadyClock):
    def __init__(self, hours: float = 0.0) -> None:
        self.hours = hours
        super().__init__(lambda: 0.0, lambda: 0.0)

    def now(self) -> float:
        return seconds(self.hours) + LATE_SECONDS


class Store(SqliteWatchStore):
    """A store that is killed before and after its writes."""

    def __init__(self, path: Path, step: Callable[[], None]) -> None:
        super().__init__(path)
        self._step = step

    def commit(self, *changes: Any) -> None:
        self._step()
        super().commit(*changes)
        self._step()

    def sent(self, number: int) -> None:
        self._step()
        super().sent(number)
        self._step()


class Target:
    """A target that keeps each id once, as a topic does."""

    def __init__(self, step: Callable[[], None] = lambda: None) -> None:
        self.ids: dict[str, Event] = {}
        self.writes = 0
        self._step = step
        self._last = 0

    def using(self, step: Callable[[], None]) -> "Target":
        self._step, self._last = step, 0
        return self

    def send(self, number: int, event: Event, body: bytes) -> None:
        self._step()
        self.ids.setdefault(event.header.id, decode(body))
        self.writes += 1
        self._last = number
        self._step()

    def delivered(self) -> int:
        return self._last

    def alerts(self) -> list[Any]:
        return [event.payload for event in self.ids.values()]


def batches(events: list[Event]) -> list[list[Event]]:
    return [events[start : start + 7] for start in range(0, len(events), 7)]


def test_a_watcher_that_is_killed_before_any_step_loses_and_doubles_no_alert(tmp_path: Path) -> None:
    events = events_of(11, 14)
    monitors = [MONITORS[0], MONITORS[2]]
    expected = [one.payload for one in _as_events(evaluate(monitors, events, until=400))]

    def live(folder: Path, last: int) -> tuple[Target, int]:
        """Handle each batch until it is acknowledged, starting again after the kill."""
        target, pending, steps = Target(), batches(events), Steps(last)
        clock = Clock(400)
        while True:
            try:
                watcher = Watcher(monitors, Store(folder / "w.sqlite", steps), {"": target.using(steps)}, clock)
                while pending:
                    watcher.handle(pending[0])
                    steps()  # killed between the commit and the acknowledgement
                    pending.pop(0)
                watcher.tick()
                watcher.flush()
                return target, steps.count
            except Killed:
                steps.last = -1

    (tmp_path / "whole").mkdir()
    target, count = live(tmp_path / "whole", -1)
    assert target.alerts() == expected
    assert count > 15
    assert len(expected) > 3
    for last in range(1, count + 1):
        folder = tmp_path / str(last)
        folder.mkdir()
        target, _ = live(folder, last)
        assert target.alerts() == expected, last


def _as_events(alerts: list[Any]) -> list[Event]:
    return [as_event(TimedAlert(alert, 0.0)) for alert in alerts]


def test_a_store_that_fails_changes_nothing_and_the_events_come_again(tmp_path: Path) -> None:
    events = events_of(3, 30)
    store, target = SqliteWatchStore(tmp_path / "w.sqlite"), Target()
    watcher = Watcher(MONITORS, store, {"": target}, Clock(400))
    commit = store.commit
    for number, batch in enumerate(batches(events)):
        if number % 2:

            def fail(*changes: Any) -> None:
                raise TopicError("the disk takes no more")

            store.commit = fail  # type: ignore[method-assign]
            with pytest.raises(TopicError):
                watcher.handle(batch)
            store.commit = commit  # type: ignore[method-assign]
        watcher.handle(batch)
    watcher.tick()
    assert target.alerts() == [one.payload for one in _as_events(evaluate(MONITORS, events, until=400))]


HOURLY = monitor(freshness={"every": "1h"})


def test_a_target_gets_no_alert_again_because_another_one_fails(tmp_path: Path) -> None:
    lines, sinks = Target(), Target()
    sinks.delivered = lambda: 0  # type: ignore[method-assign]
    for _ in range(2):
        targets = {"stdout": lines.using(lambda: None), "sinks": sinks}
        Watcher([HOURLY], SqliteWatchStore(tmp_path / "w.sqlite"), targets, Clock(9)).handle([run(0), run(3)])
    assert (lines.writes, sinks.writes) == (2, 4)


def test_a_target_that_fails_gets_its_alerts_later(tmp_path: Path) -> None:
    target = Target()
    send, target.send = target.send, Mock(side_effect=OSError("no space left on device"))  # type: ignore[method-assign]
    watcher = Watcher([HOURLY], SqliteWatchStore(tmp_path / "w.sqlite"), {"": target}, Clock(9))
    watcher.handle([run(0), run(3)])
    with pytest.raises(OSError, match="no space"):
        watcher.flush()
    target.send = send  # type: ignore[method-assign]
    watcher.flush()
    assert [alert["state"] for alert in target.alerts()] == ["firing", "resolved"]


def test_an_event_that_comes_twice_counts_once(tmp_path: Path) -> None:
    often = monitor(failures={"rate_over": "50%", "min_runs": 2})
    events = [run(0), run(1, outcome="failed")]
    watcher = Watcher([often], SqliteWatchStore(tmp_path / "w.sqlite"), {"": (target := Target())}, Clock(2))
    for _ in range(3):
        watcher.handle(events)
    watcher.handle([events[1], events[1]])
    assert [alert["state"] for alert in target.alerts()] == ["ok"]
    assert [one.payload.state for one in evaluate_events(Evaluation([often]), [*events, *events])] == ["ok"]


def restarted(path: Path, clock: Clock, *monitors: Any) -> tuple[Watcher, Target]:
    target = Target()
    return Watcher(monitors, SqliteWatchStore(path), {"": target}, clock), target


def test_after_a_restart_the_backlog_comes_before_the_clock(tmp_path: Path) -> None:
    late = monitor(pipeline="tap-shop", freshness={"every": "1h"})
    clock, path = Clock(0), tmp_path / "w.sqlite"
    watcher, _ = restarted(path, clock, late)
    watcher.handle([run(0)])

    clock.hours = 5.5  # it was down while runs went on
    watcher, target = restarted(path, clock, late)
    watcher.handle([run(hour) for hour in (0.9, 1.8, 2.7, 3.6, 4.5)])
    watcher.tick()
    assert [alert["state"] for alert in target.alerts()] == ["firing"]  # at 5.5, no earlier
    watcher, target = restarted(path, clock, late)
    watcher.handle([run(5.4)])
    assert [alert["state"] for alert in target.alerts()] == ["resolved"]


def test_a_clock_that_was_wrong_neither_fires_everything_nor_nothing(tmp_path: Path) -> None:
    late = monitor(freshness={"every": "1h"})
    clock, path = Clock(0), tmp_path / "w.sqlite"
    watcher, target = restarted(path, clock, late)
    watcher.handle([run(24, "tap-wrong"), run(0)])
    watcher.tick()
    assert not target.alerts()
    clock.hours = 24  # the clock is set forward by mistake, and the watcher believes it
    watcher.tick()
    assert {alert["state"] for alert in target.alerts()} == {"firing"}
    clock.hours = 0.5
    watcher.tick()
    watcher.handle([run(0.5)])
    assert target.alerts()[-1]["state"] == "resolved"
    clock.hours = 1.6
    watcher.tick()
    assert (target.alerts()[-1]["state"], target.alerts()[-1]["since"][11:16]) == ("firing", "07:30")


class Backlog:
    """Topics in memory with events, an engine's work done by hand."""

    def __init__(self, tmp_path: Path, text: str, clock: Clock) -> None:
        self.topics = MemoryTopics()
        self.path = tmp_path / "monitors.json"
        self.path.write_text(text)
        self.said: list[str] = []
        from balog.watch.config.config_check import load_monitors

        self.target = Target()
        store = SqliteWatchStore(tmp_path / "w.sqlite")
        self.watcher = Watcher(load_monitors(self.path), store, {"": self.target}, clock)
        self.watch = TopicWatch(self.watcher, self.topics, ["events"], "watch", self.path, self.said.append)


LATE = '{"monitors": [{"name": "late", "pipeline": "tap-shop", "freshness": {"every": "1h"}}]}'


def test_absence_is_noticed_when_nothing_waits(tmp_path: Path) -> None:
    from balog.event import encode

    clock = Clock(0)
    backlog = Backlog(tmp_path, LATE, clock)
    backlog.watch.step()  # the topic does not exist yet
    topic = backlog.topics.topic("events")
    clock.hours = 1.001
    topic.publish([Message("1", encode(run(0.9)))])
    backlog.watch.step()
    assert not backlog.target.alerts()  # a success may wait
    received = topic.receive("watch")
    backlog.watcher.handle([decode(received[0].body)])
    topic.ack("watch", received)
    backlog.watch.step()
    assert not backlog.target.alerts()
    clock.hours = 1.901
    backlog.watch.step()
    assert [alert["state"] for alert in backlog.target.alerts()] == ["firing"]


def test_the_lag_of_a_group_is_watched(tmp_path: Path) -> None:
    text = '{"monitors": [{"name": "behind", "lag": {"topic": "orders", "group": "handlers", "over": 2}}]}'
    backlog = Backlog(tmp_path, text, Clock(1))
    orders = backlog.topics.topic("orders")
    orders.publish([Message(str(number), b"{}") for number in range(3)])
    backlog.watch.step()
    assert [(alert["state"], alert["value"]) for alert in backlog.target.alerts()] == [("firing", 3)]


def test_the_file_of_monitors_is_read_again_and_a_wrong_one_is_reported(tmp_path: Path) -> None:
    clock = Clock(0)
    backlog = Backlog(tmp_path, LATE, clock)
    backlog.watch.step()
    backlog.path.write_text('{"monitors": [{"name": "late", "freshness": {"evry": "1h"}}, {"name": "x"}]}')
    backlog.watch.step()
    assert len(backlog.said) == 3
    assert "monitors.json:1:32: $.monitors[0].freshness" in " ".join(backlog.said)
    clock.hours = 1.01
    backlog.watch.step()
    assert [alert["state"] for alert in backlog.target.alerts()] == ["firing"]
    backlog.path.write_text(LATE.replace("late", "later"))
    backlog.watch.step()
    assert backlog.said[-1].endswith("was read again, 1 monitors")
    assert [alert["state"] for alert in backlog.target.alerts()] == ["firing", "resolved"]


def test_a_state_has_one_watcher(tmp_path: Path) -> None:
    from balog.common.errors import ConfigError

    first, second = SqliteWatchStore(tmp_path / "s" / "w.sqlite"), SqliteWatchStore(tmp_path / "s" / "w.sqlite")
    first.claim()
    with pytest.raises(ConfigError, match="another watcher uses this state"):
        second.claim()
    second.close()
    first.close()
    third = SqliteWatchStore(tmp_path / "s" / "w.sqlite")
    third.claim()
    third.close()
