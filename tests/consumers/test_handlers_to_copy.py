"""The handlers of the top-level ``consumers/``, through the hub and the engine as `balog consume` runs them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import consumers
from balog.consumers import ConsumerHub
from balog.consumers.local import LocalEngine
from balog.event import Event, Level, encode
from balog.payload import RunPayload
from balog.topics import Message, open_topics
from consumers import records


@pytest.fixture
def handle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    def run(*events: Event) -> list[str]:
        with open_topics(f"local:{tmp_path}") as topics:
            topics.topic("singer-events").publish([Message(event.header.id, encode(event)) for event in events])
        hub = ConsumerHub()
        hub.scan(consumers)
        records.totals.clear()
        counts = LocalEngine(hub=hub, path=tmp_path).run(until_empty=True)
        assert (counts.received, counts.dead) == (len(events), 0)
        return capsys.readouterr().out.splitlines()

    return run


def event(payload: Any, run_id: str = "r1", level: Level = "INFO") -> Event:
    return Event.new("tap-x", payload, level=level, context={"application": "tap-x", "run_id": run_id})


def count(value: float, run_id: str = "r1", **tags: Any) -> Event:
    point = {"cls_type": "metric", "type": "counter", "metric": "record_count", "value": value, "tags": tags}
    return event(point, run_id)


def test_records_are_added_up_by_stream_and_run(handle: Callable[..., list[str]]) -> None:
    """Given counters, whose values are deltas, of two runs, then each run counts from nothing."""
    said = handle(count(1000, stream="users"), count(500, endpoint="users"), count(7, "r2", stream="users"))
    assert [line.split() for line in said] == [
        ["users", "1,000", "records", "(tap-x)"],
        ["users", "1,500", "records", "(tap-x)"],
        ["users", "7", "records", "(tap-x)"],
    ]


def test_failures_are_printed_with_the_exception_and_good_news_is_not(handle: Callable[..., list[str]]) -> None:
    broken = {"cls_type": "log", "message": "sync failed", "exc_text": "Traceback …\nValueError: bad"}
    report = {"duration": 1.5, "command": "tap-x", "records": 10}
    said = handle(
        event({"cls_type": "log", "message": "all is well"}),
        event(broken, level="ERROR"),
        event(RunPayload(outcome="failed", exit_code=3, **report), level="ERROR"),
        event(RunPayload(outcome="succeeded", exit_code=0, **report)),
    )
    assert len(said) == 2
    assert said[0].startswith("ERROR")
    assert said[0].endswith("tap-x: sync failed: ValueError: bad")
    assert " ".join(said[1].split()) == "FAILED tap-x ended with exit code 3 after 1.5 s and 10 records"
