"""The sink ``topic``, a logger's output and a broker's STATE, into homes of topics that are real servers."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from balog.event import Event, decode, encode
from balog.sinks import Delivery, SinkError, TopicSinkConfig
from balog.topics import Received, open_topics
from tests.services.servers.elasticmq import SqsServer, running_sqs, set_credentials

pytestmark = pytest.mark.service

LOGGING = """
from balog import get_logger
for number in range(30):
    get_logger("shop").info("sold", n=number)
print("logged", flush=True)
"""


@pytest.fixture(scope="module")
def sqs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqsServer]:
    with running_sqs(tmp_path_factory.mktemp("elasticmq")) as server:
        yield server


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)


@pytest.fixture(params=["", ".fifo"], ids=["standard", "fifo"])
def name(request: pytest.FixtureRequest) -> str:
    return f"events-{uuid4().hex}{request.param}"


def received(url: str, name: str, count: int) -> list[Received]:
    """Take so many messages, which the caller knows to be there."""
    with open_topics(url) as home:
        topic = home.topic(name)
        found: list[Received] = []
        while len(found) < count and (more := topic.receive("reader", 10, 5.0)):
            found += more
            topic.ack("reader", more)
        return found + topic.receive("reader", 10, 0.0)


class TestSqs:
    def test_the_sink_publishes_and_the_run_is_the_key(self, sqs: SqsServer, name: str) -> None:
        events = [Event.new("a.b", {"n": number}, context={"run_id": f"LGrun{number % 2}"}) for number in range(25)]
        sink = TopicSinkConfig(url=sqs.url, topic=name).build()
        sink.open()
        sink.probe()
        sink.write([Delivery(event, encode(event)) for event in events])
        sink.close()
        found = received(sqs.url, name, 25)
        assert {message.id: message.body for message in found} == {event.header.id: encode(event) for event in events}
        if name.endswith(".fifo"):
            for run in ("LGrun0", "LGrun1"):
                numbers = [decode(message.body).payload["n"] for message in found if message.key == run]
                assert len(numbers) in (12, 13)
                assert numbers == sorted(numbers)

    def test_what_a_program_logs_is_in_the_queue_when_it_has_ended(self, sqs: SqsServer, name: str) -> None:
        done = run(LOGGING, BALOG_OUTPUT=f"{sqs.url}&topic={name}")
        assert (done.returncode, done.stdout, done.stderr) == (0, "logged\n", "")
        assert sorted(decode(message.body).payload["fields"]["n"] for message in received(sqs.url, name, 30)) == list(
            range(30)
        )

    def test_a_broker_tells_its_state_there(self, sqs: SqsServer, name: str, tmp_path: Path) -> None:
        config = tmp_path / "broker.json"
        config.write_text(json.dumps({"sinks": [], "state": {"topic": {"url": sqs.url, "topic": name}}}))
        line = '{"type": "STATE", "value": {"bookmark": 7}}\n'
        command = [sys.executable, "-m", "balog", "broker", "--config", str(config)]
        done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout, done.stderr) == (0, line, "")
        (message,) = received(sqs.url, name, 1)
        assert decode(message.body).payload["value"] == {"bookmark": 7}

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


def run(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
