"""The keys of ``structlog.contextvars`` in the context; structlog's own merge is the oracle."""

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog import contextvars

import balog
from balog.common.redaction import Redactor
from balog.log import configuration
from balog.log.context import ProcessContext
from balog.log.recorder import Recorder
from balog.log.rendering.callsites import CallsiteFinder
from balog.log.rendering.context_encoder import ContextEncoder
from balog.testing import Events, capture_events
from tests.stand_ins.programs import run_python


@pytest.fixture(autouse=True)
def nothing_bound() -> Iterator[None]:
    contextvars.clear_contextvars()
    yield
    contextvars.clear_contextvars()


def logged(events: Events) -> dict[str, Any]:
    balog.get_logger("a").info("hi")
    return events[-1].header.context


def test_bound_keys_are_in_the_context_until_they_are_taken_away(events: Events) -> None:
    """Every way in which structlog binds and unbinds."""
    contextvars.bind_contextvars(request_id="r1", user=7)
    assert logged(events).items() >= {"request_id": "r1", "user": 7}.items()
    with contextvars.bound_contextvars(user=8, path="/"):
        assert logged(events).items() >= {"request_id": "r1", "user": 8, "path": "/"}.items()
    assert logged(events)["user"] == 7
    contextvars.unbind_contextvars("user")
    assert "user" not in logged(events)
    tokens = contextvars.bind_contextvars(request_id=None)
    assert logged(events)["request_id"] is None
    contextvars.reset_contextvars(**tokens)
    assert logged(events)["request_id"] == "r1"
    contextvars.clear_contextvars()
    assert "request_id" not in logged(events)


def test_the_value_nearest_to_the_call_wins(events: Events) -> None:
    """Process, then structlog's, then ``bound``, then the logger's."""
    contextvars.bind_contextvars(application="ambient", one="ambient", two="ambient")
    with balog.bound(one="block", two="block"):
        balog.get_logger("a").bind(two="logger").info("hi")

    context = events.one().header.context
    assert (context["application"], context["one"], context["two"]) == ("ambient", "block", "logger")


def test_each_task_sees_its_own(events: Events) -> None:
    """As a web server's requests do."""

    async def request(number: int) -> None:
        contextvars.bind_contextvars(request_id=f"r{number}")
        await asyncio.sleep(0)
        balog.get_logger("a").info("hi", number=number)

    async def serve() -> None:
        await asyncio.gather(*map(request, range(50)))

    asyncio.run(serve())
    assert all(event.header.context["request_id"] == f"r{event.payload['fields']['number']}" for event in events)


def test_a_value_that_changes_in_place_is_written_as_it_is_now(events: Events) -> None:
    """Only values of types that never change are cached."""
    seen: list[int] = []
    contextvars.bind_contextvars(seen=seen)
    assert logged(events)["seen"] == []
    seen.append(1)
    assert logged(events)["seen"] == [1]


@pytest.mark.parametrize(
    ("value", "written"), [(True, True), (1, 1), (1.0, 1.0), (-0.0, -0.0), ("1", "1"), (None, None)]
)
def test_values_that_are_equal_stay_what_they_are(events: Events, value: Any, written: Any) -> None:
    """``1 == 1.0 == True``, and ``0.0 == -0.0``, but they are not the same JSON."""
    for other in (True, 1, 1.0, 0.0, "1"):
        contextvars.bind_contextvars(n=other)
        logged(events)
    contextvars.bind_contextvars(n=value)

    assert json.dumps(logged(events)["n"]) == json.dumps(value)


@pytest.mark.parametrize("keys", [{"password": "hunter2"}, {"name": "password", "value": "hunter2"}])
def test_secrets_are_redacted(events: Events, keys: dict[str, str]) -> None:
    """By name, in text, and by the name beside the value."""
    contextvars.bind_contextvars(url="https://me:hunter2@host/", **keys)

    assert "hunter2" not in str(logged(events))


def test_values_that_do_not_encode_are_replaced_and_reported_once() -> None:
    """Two of them share the context's ``problem``."""
    with capture_events(strict=False) as events:
        contextvars.bind_contextvars(one="\ud800", two="\udfff", three="fine")
        context = logged(events)

    assert (context["one"], context["two"], context["three"]) == ("?", "?", "fine")
    assert "$.one and 1 more" in context["problem"]


def test_a_program_that_binds_very_many_names_gets_those_that_are_bound(events: Events) -> None:
    """structlog keeps a variable for each name for good."""
    for number in range(100):
        with contextvars.bound_contextvars(**{f"k{number}": number}):
            pass
    contextvars.bind_contextvars(k99=1)

    assert {key: value for key, value in logged(events).items() if key[:1] == "k"} == {"k99": 1}


