"""Each failure is one event that says who failed at what, and never what was in it."""

import pytest

from balog.consumers import Consumer
from balog.consumers.hooks import Work
from balog.consumers.monitoring.failures import FailureEvents
from balog.consumers.routing import ConsumerRouter
from balog.event import Event
from balog.event.payload import ConsumerFailurePayload, read
from balog.topics import Received


def handler(settings: object, event: object) -> None: ...


CONSUMER = Consumer(handler, "orders", name="team.bill")


def work(event: Event, attempt: int = 1) -> Work:
    return Work("orders", CONSUMER, (event,), attempt)


def received(event: Event, attempts: int = 5) -> Received:
    return Received(event.header.id, b"{}", "receipt", attempts, 0.0)


def test_an_event_that_is_tried_again_is_a_warning_with_all_that_helps(events) -> None:
    failed = Event.new("tap.orders", {"cls_type": "order", "card": "4111"})
    FailureEvents().retried(work(failed, attempt=2), failed, ValueError("no\nprice"), 4.0)

    event = events.one(channel="balog.consumers.failure", level="WARNING")
    assert read(event) == ConsumerFailurePayload(
        outcome="retry",
        topic="orders",
        event=failed.header.id,
        consumers=["team.bill"],
        attempt=2,
        reason="no price",
        channel="tap.orders",
        error_type="ValueError",
        delay=4.0,
    )
    assert "4111" not in str(event.payload)


def test_a_dead_letter_is_an_error_with_the_reason(events) -> None:
    failed = Event.new("tap.orders", {})
    FailureEvents().dead("orders", received(failed), failed, "team.bill: ValueError: no price", ["team.bill"])

    assert read(events.one(level="ERROR")) == ConsumerFailurePayload(
        outcome="dead",
        topic="orders",
        event=failed.header.id,
        consumers=["team.bill"],
        attempt=5,
        reason="team.bill: ValueError: no price",
        channel="tap.orders",
    )


def test_what_is_no_event_has_the_message_s_id_and_no_channel(events) -> None:
    FailureEvents().dead("orders", Received("m-1", b"?", "r", 1, 0.0), None, "not an event", [])

    payload = events.one().payload
    assert (payload["event"], payload["consumers"], "channel" in payload) == ("m-1", [], False)


def test_a_reason_has_an_end(events) -> None:
    failed = Event.new("c", {})
    FailureEvents().retried(work(failed), failed, ValueError("x" * 100_000), 1.0)
    assert len(events.one().payload["reason"]) == 1000


def test_a_secret_in_the_reason_is_not_logged(events) -> None:
    failed = Event.new("c", {})
    FailureEvents().retried(work(failed), failed, ValueError("can't reach https://me:hunter2@host/"), 1.0)
    assert "hunter2" not in str(events.one().payload)


@pytest.mark.parametrize("before", [[], ["team.first"]])
def test_the_consumers_that_failed_do_not_get_it_and_others_do(events, before: list[str]) -> None:
    failed = Event.new("c", {}, context={"caused_by": {"event": "LGx", "consumers": before}})
    FailureEvents().retried(work(failed), failed, ValueError("no"), 1.0)
    FailureEvents().dead("orders", received(failed), failed, "no", ["team.bill"])

    listener = Consumer(handler, "orders", "consumer_failure", name="team.watch")
    first = Consumer(handler, "orders", name="team.first")
    for event in events:
        assert event.header.context["caused_by"] == {"event": failed.header.id, "consumers": [*before, "team.bill"]}
        wanting = ConsumerRouter([CONSUMER, listener, first]).wanting(event)
        assert wanting == ((listener,) if before else (first, listener))


def test_an_error_that_can_t_say_what_it_is_is_an_event_too(events) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    failed = Event.new("tap.orders", {})
    FailureEvents().retried(work(failed), failed, Mute(), 1.0)
    told = read(events.one(level="WARNING"))
    assert (told.reason, told.error_type.rpartition(".")[2]) == ("", "Mute")
