"""``balog consume`` and engines on real servers when things go wrong.

Killed, asleep beyond a lease, the server dead for a while, everything sent twice, events as large as they come.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from balog.common.errors import TopicError
from balog.consumers import Consumer, ConsumerHub, Engine
from balog.consumers.kafka import KafkaEngine
from balog.consumers.ledgers.factory import open_ledger
from balog.event import MAX_EVENT_BYTES, Event, encode
from balog.topics import Message, Topic, open_topics
from tests.services.servers.elasticmq import SqsServer, set_credentials
from tests.services.servers.kafka import KafkaServer
from tests.waiting import wait_for

pytestmark = pytest.mark.service

ROUNDS = 2
PREFETCH = ["--prefetch", "100"]
EVENTS = 200
HANDLERS = """
import os, time
from balog.consumers import consumer_config

file = os.open("handled", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@consumer_config(topic="{topic}")
def note(settings, event):
    time.sleep(0.002)
    os.write(file, (event.header.id + "\\n").encode())
"""


@pytest.fixture(params=["local", "sqs", "kafka"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return f"local:{tmp_path / 'topics'}"
    if request.param == "sqs":
        sqs: SqsServer = request.getfixturevalue("elasticmq")
        return sqs.url
    # A member that was killed keeps its partitions until its session is over.
    server: KafkaServer = request.getfixturevalue("kafka")
    return server.url(partitions=2, **{"session.timeout.ms": 3000, "heartbeat.interval.ms": 500})


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_credentials(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """What a test started; nothing of it outlives the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait(20)


@pytest.fixture
def name() -> str:
    return f"t{uuid4().hex[:12]}"


def publish(topic: Topic, events: list[Event]) -> set[str]:
    topic.publish([Message(event.header.id, encode(event)) for event in events])
    return {event.header.id for event in events}


def some_events(number: int) -> list[Event]:
    return [Event.new("tests", {"cls_type": "x", "n": n}) for n in range(number)]


class Command:
    """``balog consume`` on a topic, which notes what its handler handled."""

    def __init__(
        self, folder: Path, url: str, topic: str, processes: list[subprocess.Popen[str]], team: str = HANDLERS
    ) -> None:
        self._processes = processes
        (folder / "team.py").write_text(team.format(topic=topic))
        self.folder = folder
        self.words = [sys.executable, "-m", "balog", "consume", "team", "--topics", url, "--lease", "2"]

    def start(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        with (self.folder / "errors").open("a") as errors:
            process = subprocess.Popen(
                [*self.words, *options], cwd=self.folder, stderr=errors, text=True, env={**os.environ, **environment}
            )
        self._processes.append(process)
        return process

    def finish(self) -> None:
        process = self.start("--until-empty")
        assert process.wait(180) == 0, (self.folder / "errors").read_text()

    def handled(self) -> Counter[str]:
        path = self.folder / "handled"
        return Counter(path.read_text().split()) if path.exists() else Counter()


@pytest.mark.parametrize("url", ["sqs", "kafka"], indirect=True)  # local topics: tests/consumers/test_kill.py
def test_killed_at_random_moments_every_event_is_handled(
    url: str, name: str, tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    command = Command(tmp_path, url, name, processes)
    with open_topics(url) as home:
        wanted = publish(home.topic(name), some_events(EVENTS))
        for number in range(ROUNDS):
            before = command.handled().total()
            process = command.start()
            wait_for(lambda old=before: command.handled().total() > old)
            time.sleep(random.uniform(0, 0.4))
            process.kill()
            assert process.wait() == -signal.SIGKILL, (tmp_path / "errors").read_text()
            if number == 0:
                wanted |= publish(home.topic(name), some_events(50))
        command.finish()
        handled = command.handled()
        assert set(handled) == wanted
        # A kill may repeat what was handled within the second for which acks wait for company, and no more.
        assert sum(count - 1 for count in handled.values()) <= ROUNDS * 1000
        wait_for(lambda: home.topic(name).group_state("balog").pending == 0)
        assert home.topic(name).group_state("balog").dead == 0


CALLS = """
import os, time
from balog.consumers import consumer_config

file = os.open("calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(what, event):
    os.write(file, f"{{what}} {{event.payload['n']}} {{os.getpid()}} {{time.monotonic()}}\\n".encode())

@consumer_config(topic="{topic}")
def handle(settings, event):
    note("begins", event)
    while event.payload["n"] == 3 and os.environ.get("WAITS") and not os.path.exists("go"):
        time.sleep(0.01)
    time.sleep(float(os.environ["SECONDS"]))
    note("ends", event)
"""


class Calls:
    """The calls that handlers noted: when each began and ended, and in which process."""

    def __init__(self, folder: Path) -> None:
        path = folder / "calls"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        self.begun = [(int(n), int(pid), float(at)) for what, n, pid, at in lines if what == "begins"]
        self.ended = [(int(n), int(pid), float(at)) for what, n, pid, at in lines if what == "ends"]

    @property
    def done(self) -> set[int]:
        return {n for n, _, _ in self.ended}

    @property
    def repeated(self) -> list[tuple[int, int, float]]:
        """Calls that began after another call for the same event had succeeded."""
        return [call for call in self.begun if any(n == call[0] and at < call[2] for n, _, at in self.ended)]

    def at_once(self, pid: int) -> int:
        """Give the largest number of calls that ran at the same time in a process."""
        steps = [(at, 1) for _, owner, at in self.begun if owner == pid]
        steps += [(at, -1) for _, owner, at in self.ended if owner == pid]
        running = most = 0
        for _, step in sorted(steps):
            running += step
            most = max(most, running)
        return most


def stop_between_transactions(process: "subprocess.Popen[str]", folder: Path) -> None:
    """Stop a process while it holds no lock of a SQLite file, for which the others would wait until it goes on."""
    while True:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        try:
            for path in folder.rglob("*.sqlite"):
                with closing(sqlite3.connect(path, timeout=0)) as connection:
                    connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
            time.sleep(random.uniform(0, 0.05))


def test_a_stopped_worker_does_not_repeat_what_another_one_has_handled_since(
    url: str, name: str, tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    """Given a worker that is stopped beyond its lease with prefetched events, it drops them when it goes on."""
    command = Command(tmp_path, url, name, processes, CALLS)
    with open_topics(url) as home:
        topic = home.topic(name)
        publish(topic, some_events(16))
        stopped = command.start(*PREFETCH, WAITS="1", SECONDS="0.05")
        wait_for(lambda: 3 in [n for n, _, _ in Calls(tmp_path).begun])
        wait_for(lambda: topic.group_state("balog").pending == 16 - len(Calls(tmp_path).done))  # the others are acked
        stop_between_transactions(stopped, tmp_path)
        (tmp_path / "go").touch()
        other = command.start(SECONDS="0.05")
        wait_for(lambda: Calls(tmp_path).done == set(range(16)))
        stopped.send_signal(signal.SIGCONT)
        wait_for(lambda: any(n == 3 and pid == stopped.pid for n, pid, _ in Calls(tmp_path).ended))
        wait_for(lambda: topic.group_state("balog").pending == 0)
        time.sleep(1)
        for process in (stopped, other):
            process.terminate()
            assert process.wait(60) == 0, (tmp_path / "errors").read_text()
        assert topic.group_state("balog").dead == 0
    assert Calls(tmp_path).repeated == []


@pytest.mark.parametrize("url", ["kafka"], indirect=True)
def test_a_member_that_joins_gets_the_events_that_have_not_begun_and_runs_as_many_as_it_may(
    url: str, name: str, tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    command = Command(tmp_path, url, name, processes, CALLS)
    events = some_events(24)
    with open_topics(url) as home:
        home.topic(name).publish([Message(one.header.id, encode(one), f"k{n}") for n, one in enumerate(events)])
        first = command.start(*PREFETCH, SECONDS="1")
        wait_for(lambda: len(Calls(tmp_path).done) >= 1)
        second = command.start("--concurrency", "4", SECONDS="1")
        wait_for(lambda: Calls(tmp_path).done == set(range(24)))
        for process in (first, second):
            process.terminate()
            assert process.wait(60) == 0, (tmp_path / "errors").read_text()
    calls = Calls(tmp_path)
    assert calls.repeated == []
    assert calls.at_once(second.pid) == 4


def run(topic: str, url: str, handle: Callable[[Event], object], ledger: Any = None, **options: Any) -> Any:
    hub = ConsumerHub()
    hub.add(Consumer(lambda settings, event: handle(event), topic, name="c"))
    with open_topics(url) as home:
        return Engine(hub, home, ledger=ledger, **options).run(until_empty=True)


@pytest.mark.parametrize("url", ["sqs", "kafka"], indirect=True)
def test_events_that_come_twice_and_out_of_order_succeed_once(url: str, name: str, tmp_path: Path) -> None:
    events = some_events(60)
    handled: Counter[str] = Counter()
    ledger = open_ledger(f"sqlite:{tmp_path / 'ledger'}")

    def handle(event: Event) -> None:
        time.sleep(0.001)
        handled[event.header.id] += 1
        if event.payload["n"] % 10 == 0 and handled[event.header.id] == 1:
            raise ValueError("the first time")

    with open_topics(url) as home:
        for _ in range(2):  # what came again at once, and what comes again long after
            for copies in (events, random.sample(events, len(events))):
                publish(home.topic(name), copies)
            counts = run(name, url, handle, ledger, concurrency=4, pollers=2, first_delay=0.1)
            assert counts.succeeded + counts.duplicates == 2 * len(events)
            assert home.topic(name).group_state("balog").dead == 0
    ledger.close()
    assert set(handled) == {event.header.id for event in events}
    succeeded = [count - (event.payload["n"] % 10 == 0) for event in events for count in [handled[event.header.id]]]
    assert set(succeeded) == {1}


def test_an_engine_goes_on_when_kafka_died_and_is_back(name: str, kafka: KafkaServer) -> None:
    events = some_events(100)
    handled: Counter[str] = Counter()
    halfway = threading.Event()

    def handle(settings: object, event: Event) -> None:
        handled[event.header.id] += 1
        time.sleep(0.01)
        if len(handled) >= 20:
            halfway.set()

    hub = ConsumerHub()
    hub.add(Consumer(handle, name, name="c"))
    with open_topics(kafka.url(partitions=1)) as home:
        wanted = publish(home.topic(name), events[:50])
        engine = KafkaEngine(hub, kafka.servers, lease=5.0)
        thread = threading.Thread(target=engine.run)
        thread.start()
        try:
            assert halfway.wait(60)
            kafka.stop()
            time.sleep(1)
            kafka.up()
            wanted |= publish(home.topic(name), events[50:])
            wait_for(lambda: set(handled) == wanted)
            wait_for(lambda: home.topic(name).group_state("balog").pending == 0)
        finally:
            engine.stop()
            thread.join(60)
        assert not thread.is_alive()
        assert home.topic(name).group_state("balog").dead == 0
    assert set(handled.values()) == {1}


def test_an_event_in_two_topics_is_handled_in_each(url: str, name: str, tmp_path: Path) -> None:
    """Given topics that share some of their events, then each topic's handler succeeds once for each of its own."""
    events = some_events(60)
    ledger = open_ledger(f"sqlite:{tmp_path / 'ledger'}")
    for topic in (name, f"{name}-b"):
        some = random.sample(events, 40)
        succeeded: Counter[str] = Counter()
        failed: set[str] = set()

        def handle(event: Event, succeeded: Counter[str] = succeeded, failed: set[str] = failed) -> None:
            if event.payload["n"] % 10 == 0 and event.header.id not in failed:
                failed.add(event.header.id)
                raise ValueError("the first time")
            succeeded[event.header.id] += 1

        with open_topics(url) as home:
            publish(home.topic(topic), some)
        counts = run(topic, url, handle, ledger, first_delay=0.1)
        assert (counts.succeeded, counts.duplicates, counts.dead) == (40, 0, 0)
        assert succeeded == Counter(event.header.id for event in some)
    ledger.close()


def event_of(size: int) -> Event:
    """Make an event that is encoded in exactly so many bytes."""
    event = Event.new("tests", {"text": ""})
    return Event.new("tests", {"text": "x" * (size - len(encode(event)))})


@pytest.mark.parametrize("url", ["local", "kafka"], indirect=True)  # a queue takes less without a claim check
def test_an_event_of_a_megabyte_arrives_whole_where_a_message_may_be_so_large(url: str, name: str) -> None:
    event = event_of(1_000_000)
    seen: list[Event] = []
    with open_topics(url) as home:
        assert home.topic(name).publish([Message(event.header.id, encode(event))]) == 1
    counts = run(name, url, seen.append)
    assert (counts.succeeded, counts.dead) == (1, 0)
    assert [one.payload for one in seen] == [event.payload]


def test_what_is_over_the_limit_of_an_event_is_refused_in_one_line_or_dead_lettered(
    url: str, name: str, tmp_path: Path
) -> None:
    """It must neither come again for ever nor hold up what is behind it."""
    text = random.randbytes(10_000_000).hex()  # which no compression makes small enough to slip through
    body = encode(Event.new("tests", {"text": text}))
    assert len(body) > MAX_EVENT_BYTES
    small = Event.new("tests", {})
    seen: list[str] = []
    with open_topics(url) as home:
        refused = False
        if url.startswith("local:"):  # which has no limit of its own
            home.topic(name).publish([Message("huge", body)])
        else:
            refused = True
            with pytest.raises(TopicError) as told:
                home.topic(name).publish([Message("huge", body)])
            assert not told.value.retryable
            assert "\n" not in str(told.value)
            assert len(str(told.value)) < 400
        publish(home.topic(name), [small])
        counts = run(name, url, lambda event: seen.append(event.header.id))
        assert seen == [small.header.id]
        assert counts.succeeded == 1
        letters = home.topic(name).dead_letters("balog")
        assert len(letters) == counts.dead == (0 if refused else 1)
        assert all("limit" in letter.reason for letter in letters)
        assert home.topic(name).group_state("balog").pending == 0
