"""Several watchers with their state in Debian's Redis: one answer, whoever leads, dies, sleeps or restarts."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError, TopicError
from balog.event import decode, encode
from balog.topics import Message, open_topics
from balog.watch.state.redis import LeadershipLost, RedisWatchStore, open_redis_store
from balog.watch.watcher import Watcher
from tests.services.servers.redis import PASSWORD, RedisServer, running_redis
from tests.waiting import wait_for
from tests.watch.events import evaluate, run
from tests.watch.test_evaluation import MONITORS, events_of, plain
from tests.watch.test_watcher import Clock, Killed, Steps, Target, batches

pytestmark = pytest.mark.service

EVENTS = events_of(11, 21)
ALERTS = [json.loads(json.dumps(one)) for one in plain(evaluate(MONITORS, EVENTS, until=400))]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_PASSWORD", PASSWORD)
        yield server


def url_of(server: RedisServer) -> str:
    return f"redis://127.0.0.1:{server.port}/0?password.env=STATE_PASSWORD"


class SteppingStore(RedisWatchStore):
    """A store that is killed before and after its writes."""

    step: Callable[[], None] = staticmethod(lambda: None)

    def _write(self, commands: Any) -> None:
        self.step()
        super()._write(commands)
        self.step()


def opened(server: RedisServer, group: str) -> SteppingStore:
    store = open_redis_store(url_of(server), group, 30.0)
    store.__class__ = SteppingStore
    return store  # type: ignore[return-value]


def expire(store: RedisWatchStore) -> None:
    """Let the lease end, as after its time."""
    store._client.delete(store._key("lease"))


def test_a_leader_that_is_killed_before_any_step_loses_and_doubles_no_alert(shared: RedisServer) -> None:
    def live(last: int) -> tuple[Target, int]:
        target, pending, steps = Target(), batches(EVENTS), Steps(last)
        while True:
            store = opened(shared, f"killed {last}")
            expire(store)
            assert store.claim()
            store.step = steps  # type: ignore[method-assign]
            try:
                watcher = Watcher(MONITORS, store, {"": target.using(steps)}, Clock(400))
                while pending:
                    watcher.handle(pending[0])
                    steps()
                    pending.pop(0)
                watcher.tick()
                watcher.flush()
                return target, steps.count
            except Killed:
                steps.last = -1
            finally:
                store.close()

    target, count = live(-1)
    assert target.alerts() == ALERTS
    assert count > 15
    for last in range(1, count + 1):
        assert live(last)[0].alerts() == ALERTS, last


@settings(max_examples=8, deadline=None, derandomize=True)
@given(turns=st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=4, max_size=12))
def test_leaders_that_wake_up_after_their_lease_change_nothing(
    shared: RedisServer, turns: list[tuple[int, bool]]
) -> None:
    """Three instances take turns; those that led before try to handle events and to tick when they wake up."""
    pending, target = batches(EVENTS), Target()
    with ExitStack() as parts:
        stores = [opened(shared, f"turns {time.monotonic_ns()}") for _ in range(3)]
        stores = [stores[0], *(RedisWatchStore(one._place, "", 30.0) for one in stores[1:])]
        for store in stores:
            store._keys = stores[0]._keys
            parts.callback(store.close)
        sleeping: dict[int, Watcher] = {}
        for number, wakes in [*turns, (0, True)]:
            expire(stores[0])
            assert stores[number].claim()
            assert not any(store.claim() for store in stores)
            sleeping.pop(number, None)
            watcher = Watcher(MONITORS, stores[number], {"": target.using(lambda: None)}, Clock(400))
            if wakes:
                for other in sleeping.values():
                    for batch in batches(EVENTS):
                        with pytest.raises(LeadershipLost):
                            other.handle(batch if batch in pending else [run(399)])
                    with pytest.raises(LeadershipLost):
                        other.tick()
            assert [stores[other].renew() for other in sleeping] == [False] * len(sleeping)
            assert stores[number].renew()
            if pending:
                watcher.handle(pending.pop(0))
            sleeping[number] = watcher
        for batch in pending:
            watcher.handle(batch)
        watcher.tick()
        watcher.flush()
        assert not stores[0].unsent()
    assert target.alerts() == ALERTS


def test_a_commit_without_an_answer_is_written_once(shared: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import redis

    store = opened(shared, "ambiguous")
    assert store.claim()
    target = Target()
    watcher = Watcher(MONITORS, store, {"": target}, Clock(400))
    execute, lost = redis.client.Pipeline.execute, iter([True, False] * 100)

    def losing(self: Any, *args: Any) -> Any:
        found = execute(self, *args)
        if next(lost):
            raise redis.WatchError("a ConnectionError occurred while watching one or more keys")
        return found

    monkeypatch.setattr(redis.client.Pipeline, "execute", losing)
    for batch in batches(EVENTS):
        watcher.handle(batch)
        watcher.handle(batch)
    watcher.tick()
    watcher.flush()
    store.close()
    assert target.alerts() == ALERTS


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis://one/x", "for a state, where DB is the number of a database"),
        ("redis://user:hunter2@one/0", "a state's URL has no user and no password in it"),
        ("redis://one/0?window=5", "a state in redis has no option 'window'"),
        ("redis://one/0?password.env=NOT_SET", "NOT_SET is not set"),
    ],
)
def test_a_wrong_url_is_one_line_without_the_password(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason.replace("'", ".")) as caught:
        open_redis_store(url, "g", 30.0)
    assert "hunter2" not in str(caught.value)


# -- real processes ----------------------------------------------------------------------------------------------------

MONITORS_FILE = "monitors: [{name: late, pipeline: 'tap-*', freshness: {every: 1h}}]"


class Instances:
    """Processes ``balog watch`` with one state and one topic of alerts."""

    def __init__(self, folder: Path, state: str) -> None:
        self.url = f"local:{folder}/topics"
        sinks = {"sinks": [{"type": "topic", "url": self.url, "topic": "alerts"}]}
        (folder / "sinks.json").write_text(json.dumps(sinks))
        (folder / "monitors.yaml").write_text(MONITORS_FILE)
        self._folder = folder
        self._command = [
            sys.executable, "-m", "balog", "watch", str(folder / "monitors.yaml"), "--topics", self.url,
            "--topic", "events", "--sinks", str(folder / "sinks.json"), "--state", state, "--lease", "1",
        ]  # fmt: skip
        self._running: list[subprocess.Popen[bytes]] = []
        self._now = (datetime.now(timezone.utc) - datetime(2026, 11, 23, 6, tzinfo=timezone.utc)) / timedelta(hours=1)

    def start(self) -> subprocess.Popen[bytes]:
        with (self._folder / f"log{len(self._running)}").open("wb") as log:
            self._running.append(subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=log))
        return self._running[-1]

    def said(self, number: int) -> str:
        return (self._folder / f"log{number}").read_text()

    def publish(self, pipeline: str, *hours_ago: float) -> None:
        made = [run(self._now - hours, pipeline, run_id=f"{pipeline} {hours}") for hours in hours_ago]
        with open_topics(self.url) as topics:
            topics.topic("events").publish([Message(one.header.id, encode(one)) for one in made])

    def alerts(self, pipeline: str) -> list[tuple[str, int]]:
        with open_topics(self.url) as topics:
            topic = topics.topic("alerts")
            stored = [decode(message.body).payload for message in topic.peek(1000)] if topic.exists() else []
        return [(one["state"], one["sequence"]) for one in stored if one["labels"]["pipeline"] == pipeline]

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


@pytest.fixture
def instances(tmp_path: Path, shared: RedisServer) -> Iterator[Instances]:
    made = Instances(tmp_path, url_of(shared))
    yield made
    made.close()


ONCE = [("firing", 1), ("resolved", 2)]


def test_standbys_take_over_from_a_killed_and_from_a_paused_leader(instances: Instances, shared: RedisServer) -> None:
    """Given three instances, when the first is killed and the second paused past its lease, then no alert is lost."""
    import redis

    with redis.Redis(port=shared.port, password=PASSWORD) as client:
        client.flushall()
    first = instances.start()
    wait_for(lambda: "this instance leads" in instances.said(0))
    instances.publish("tap-a", 9, 0)
    wait_for(lambda: instances.alerts("tap-a") == ONCE)
    second = instances.start()
    wait_for(lambda: "waits to take over" in instances.said(1))
    instances.publish("tap-b", 9, 0)
    os.kill(first.pid, signal.SIGKILL)
    wait_for(lambda: instances.alerts("tap-b") == ONCE)
    assert "this instance leads" in instances.said(1)

    os.kill(second.pid, signal.SIGSTOP)
    instances.start()
    instances.publish("tap-c", 9, 0)
    wait_for(lambda: instances.alerts("tap-c") == ONCE)
    assert "this instance leads" in instances.said(2)
    os.kill(second.pid, signal.SIGCONT)
    wait_for(lambda: "this one has stopped" in instances.said(1))
    instances.publish("tap-d", 9, 0)
    wait_for(lambda: instances.alerts("tap-d") == ONCE)
    for pipeline in ("tap-a", "tap-b", "tap-c"):
        assert instances.alerts(pipeline) == ONCE
    wait_for(lambda: instances.said(1).endswith("waits to take over\n"))
    second.terminate()
    assert second.wait() == 0


def test_redis_restarts_with_and_without_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_PASSWORD", PASSWORD)
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    instances = Instances(tmp_path, url_of(server))
    try:
        leader = instances.start()
        wait_for(lambda: "Connection refused" in instances.said(0))
        assert len(instances.said(0).splitlines()) == 1  # it tries again without a word
        server.start()
        instances.publish("tap-a", 9, 0)
        wait_for(lambda: instances.alerts("tap-a") == ONCE)

        server.stop()
        instances.publish("tap-b", 9, 0)
        server.start()
        wait_for(lambda: instances.alerts("tap-b") == ONCE)
        assert instances.alerts("tap-a") == ONCE

        server.stop()
        shutil.rmtree(tmp_path / "redis" / "appendonlydir")
        server.start()
        wait_for(lambda: instances.said(0).count("this instance leads") == 2)
        instances.publish("tap-c", 9, 0)  # the state begins anew
        wait_for(lambda: instances.alerts("tap-c") == ONCE)
        leader.terminate()
        assert leader.wait() == 0
    finally:
        instances.close()
        server.stop()


def test_a_dead_redis_is_a_retryable_error_and_a_wrong_password_is_not(
    shared: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = open_redis_store("redis://127.0.0.1:1/0", "g", 30.0)
    with pytest.raises(TopicError, match=r"state redis 127\.0\.0\.1:1/0: .*refused") as caught:
        dead.claim()
    assert caught.value.retryable
    monkeypatch.setenv("WRONG_PASSWORD", "hunter2")
    wrong = open_redis_store(f"redis://127.0.0.1:{shared.port}/0?password.env=WRONG_PASSWORD", "g", 30.0)
    with pytest.raises(TopicError) as caught:
        wrong.claim()
    wrong.close()
    assert (caught.value.retryable, "hunter2" in str(caught.value)) == (False, False)
