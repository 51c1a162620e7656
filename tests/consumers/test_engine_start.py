"""What an engine does when the topics' server is away as it starts."""

import threading
from pathlib import Path
from typing import Any

import pytest

from balog.common.errors import ConfigError, TopicError
from balog.consumers import Consumer, ConsumerHub, Engine
from balog.event import Event, encode
from balog.topics import Message
from balog.topics.local import LocalTopic, LocalTopics
from tests.consumers.runs import running
from tests.waiting import wait_for


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Whether topics are out of reach; they are until this is set."""
    back = threading.Event()
    exists = LocalTopic.exists

    def asked(topic: LocalTopic) -> bool:
        if not back.is_set():
            error = TopicError("the server can't be reached")
            error.retryable = True
            raise error
        return exists(topic)

    monkeypatch.setattr(LocalTopic, "exists", asked)
    return back


@pytest.fixture
def hub() -> ConsumerHub:
    hub = ConsumerHub()
    hub.add(Consumer(lambda settings, event: None, "orders", name="c"))
    return hub


def publish(tmp_path: Path) -> None:
    event = Event.new("tests", {})
    with LocalTopics(tmp_path) as home:
        home.topic("orders").publish([Message(event.header.id, encode(event))])


def test_it_waits_for_a_server_that_is_away_when_it_starts(
    tmp_path: Path, away: threading.Event, hub: ConsumerHub
) -> None:
    away.set()
    publish(tmp_path)
    away.clear()
    with LocalTopics(tmp_path) as home:
        with running(Engine(hub, home)) as engine:
            wait_for(lambda: engine.state.errors.get("orders"))
            away.set()
            wait_for(lambda: engine.counts.succeeded == 1)


def test_a_run_until_empty_says_that_it_is_away(tmp_path: Path, away: threading.Event, hub: ConsumerHub) -> None:
    with LocalTopics(tmp_path) as home, pytest.raises(TopicError, match="can't be reached"):
        Engine(hub, home).run(until_empty=True)


def test_a_consumer_of_earlier_versions_only_is_warned(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Checkouts before the first release wrote facility 1.0.0; a topic may still have such events."""
    bench.publish({"cls_type": "metrics"})
    old = Consumer(lambda settings, event: None, "orders", "metrics", ">=1", name="old")
    new = Consumer(lambda settings, event: None, "orders", "metrics", "<1.0", name="new")
    with caplog.at_level("WARNING", "balog.consumers"):
        counts = bench.run(old, new)
    assert counts.succeeded == 1
    (line,) = [record.getMessage() for record in caplog.records if "facility" in record.getMessage()]
    assert line.startswith("consumer old gets no event that this release writes: its version >=1 ")
    assert "payload_version" in line


@pytest.mark.parametrize("version", [">=2", (">=0.2", "<1"), "==1.2.3"])
def test_a_consumer_of_a_version_that_was_never_written_is_refused(bench: Any, version: Any) -> None:
    """Its topic would drain without a call."""
    bench.publish({"cls_type": "metrics"})
    consumer = Consumer(lambda settings, event: None, "orders", "metrics", version, name="never")
    with pytest.raises(ConfigError, match="consumer never gets no event that this release writes"):
        bench.run(consumer)
    assert bench.pending == 1
