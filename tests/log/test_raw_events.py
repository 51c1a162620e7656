"""Events that a program made itself, passed to a logger as ``raw_event``."""

import copy
import json
import pickle
from typing import Any

import pytest

import balog
from balog.common.errors import EventError
from balog.event import Event, decode, encode
from balog.testing import Events, capture_events
from tests.stand_ins.log_outputs import Lines, use_output

WRITTEN = {
    "schema": "0.1.0",
    "header": {
        "id": "LG0VbVFou7HSyYB9r5bV0000",
        "channel": "shop.paid",
        "timestamp": "2026-11-20T09:14:14.903400Z",
        "level": "WARNING",
        "composition": False,
        "context": {"fqdn": "elsewhere"},
    },
    "payload": {"cls_type": "invoice", "amount": "12.50"},
}


@pytest.mark.parametrize("form", [dict, json.dumps, lambda made: decode(json.dumps(made))])
def test_an_event_is_written_as_it_is(events: Events, form: Any) -> None:
    """Id, channel, time, level and context are those of the event, not of the call."""
    balog.get_logger("a").info("foobar", raw_event=form(WRITTEN))

    assert json.loads(encode(events.one())) == WRITTEN


def test_secrets_in_it_are_redacted(events: Events) -> None:
    """A raw event is like any other in what may leave the process."""
    balog.get_logger("a").info("x", raw_event={**WRITTEN, "payload": {"password": "hunter2"}})

    assert "hunter2" not in encode(events.one()).decode()


@pytest.mark.parametrize("raw", [{"foo": "bar"}, {"header": 1, "payload": {}, "schema": "0.1.0"}])
def test_an_object_that_is_no_event_is_a_payload_with_a_problem(raw: dict[str, Any]) -> None:
    """Every output holds events, so other objects are written in one."""
    with capture_events(strict=False) as events:
        balog.get_logger("a").info("foobar", raw_event=raw)

    event = events.one(channel="a.foobar")
    assert event.payload == {**raw, "problem": "raw_event is no event; it is written as a payload"}


def test_any_other_value_is_a_payload_too() -> None:
    """Nothing that a program passes raises."""
    with capture_events(strict=False) as caught:
        for raw in ([1], 5, "text", object(), b"\xff"):
            balog.get_logger("a").info("foobar", raw_event=raw)

    assert len(caught) == 5
    assert all("problem" in payload for payload in caught.payloads)


def test_none_is_as_if_it_were_not_given(events: Events) -> None:
    """Code may pass it unconditionally."""
    balog.get_logger("a").info("hi", raw_event=None)

    assert events.one().payload == {"cls_type": "log", "message": "hi", "version": "1.0.0", "severity": "INFO"}


def test_the_call_s_level_decides_whether_it_is_written(capfd: pytest.CaptureFixture[str]) -> None:
    """As for every call of the logger."""
    balog.configure("stderr", level="WARNING")
    balog.get_logger("a").info("x", raw_event=WRITTEN)
    balog.get_logger("a").error("x", raw_event=WRITTEN)

    assert capfd.readouterr().err.count("\n") == 1


def test_an_event_without_a_level_takes_that_of_the_call() -> None:
    """Facility 0.0.1 has no level; outputs with a threshold need one."""
    lines = Lines()
    use_output(lines)
    old: dict[str, Any] = {"id": "LG1", "channel": "a", "timestamp": "2014-01-02T00:00:00"}
    balog.get_logger("a").error("x", raw_event={"schema": "0.0.1", "header": old, "payload": {}})

    assert lines.levels == ["ERROR"]


def test_the_given_event_is_not_changed(events: Events) -> None:
    """It may still be in use."""
    made: Event = decode(json.dumps({**WRITTEN, "payload": {"password": "hunter2"}}))
    balog.get_logger("a").info("x", raw_event=made)

    assert made.payload == {"password": "hunter2"}


def changed(how: str) -> tuple[Event, dict[str, Any]]:
    """Return an event whose payload was changed in one way, and the payload to be written."""
    event = decode(json.dumps(WRITTEN))
    wanted = {**WRITTEN["payload"], "handled": True}  # type: ignore[dict-item]
    if how == "in place":
        event["payload"]["handled"] = True
    elif how == "below":
        event.payload["deep"] = {"list": [1]}
        event.payload["deep"]["list"].append(2)
        wanted = {**WRITTEN["payload"], "deep": {"list": [1, 2]}}  # type: ignore[dict-item]
    elif how == "an attribute":
        event.payload = wanted
    elif how == "a key":
        event["payload"] = wanted
    elif how == "copy":
        event["payload"]["handled"] = True
        event = copy.copy(event)
    elif how == "deepcopy":
        event["payload"]["handled"] = True
        event = copy.deepcopy(event)
    elif how == "pickle":
        event["payload"]["handled"] = True
        event = pickle.loads(pickle.dumps(event))
    return event, wanted


