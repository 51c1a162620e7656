"""Topics with different backlogs give the alerts of one topic in the order of time."""

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from balog.common.errors import TopicError
from balog.consumers import Engine
from balog.consumers.ledgers.factory import NoLedger
from balog.event import Event, encode
from balog.topics import Message, Topics
from balog.topics.memory import MemoryTopics
from balog.watch import merging
from balog.watch.merging import TopicMerge
from balog.watch.state.sqlite import SqliteWatchStore
from balog.watch.stream import TopicWatch
from balog.watch.watcher import Watcher
from tests.watch.events import evaluate, run, seconds
from tests.watch.test_evaluation import MONITORS, events_of, plain
from tests.watch.test_watcher import Clock, Target


@pytest.mark.parametrize("seed", range(3))
def test_the_alerts_are_those_of_one_topic_in_the_order_of_time(tmp_path: Path, seed: int) -> None:
    """Given events in three topics, one of them published much later, then the alerts are those of sorted events."""
    chance = random.Random(seed)
    events = list({one.header.timestamp: one for one in events_of(seed, 50)}.values())
    topics, names = MemoryTopics(), ["a", "b", "c"]
    parts: dict[str, list[Event]] = {name: [] for name in names}
    for one in events:
        parts[chance.choice(names)].append(one)
    for name in reversed(names):
        topics.topic(name).publish([Message(one.header.id, encode(one)) for one in parts[name]])
    (tmp_path / "m.json").write_text('{"monitors": []}')
    target = Target()
    watcher = Watcher(MONITORS, SqliteWatchStore(tmp_path / "w.sqlite"), {"": target}, Clock(400))
    watch = TopicWatch(watcher, topics, names, "watch", tmp_path / "m.json", print)
    engine = Engine(watch.hub, topics, None, "watch", concurrency=3, batch=7, ledger=NoLedger(), hooks=watch.hooks)
    engine.run(until_empty=True)
    watcher.tick()
    assert plain(target.alerts()) == plain(evaluate(MONITORS, events, until=400))


def test_a_topic_that_makes_no_progress_holds_the_others_back_for_a_time_only() -> None:
    now = [0.0]

    def monotonic() -> float:
        now[0] += 20.0
        return now[0]

    merge = TopicMerge(["stuck", "live"], lambda name: 5, lambda: seconds(9), monotonic)
    handled: list[Event] = []
    merge.take("live", [run(2), run(1)], handled.extend)
    assert [one.header.context["run_id"] for one in handled] == ["run-1", "run-2"]
    assert now[0] >= merging.STALL_SECONDS


def test_a_topic_that_waits_lets_the_engine_stop(tmp_path: Path) -> None:
    """Given a backlog that another consumer holds, when the engine stops, then the waiting events stay in the topic."""
    topics = MemoryTopics()
    for name, hours in (("old", 1.0), ("new", 2.0)):
        one = run(hours)
        topics.topic(name).publish([Message(one.header.id, encode(one))])
    topics.topic("old").receive("watch", lease=3600)
    (tmp_path / "m.json").write_text('{"monitors": []}')
    target = Target()
    watcher = Watcher(MONITORS, SqliteWatchStore(tmp_path / "w.sqlite"), {"": target}, Clock(400))
    watch = TopicWatch(watcher, topics, ["old", "new"], "watch", tmp_path / "m.json", print)
    engine = Engine(watch.hub, topics, None, "watch", concurrency=2, ledger=NoLedger(), hooks=watch.hooks)
    timer = threading.Timer(1.0, engine.stop)
    timer.start()
    assert engine.run().dead == 0
    state = topics.topic("new").group_state("watch")
    assert state is not None
    assert state.pending == 1
    assert not watcher.evaluation.clock


class FailingStore(SqliteWatchStore):
    """A store whose first commits fail."""

    failures = 3

    def commit(self, *args: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise TopicError("the store is away")
        super().commit(*args)


@pytest.fixture
def sorted_events() -> list[Event]:
    return sorted(events_of(4, 120), key=lambda one: one.header.timestamp)


def watch_all(
    folder: Path, topics: Topics, store: SqliteWatchStore, lease: float = 30.0, name: str = "events"
) -> tuple[Any, list[str]]:
    (folder / "m.json").write_text('{"monitors": []}')
    said: list[str] = []
    target = Target()
    watcher = Watcher(MONITORS, store, {"": target}, Clock(400))
    watch = TopicWatch(watcher, topics, [name], "watch", folder / "m.json", said.append)
    engine = Engine(watch.hub, topics, None, "watch", concurrency=1, batch=7, ledger=NoLedger(), hooks=watch.hooks)
    watch.wait_for_leases(2 * lease)
    engine.run(until_empty=True)
    watcher.tick()
    return plain(target.alerts()), said


def test_events_that_a_dead_watcher_held_come_before_later_ones(tmp_path: Path, sorted_events: list[Event]) -> None:
    topics = MemoryTopics()
    topics.topic("events").publish([Message(one.header.id, encode(one)) for one in sorted_events])
    topics.topic("events").receive("watch", 60, lease=1.0)
    alerts, said = watch_all(tmp_path, topics, SqliteWatchStore(tmp_path / "w.sqlite"), lease=1.0)
    assert alerts == plain(evaluate(MONITORS, sorted_events, until=400))
    assert said == ["60 events are leased to a watcher that died; waiting until they come again"]


def test_events_keep_their_order_while_the_state_cannot_be_written(tmp_path: Path, sorted_events: list[Event]) -> None:
    topics = MemoryTopics()
    topics.topic("events").publish([Message(one.header.id, encode(one)) for one in sorted_events])
    alerts, said = watch_all(tmp_path, topics, FailingStore(tmp_path / "w.sqlite"))
    assert alerts == plain(evaluate(MONITORS, sorted_events, until=400))
    assert said == ["the store is away; the events wait", "the state is written again"]
