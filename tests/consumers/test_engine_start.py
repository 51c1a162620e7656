"""What an engine does when the topics' server is away as it starts."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from balog.consumers import Consumer, ConsumerHub, Engine
from balog.errors import TopicError
from balog.event import Event, encode
from balog.topics import Message
from balog.topics.local import LocalTopic, LocalTopics


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
        engine = Engine(hub, home)
        thread = threading.Thread(target=engine.run)
        thread.start()
        while not engine.state.errors.get("orders"):
            assert thread.is_alive()
            time.sleep(0.01)
        away.set()
        while engine.counts.succeeded < 1:
            assert thread.is_alive()
            time.sleep(0.01)
        engine.stop()
        thread.join(30)
    assert not thread.is_alive()


def test_a_run_until_empty_says_that_it_is_away(tmp_path: Path, away: threading.Event, hub: ConsumerHub) -> None:
    with LocalTopics(tmp_path) as home, pytest.raises(TopicError, match="can't be reached"):
        Engine(hub, home).run(until_empty=True)


def test_a_consumer_as_the_first_balog_s_readme_has_it_is_warned_that_it_gets_nothing_of_today(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its version="<1.0" is a condition on the facility layer, of which today's producers write 1.0.0."""
    bench.publish({"cls_type": "metrics"})
    old = Consumer(lambda settings, event: None, "orders", "metrics", "<1.0", name="old")
    new = Consumer(lambda settings, event: None, "orders", "metrics", ">=0.0.1", name="new")
    with caplog.at_level("WARNING", "balog.consumers"):
        counts = bench.run(old, new)
    assert counts.succeeded == 1
    (line,) = [record.getMessage() for record in caplog.records if "facility" in record.getMessage()]
    assert line.startswith("consumer old gets no event that this release writes: its version <1.0 ")
    assert "payload_version" in line
