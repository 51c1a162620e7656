"""Which topic an event goes to."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.event import Event
from balog.service.document import ControlDocument, EventStream
from balog.service.intake.router import (
    FAILED_EVENTS_TOPIC,
    UNTYPED_TOPIC,
    Route,
    StreamRouter,
    route_problems,
    topic_for_type,
)
from balog.topics.base import check_name


def event(cls_type: object = "order", version: object = "1.0.0", **payload: object) -> Event:
    named = {"cls_type": cls_type, "version": version}
    return Event.new("tests", {**{name: value for name, value in named.items() if value is not None}, **payload})


def stream_of(document: ControlDocument, given: Event) -> str:
    return StreamRouter(document).route(given).stream


def test_without_streams_each_type_has_a_topic_of_its_own_and_what_names_none_goes_to_events() -> None:
    router = StreamRouter(ControlDocument())
    assert router.route(event("order.created")) == Route("order.created", "order.created", None)
    assert router.route(event(None, None)).topic == router.route(event(17)).topic == UNTYPED_TOPIC


def test_the_first_stream_that_takes_an_event_has_it() -> None:
    document = ControlDocument(
        streams=(
            EventStream(name="large", types=("order",), where="payload.price > 100", topic="big"),
            EventStream(name="orders", types=("order*",)),
            EventStream(name="rest"),
        )
    )
    router = StreamRouter(document)
    assert router.route(event(price=101)) == Route("large", "big", None)
    assert router.route(event(price=1)) == Route("orders", "orders", None)
    assert router.route(event("order_line")).stream == "orders"
    assert router.route(event("page")).stream == "rest"
    assert router.route(event(None, None)).stream == "rest"


def test_a_condition_selects_versions() -> None:
    old = EventStream(name="old", types=("order",), where="payload.version LIKE '1.%'")
    document = ControlDocument(streams=(old, EventStream(name="new", types=("o*",))))
    assert stream_of(document, event(version="1.10.0")) == stream_of(document, event(version="1.9")) == "old"
    assert stream_of(document, event(version="2.0.0")) == stream_of(document, event(version="none at all")) == "new"
    assert stream_of(document, event(version=None)) == "new"


def test_the_key_is_the_streams_or_the_run() -> None:
    router = StreamRouter(ControlDocument(streams=(EventStream(name="a", types=("order",), key="payload.customer"),)))
    assert router.route(event(customer=7)).key == "7"
    assert router.route(event()).key is None
    logged = Event.new("tests", {"cls_type": "page"}, context={"run_id": "r1"})
    assert router.route(logged).key == "r1"


def test_types_without_end_are_not_all_remembered() -> None:
    router = StreamRouter(ControlDocument())
    for n in range(10_000):
        router.route(event(f"type{n}"))
    router.route(event("x" * 10_000))
    assert len(router._targets) <= 4096


TYPES = (
    st.text()
    | st.text(alphabet=string.ascii_letters + "._-")
    | st.sampled_from([UNTYPED_TOPIC, FAILED_EVENTS_TOPIC, ".", "a.b", "a_b"])
)


@given(TYPES, TYPES, st.booleans())
def test_two_types_have_two_topics_whatever_they_are_called(one: str, other: str, dots: bool) -> None:
    topics = {topic_for_type(name, dots=dots) for name in (one, other, None)}
    assert len(topics) == len({one, other}) + 1
    for topic in topics:
        check_name("topic", topic)
        assert len(topic) <= 70
        assert dots or "." not in topic


def test_the_name_of_an_escaped_topic_is_no_way_into_it() -> None:
    escaped = topic_for_type("a b")
    assert escaped.startswith("a_b--")
    assert topic_for_type(escaped) != escaped
    assert FAILED_EVENTS_TOPIC not in {topic_for_type(FAILED_EVENTS_TOPIC), topic_for_type(UNTYPED_TOPIC)}


@pytest.mark.parametrize(
    ("stream", "path"),
    [
        (EventStream(name="a", where="payload.x ="), "$.streams[0].where"),
        (EventStream(name="a", key="("), "$.streams[0].key"),
        (EventStream(name="a", topic=FAILED_EVENTS_TOPIC), "$.streams[0].topic"),
    ],
)
def test_what_is_wrong_with_a_stream_is_told_with_its_place(stream: EventStream, path: str) -> None:
    document = ControlDocument(streams=(stream,))
    assert [error.path for error in route_problems(document)] == [path]
    if stream.topic is None:
        with pytest.raises(ConfigError) as told:
            StreamRouter(document)
        assert told.value.path == path
