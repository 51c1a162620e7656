"""``balog forward``: what arrives, what stays, and how it ends."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from balog.consumers.ledgers.factory import default_ledger
from balog.consumers.ledgers.ledger import Ledger
from balog.event import Event, decode, encode
from balog.log import configuration
from balog.topics import Message, Topic
from balog.topics.local import LocalTopics
from tests.programs import call_balog
from tests.stand_ins.http_server import Answer, HttpStandIn, Request
from tests.waiting import wait_for

QUICK = {"first": 0.02, "longest": 0.1}


class Place:
    """A topic, a webhook, and the command between them."""

    def __init__(self, root: Path, home: LocalTopics, server: HttpStandIn) -> None:
        self.root, self.home, self.server = root, home, server
        self.topic: Topic = home.topic("events")
        self.ids: list[str] = []

    def publish(self, *payloads: dict[str, Any], **options: Any) -> list[str]:
        events = [Event.new("tests", payload, **options) for payload in payloads]
        self.topic.publish([Message(event.header.id, encode(event)) for event in events])
        ids = [event.header.id for event in events]
        self.ids += ids
        return ids

    def hook(self, path: str = "hook", **options: Any) -> dict[str, Any]:
        return {"type": "webhook", "url": f"{self.server.url}/{path}", "retry": QUICK, **options}

    def copy(self, topic: str = "copy", **options: Any) -> dict[str, Any]:
        return {"type": "topic", "url": f"local:{self.root}/copies", "topic": topic, "retry": QUICK, **options}

    def command(self, *sinks: dict[str, Any], arguments: tuple[str, ...] = (), **config: Any) -> list[str]:
        (self.root / "broker.json").write_text(json.dumps({"sinks": sinks, **config}))
        own = ("--topics", f"local:{self.root}/topics", "--topic", "events", "--config", "broker.json")
        return [sys.executable, "-m", "balog", "forward", *own, *arguments]

    def run(self, *sinks: dict[str, Any], **config: Any) -> "subprocess.CompletedProcess[str]":
        """Call the command in this process until the topic is empty."""
        arguments = ("--until-empty", *config.pop("arguments", ()))
        command = self.command(*sinks, arguments=arguments, **config)[3:]
        before = configuration.state.recorder
        try:
            return call_balog(*command)
        finally:
            configuration.state.swap(before)

    def start(self, *sinks: dict[str, Any], **config: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen(self.command(*sinks, **config), cwd=self.root, stderr=subprocess.PIPE, text=True)

    def posted(self, path: str = "hook") -> list[str]:
        """Give the ids of the events that the server took."""
        return [name for request in self.server.requests if request.path == f"/{path}" for name in ids_of(request)]

    def copied(self, topic: str = "copy") -> list[str]:
        with LocalTopics(self.root / "copies") as home:
            copy = home.topic(topic)
            if not copy.exists():
                return []
            return [message.id for message in copy.peek(100_000)]

    def ledger(self) -> Ledger:
        return default_ledger(f"local:{self.root}/topics", "forward")

    def pending(self) -> int:
        return self.topic.group_state("forward").pending


def ids_of(request: Request) -> list[str]:
    found = json.loads(request.body)
    return [event["header"]["id"] for event in (found if isinstance(found, list) else [found])]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with LocalTopics(tmp_path / "topics") as home, HttpStandIn() as server:
        yield Place(tmp_path, home, server)


def numbers(count: int) -> list[dict[str, Any]]:
    return [{"n": number} for number in range(count)]


class TestForwarding:
    def test_each_sink_gets_what_its_where_lets_through_and_the_rest_is_acked_too(self, place: Place) -> None:
        quiet = place.publish(*numbers(3))
        loud = place.publish(*numbers(2), level="ERROR")
        place.publish({"n": 9}, level="DEBUG")
        done = place.run(
            place.hook(where="level = 'ERROR'"), place.copy(where="level >= 'INFO'"), place.copy("never", where="FALSE")
        )
        assert (done.returncode, done.stdout) == (0, "")
        assert place.posted() == loud
        assert place.copied() == [*quiet, *loud]
        assert place.copied("never") == []
        assert place.pending() == 0
        assert done.stderr.splitlines() == [
            f"balog forward: webhook 127.0.0.1:{place.server.port}: 2 delivered, 0 refused, 0 retries",
            f"balog forward: topic local:{place.root}/copies#copy: 5 delivered, 0 refused, 0 retries",
            f"balog forward: topic local:{place.root}/copies#never: 0 delivered, 0 refused, 0 retries",
        ]


class TestTrouble:
    def test_a_sink_that_is_down_holds_up_no_other_and_gets_all_when_it_is_back(self, place: Place) -> None:
        place.publish(*numbers(300))
        place.server.stop()
        with place.start(place.hook(), place.copy()) as process:
            wait_for(lambda: len(place.copied()) == 300)
            assert place.pending() == 300
            place.server.start()
            wait_for(lambda: len(set(place.posted())) == 300)
            wait_for(lambda: place.pending() == 0)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
            lines = process.stderr.read().splitlines()  # type: ignore[union-attr]
        assert "cannot connect: Connection refused; trying again, its events stay in the topic" in lines[0]
        assert lines[1].endswith("takes events again")
        assert len(lines) == 4
        assert sorted(place.posted()) == sorted(place.ids)

    def test_killed_in_the_middle_it_loses_nothing(self, place: Place) -> None:
        place.publish(*numbers(400))
        sinks = (place.hook(batch={"events": 20, "age": 0.01}), place.copy(batch={"events": 30, "age": 0.01}))
        for count in (50, 150, 250):
            with place.start(*sinks, arguments=("--lease", "1")) as process:
                wait_for(lambda count=count: len(place.posted()) >= count)
                process.kill()
        done = place.run(*sinks, arguments=("--lease", "1"))
        assert done.returncode == 0, done.stderr
        assert set(place.posted()) == set(place.ids)
        assert sorted(place.copied()) == sorted(place.ids)
        assert place.pending() == 0
        assert max(Counter(place.posted()).values()) <= 4

    def test_killed_while_one_sink_is_down_it_sends_the_others_nothing_again(self, place: Place) -> None:
        place.publish(*numbers(300))
        hook = f"events/webhook 127.0.0.1:{place.server.port}"
        with HttpStandIn() as other:
            other.stop()
            sinks = (place.hook(), {"type": "webhook", "url": f"{other.url}/hook", "retry": QUICK})
            with place.start(*sinks, arguments=("--lease", "1")) as process, closing(place.ledger()) as ledger:
                wait_for(lambda: all(hook in ledger.known("forward", [name]).get(name, {}) for name in place.ids))
                process.kill()
            other.start()
            done = place.run(*sinks, arguments=("--lease", "1"))
            assert done.returncode == 0, done.stderr
            assert sorted(name for request in other.requests for name in ids_of(request)) == sorted(place.ids)
        assert sorted(place.posted()) == sorted(place.ids)

    def test_dead_letters_are_events_where_logging_is_configured_and_retries_are_not(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BALOG_OUTPUT", f"file:{place.root}/log.jsonl")
        configuration.state.swap(None)
        place.publish(*numbers(10))
        bad = place.ids[3]
        place.server.will(*[Answer(503)] * 5)
        place.server.respond = lambda request: Answer(422 if bad in ids_of(request) else 200)
        done = place.run(place.hook())
        assert done.returncode == 1
        (failure,) = [decode(line) for line in (place.root / "log.jsonl").read_bytes().splitlines()]
        assert (failure.cls_type, failure.level) == ("consumer_failure", "ERROR")
        assert (failure.payload["event"], failure.payload["outcome"]) == (bad, "dead")

    def test_an_event_that_a_sink_refuses_is_a_dead_letter_and_stops_nothing(self, place: Place) -> None:
        place.publish(*numbers(20))
        bad = place.ids[7]
        place.server.respond = lambda request: Answer(422 if bad in ids_of(request) else 200, b"seven is no number")
        done = place.run(place.hook(), place.copy())
        assert done.returncode == 1
        assert sorted(set(place.posted()) - {bad}) == sorted(set(place.ids) - {bad})
        assert sorted(place.copied()) == sorted(place.ids)
        (letter,) = place.topic.dead_letters("forward")
        assert letter.id == bad
        assert letter.consumers == (f"webhook 127.0.0.1:{place.server.port}",)
        assert "422" in letter.reason
        assert "seven is no number" in letter.reason
        assert place.posted().count(bad) == 1
        assert place.pending() == 0


class TestStopping:
    def test_the_first_signal_finishes_what_is_in_hand_and_leaves_the_rest(self, place: Place) -> None:
        def respond(request: Request) -> Answer:
            time.sleep(0.05)
            return Answer()

        place.server.respond = respond
        place.publish(*numbers(100))
        sink = place.hook(batch={"events": 5, "age": 0.01})
        with place.start(sink) as process:
            wait_for(lambda: len(place.posted()) >= 3)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        posted = len(place.posted())
        assert posted < 100
        assert place.pending() == 100 - posted
        assert place.topic.group_state("forward").in_flight == 0
        place.server.respond = lambda request: Answer()
        assert place.run(sink).returncode == 0
        assert sorted(place.posted()) == sorted(place.ids)


class TestConfig:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--topics", "paper:a"), "no topics of kind 'paper'"),
            (("--topic", "../x"), "topic name '../x' can't be used"),
            (("--group", "a/b"), "group name 'a/b'"),
            (("--config", "none.json"), "none.json: "),
        ],
    )
    def test_wrong_use_is_said_before_a_sink_is_asked(
        self, place: Place, arguments: tuple[str, ...], says: str
    ) -> None:
        done = place.run(place.hook(), arguments=arguments)
        assert done.returncode == 2
        assert says in done.stderr
        assert place.server.requests == []
