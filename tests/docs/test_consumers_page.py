"""The pages on consumers: their blocks run as they are written, in order, in one folder each."""

import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

from balog.consumers import Consumer, PartialFailure, Retry
from balog.event import Event
from balog.topics import DeadLetter
from balog.topics.local import LocalTopics
from tests.documentation import docs_page, run_page, run_task

PAGE = docs_page("consumers.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the page's only ``sh`` block printed."""
    (found,) = run_page("consumers.md", tmp_path_factory.mktemp("page"))
    return found


def test_the_handlers_do_what_they_say(printed: str) -> None:
    # Threads print between each other's words and line ends.
    assert re.findall(r"bill ann \d+", printed) == ["bill ann 5", "bill ann 20", "bill ann 30"]
    assert "count 2" in printed
    assert "page shop" in printed


def test_the_batch_handler_names_the_events_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("consumer-results.md", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    send = importlib.import_module("mailing").send
    events = [Event.new("a", {"cls_type": "mail", "to": to}) for to in ("ann@example.com", "ann", "ann@busy.example")]
    with pytest.raises(PartialFailure) as raised:
        send({}, events)
    failed = raised.value.failed
    assert failed[events[1].header.id] == "no address"
    assert isinstance(failed[events[2].header.id], Retry)
    assert len(failed) == 2


def test_what_listens_to_what_is_listed(printed: str) -> None:
    listed = [line.split() for line in printed.splitlines() if line.startswith("shop.")]
    assert [words[:2] for words in listed] == [
        ["shop.bill", "orders"],
        ["shop.count", "orders"],
        ["shop.page", "orders"],
    ]


def test_a_failed_event_is_retried_waited_for_or_rejected(tmp_path: Path) -> None:
    (printed,) = run_task("retry-failed-events.md", tmp_path)
    assert printed.count("shipped 1\n") == 1
    failures = _dead_letters(tmp_path, "shipments")
    assert {letter.reason: letter.attempts for letter in failures} == {
        "shipping.ship: balog.consumers.outcomes.Reject: shipment 2 weighs nothing": 1,
        "shipping.ship: TimeoutError: the carrier did not answer": 3,
    }


def test_dead_letters_are_counted_corrected_and_redriven(tmp_path: Path) -> None:
    first, planned, second = run_task("handle-dead-letters.md", tmp_path)
    assert "\ninvoice 1 in USD\n" in first
    assert json.loads(planned.splitlines()[0])["payload"] == {
        "cls_type": "sale",
        "number": 2,
        "total": 12,
        "currency": "EUR",
    }
    assert "\ninvoice 2 in EUR\n" in second
    assert _dead_letters(tmp_path, "sales") == []


def test_events_of_a_key_stay_in_order(tmp_path: Path) -> None:
    (printed,) = run_task("keep-order.md", tmp_path)
    # Threads print between each other's words and line ends.
    booked = re.findall(r"(ann|bob) (\d)", printed)
    assert len(booked) == 12
    for account in ("ann", "bob"):
        assert [number for name, number in booked if name == account] == [*"123456"]


def test_a_sink_in_a_handler_has_what_was_sent(tmp_path: Path) -> None:
    run_task("sink-in-a-handler.md", tmp_path)


def _dead_letters(folder: Path, topic: str) -> list[DeadLetter]:
    with LocalTopics(folder / "topics") as topics:
        return list(topics.topic(topic).dead_letters("balog"))


def test_every_argument_of_a_consumer_is_on_the_page() -> None:
    arguments = set(inspect.signature(Consumer).parameters) - {"func"}
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    assert {name for name in arguments if f"`{name}" not in rows} == set()