CHANGES = ["in place", "below", "an attribute", "a key", "copy", "deepcopy", "pickle"]


@pytest.mark.parametrize("how", CHANGES)
def test_a_changed_payload_is_written(events: Events, how: str) -> None:
    """A program that changes an event logs what it reads."""
    event, wanted = changed(how)
    balog.get_logger("a").info("x", raw_event=event)
    balog.get_logger("a").info("x", payload=event)
    balog.emit("INFO", "a", event)
    balog.get_logger("a").info("x", payload={"of": [event]})

    first, second, third, nested = (json.loads(encode(one))["payload"] for one in events)
    assert first == second == third == wanted
    assert nested["of"][0]["payload"] == wanted
    assert nested["of"][0]["header"]["id"] == event.header.id


def test_odd_values_of_a_changed_event_are_named() -> None:
    """They cost themselves only, in the payload and in the context."""
    event = decode(json.dumps(WRITTEN))
    event.payload["x"], event.header.context["y"] = float("nan"), 1j
    with capture_events(strict=False) as caught:
        balog.get_logger("a").info("x", raw_event=event)

    written = caught.one()
    assert written.payload["x"] is None
    assert "nan" in written.payload["problem"]
    assert written.header.context["y"] == "1j"
    assert "complex" in written.header.context["problem"]
    assert written.header.id == event.header.id


@pytest.mark.parametrize("part", ["payload", "context"])
def test_odd_values_in_the_dict_of_an_event_are_named(part: str) -> None:
    """Null is not written in silence for nan."""
    odd = {"n": float("nan"), 1: "a", "1": "b"}
    made = {**WRITTEN, "payload": odd} if part == "payload" else {**WRITTEN, "header": {**WRITTEN["header"], part: odd}}  # type: ignore[dict-item]
    with capture_events(strict=False) as caught:
        balog.get_logger("a").info("x", raw_event=made)

    event = caught.one(channel="shop.paid")
    found = event.payload if part == "payload" else event.header.context
    assert {found["1"], found["1 2"]} == {"a", "b"}
    assert found["n"] is None
    assert "nan" in found["problem"]
    assert "two keys" in found["problem"]


def test_odd_values_of_an_event_are_an_error_of_a_strict_call() -> None:
    """As in any payload."""
    with capture_events(strict=True), pytest.raises(ValueError, match="nan"):
        balog.get_logger("a").info("x", raw_event={**WRITTEN, "payload": {"n": float("nan")}})


def test_secrets_in_a_changed_payload_are_redacted(events: Events) -> None:
    """Changes are redacted as all values are."""
    event = decode(json.dumps(WRITTEN))
    event.payload["password"] = "hunter2"
    balog.get_logger("a").info("x", raw_event=event)

    assert "hunter2" not in encode(events.one()).decode()
    assert event.payload["password"] == "hunter2"


@pytest.mark.parametrize("raw", ["text", 5, [1]])
def test_a_value_that_is_no_event_is_named_as_the_raw_event(raw: Any) -> None:
    """The call has no payload that could be meant."""
    with capture_events(strict=False) as caught:
        balog.get_logger("a").info("x", raw_event=raw)

    assert caught.one().payload == {"value": raw, "problem": "raw_event is no event; it is written as a payload"}


@pytest.mark.parametrize("payload", [{"n": 1}, [1]])
def test_a_value_that_is_no_event_stays_beside_a_payload(payload: Any) -> None:
    """Both are written, and both problems are named."""
    with capture_events(strict=False) as caught:
        balog.get_logger("a").info("x", raw_event="text", payload=payload)

    written = caught.one().payload
    assert written["raw_event"] == "text"
    assert written.get("n") == 1 or written["value"] == [1]
    assert "raw_event is no event" in written["problem"]


def test_what_is_no_event_is_an_error_of_a_strict_call() -> None:
    with capture_events(strict=True), pytest.raises(EventError, match="raw_event is no event"):
        balog.get_logger("a").info("x", raw_event=5)
