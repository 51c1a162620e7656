"""The sink ``topic`` and a logger's output, into homes of topics that are real servers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from balog.delivery.attempt import attempt
from balog.event import Event, decode, encode
from balog.sinks import Delivery, SinkError
from balog.sinks.topic import TopicSinkConfig
from balog.topics import Message, Received, open_topics
from tests.programs import run_program
from tests.services.servers.elasticmq import SqsServer, set_credentials
from tests.services.servers.kafka import KafkaServer
from tests.services.servers.process import free_port

pytestmark = pytest.mark.service

LOGGING = """
from balog import get_logger
for number in range(30):
    get_logger("shop").info("sold", n=number)
print("logged", flush=True)
"""


@pytest.fixture(scope="session")
def sqs(elasticmq: SqsServer) -> SqsServer:
    return elasticmq


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)


def received(url: str, name: str, count: int) -> list[Received]:
    """Take so many messages, which the caller knows to be there."""
    with open_topics(url) as home:
        topic = home.topic(name)
        found: list[Received] = []
        while len(found) < count and (more := topic.receive("reader", 10, 5.0)):
            found += more
            topic.ack("reader", more)
        return found + topic.receive("reader", 10, 0.0)


@pytest.fixture(params=["sqs", "sqs fifo", "kafka"])
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The URL of a server, and the name of a new topic there."""
    kind, _, form = request.param.partition(" ")
    url = request.getfixturevalue("sqs").url if kind == "sqs" else request.getfixturevalue("kafka").url(partitions=3)
    return url, f"events-{uuid4().hex}{'.fifo' if form else ''}"


def test_the_sink_publishes_and_the_run_is_the_key(place: tuple[str, str]) -> None:
    """Given a queue that keeps an order, or three partitions, then the events of each run keep their order."""
    url, name = place
    events = [Event.new("a.b", {"n": number}, context={"run_id": f"LGrun{number % 5}"}) for number in range(100)]
    sink = TopicSinkConfig(url=url, topic=name).build()
    sink.open()
    sink.probe()
    sink.write([Delivery(event, encode(event)) for event in events])
    sink.close()
    found = received(url, name, 100)
    assert {message.id: message.body for message in found} == {event.header.id: encode(event) for event in events}
    for run_number in range(5 if name.endswith(".fifo") or url.startswith("kafka") else 0):
        numbers = [decode(message.body).payload["n"] for message in found if message.key == f"LGrun{run_number}"]
        assert numbers == list(range(run_number, 100, 5))


def test_what_a_program_logs_is_there_when_it_has_ended(place: tuple[str, str]) -> None:
    url, name = place
    done = run(LOGGING, BALOG_OUTPUT=f"{url}&topic={name}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "logged\n", "")
    numbers = [decode(message.body).payload["fields"]["n"] for message in received(url, name, 30)]
    assert sorted(numbers) == list(range(30))


class TestTrouble:
    def test_a_server_that_goes_away_is_trouble_that_passes(self, sqs: SqsServer) -> None:
        sink = TopicSinkConfig(url=sqs.url, topic=f"events-{uuid4().hex}").build()
        event = Event.new("a.b", {})
        sqs.stop()
        try:
            with pytest.raises(SinkError, match=str(sqs.port)) as caught:
                sink.write([Delivery(event, encode(event))])
            assert caught.value.retryable
            with pytest.raises(SinkError, match=str(sqs.port)):
                sink.probe()
        finally:
            sqs.up()
        sink.write([Delivery(event, encode(event))])
        sink.close()

    def test_a_cluster_that_is_not_there_holds_no_program_up(self) -> None:
        pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
        done = run(LOGGING, BALOG_OUTPUT=f"kafka:127.0.0.1:{free_port()}?topic=logs")
        assert (done.returncode, done.stdout) == (0, "logged\n")
        assert "30 events were not delivered" in done.stderr


@pytest.mark.parametrize(("home", "size"), [("sqs", 3_000_000), ("kafka", 50_000_000)])
def test_an_event_that_is_too_large_is_refused_alone(home: str, size: int, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("sqs").url if home == "sqs" else request.getfixturevalue("kafka").url(partitions=1)
    name = f"events-{uuid4().hex}"
    events = [Event.new("a.b", {"text": os.urandom(length // 2).hex()}) for length in (10, size, 20)]
    sink = TopicSinkConfig(url=url, topic=name).build()
    outcome = attempt(sink.write, [Delivery(event, encode(event)) for event in events])
    sink.close()
    assert (list(outcome.dead), outcome.left) == ([1], [])
    assert {message.id for message in received(url, name, 2)} == {events[0].header.id, events[2].header.id}


class TestForward:
    """From each home into another one, as a process."""

    def test_from_kafka(self, kafka: KafkaServer, tmp_path: Path) -> None:
        self.forward(kafka.url(partitions=3), f"events-{uuid4().hex}", tmp_path)

    def test_from_sqs(self, sqs: SqsServer, tmp_path: Path) -> None:
        self.forward(sqs.url, f"events-{uuid4().hex}", tmp_path)

    def forward(self, url: str, name: str, folder: Path) -> None:
        events = [Event.new("a.b", {"n": number}) for number in range(300)]
        with open_topics(url) as home:
            home.topic(name).publish([Message(event.header.id, encode(event)) for event in events])
        copy = {"type": "topic", "url": f"local:{folder}/copy", "topic": "events"}
        loud = {**copy, "topic": "loud", "where": "payload.n >= 290"}
        (folder / "broker.json").write_text(json.dumps({"sinks": [copy, loud]}))
        ledger = f"sqlite:{folder}/ledger.sqlite"
        own = ("--topics", url, "--topic", name, "--config", "broker.json", "--ledger", ledger)
        command = [sys.executable, "-m", "balog", "forward", *own, "--until-empty"]
        run_program(*command, cwd=folder)
        assert {message.id for message in received(f"local:{folder}/copy", "events", 300)} == {
            event.header.id for event in events
        }
        assert len(received(f"local:{folder}/copy", "loud", 10)) == 10
        again = run_program(*command, cwd=folder)
        assert f"topic local:{folder}/copy#events: 0 delivered" in again.stderr


def run(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return run_program(sys.executable, "-c", code, env={**os.environ, **environment}, code=None)