def test_random_binds_agree_with_structlog_s_merge(events: Events) -> None:
    """300 steps; after each, structlog's processor is asked for the same keys."""
    chance = random.Random(5)
    values: list[Any] = [1, True, None, "x", "é", 2.5, ["l"], {"d": 1}]
    for _ in range(300):
        name = chance.choice(["p", "q", "r", "s"])
        if chance.random() < 0.6:
            contextvars.bind_contextvars(**{name: chance.choice(values)})
        else:
            contextvars.unbind_contextvars(name)
        merged = contextvars.merge_contextvars(None, "", {})
        context = logged(events)
        assert {key: context[key] for key in ("p", "q", "r", "s") if key in context} == merged
        events.clear()


def test_caches_stay_small() -> None:
    """However many requests there are."""
    encoder = ContextEncoder(lambda values: json.dumps(values).encode()[1:-1])
    outer = {"process": 1}
    for number in range(2000):
        with contextvars.bound_contextvars(request_id=f"r{number}"):
            joined, encoded, _ = encoder.join_structlog(outer, b'"process": 1')
            assert json.loads(b"{%b}" % encoded) == joined == {"process": 1, "request_id": f"r{number}"}

    assert len(encoder._known) <= 256
    assert len(encoder._members) <= 256


def test_structlog_may_be_imported_after_the_first_event() -> None:
    """Given an encoder that began without structlog, then its keys count from its import on."""
    program = """
import json, sys
from balog.log.rendering.context_encoder import ContextEncoder
encoder = ContextEncoder(lambda values: json.dumps(values).encode()[1:-1])
assert encoder.structlog_variables() is None and "structlog" not in sys.modules
import structlog.contextvars
structlog.contextvars.bind_contextvars(request_id="r1")
assert encoder.structlog_variables()
print(encoder.join_structlog({}, b"")[0])
"""
    assert run_python(program).stdout == "{'request_id': 'r1'}\n"


OUTER = {"process": 1, "thread": "T"}
REDACTOR = Redactor()
WARM = Recorder([], ProcessContext("a"), redactor=REDACTOR)._contexts
values = (
    st.integers()
    | st.integers(-(2**80), 2**80)
    | st.booleans()
    | st.none()
    | st.floats()
    | st.sampled_from(["x", "1", "%d", "token=abcdefgh", "\ud800", "é", ["l"], {"password": "hunter2"}, b"ab"])
)
names = st.sampled_from(["a", "b%d", "password", "name", "value", "process", "problem", "pin", "card_number", 'q":"'])


@given(st.dictionaries(names, values, max_size=4))
def test_the_quick_way_writes_what_the_general_one_writes(bound: dict[str, Any]) -> None:
    """A recorder that has learned names and numbers agrees with a new one that joins part by part."""
    cold = ContextEncoder(Recorder([], ProcessContext("a"), redactor=REDACTOR).encode_context)
    with contextvars.bound_contextvars(**bound):
        quick = WARM.encode_structlog(OUTER, b'"process":1,"thread":"T"')
        general = cold.join_structlog(OUTER, b'"process":1,"thread":"T"')[1]
    joined = WARM.join(OUTER, b'"process":1,"thread":"T"', bound, bound)[1]

    assert quick in (None, general)
    assert joined == cold.join(OUTER, b'"process":1,"thread":"T"', bound, bound)[1]


@pytest.mark.parametrize("name", ["password", "api_key", "session_id"])
def test_numbers_of_secret_names_are_redacted_every_time(events: Events, name: str) -> None:
    """Names whose numbers are safe are remembered; these are not among them."""
    for number in (0, 1234567, 7654321, 2**70):
        with balog.bound(**{name: number}):
            assert str(number or "none") not in str(logged(events)[name])


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**400])
def test_numbers_of_any_size_are_written_in_full(events: Events, number: int) -> None:
    """Before and after the name is known."""
    for value in (1, number, 2, number):
        with balog.bound(request=value):
            assert logged(events)["request"] == value


def test_a_key_of_structlog_hides_the_callsite_and_others_stand_beside_it() -> None:
    """As without the quick way."""
    with capture_events() as events:
        recorder = configuration.state.current()
        configuration.state.swap(recorder.redirected(recorder.routes, strict=True))
        configuration.state.current().callsites = CallsiteFinder()
        with contextvars.bound_contextvars(request="r1"):
            beside = logged(events)
        with contextvars.bound_contextvars(callsite="mine"):
            hidden = logged(events)
        configuration.state.swap(recorder)

    assert (beside["request"], beside["callsite"]["func"]) == ("r1", "logged")
    assert hidden["callsite"] == "mine"
