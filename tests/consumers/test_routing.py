"""The router tells the same as asking every consumer would, and remembers."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.consumers import Consumer
from balog.consumers.routing import ConsumerRouter, Subscription
from balog.event import Event, decode, encode
from balog.filters import Expression
from balog.topics.base import uptime
from balog.topics.memory import MemoryTopics


def handler(settings: object, event: object) -> None: ...


class Odd(Consumer):
    """Wants events with an odd number in them, whatever else was declared."""

    def match_event(self, event: Event | dict) -> bool:
        return isinstance(event, Event) and event.payload.get("n", 0) % 2 == 1


WHERE = [
    "payload.n > 1",
    "level = 'ERROR'",
    "payload.s = 'a'",
    "'b' = payload.s AND payload.n > 1",
    "payload.n > 0 AND payload.s IN ('a', 'b')",
    "payload.s IN ('a', 7)",
    "payload.s = 'a' OR payload.n = 1",
    "NOT payload.s = 'a'",
    "payload.s.x = 'a'",
    "channel = 'y' AND cls_type = 'a'",
    "context.c = '7'",
    "context.c IN ('7', 'a')",
]
TYPES = ["a", "b", "c", None, 7]
optional = st.none
consumers = st.lists(
    st.builds(
        dict,
        cls_type=optional() | st.sampled_from(["a", "b", ("a", "b"), "z"]),
        version=optional() | st.sampled_from(["<1", ">=1", ("<2", ">=1.0.1")]),
        payload_version=optional() | st.sampled_from([">=1", "<1"]),
        channel=optional() | st.sampled_from(["x.*", "y", ("x.1", "z*")]),
        level=optional() | st.sampled_from(["DEBUG", "WARNING"]),
        where=optional() | st.sampled_from(WHERE),
        own=st.booleans(),
    ),
    max_size=8,
)
events = st.lists(
    st.tuples(
        st.sampled_from(["x.1", "x.2", "y", "z"]),
        st.sampled_from(["DEBUG", "INFO", "ERROR"]),
        st.builds(
            lambda cls_type, version, n, s: {"cls_type": cls_type, "version": version, "n": n, "s": s},
            st.sampled_from(TYPES),
            st.sampled_from(["1.0.0", "0.1.0", None, 1]),
            st.integers(0, 3),
            st.sampled_from(["a", "b", "c", None, 7, ["a"], {"x": "a"}]),
        ),
        st.sampled_from([None, 7, "7", "a", ["a"]]),
    ),
    max_size=10,
)


def make(position: int, own: bool = False, **conditions: object) -> Consumer:
    return (Odd if own else Consumer)(handler, "t", name=f"c{position}", **conditions)


@settings(deadline=None)
@given(consumers, events)
def test_it_gives_those_that_match_sorted_by_name(wanted: list[dict], seen: list[tuple]) -> None:
    made = [make(position, **conditions) for position, conditions in enumerate(wanted)]
    router = ConsumerRouter(made[::-1])
    for channel, level, payload, c in seen * 2:  # the second time from what it remembers
        event = decode(encode(Event.new(channel, payload, level=level, context={"c": c})))
        assert router.wanting(event) == tuple(consumer for consumer in made if consumer.match_event(event))


@pytest.mark.parametrize(
    ("caused_by", "left"),
    [
        ({"event": "LGx", "consumers": ["one"]}, ["two"]),
        ({"event": "LGx", "consumers": ["one", "two"]}, []),
        ({"event": "LGx", "consumers": []}, ["one", "two"]),
        ({"event": "LGx", "consumers": "one"}, ["one", "two"]),
        ({"consumers": [["one"], None, {}]}, ["one", "two"]),
        ({}, ["one", "two"]),
        (["one"], ["one", "two"]),
        (None, ["one", "two"]),
    ],
)
def test_an_event_does_not_reach_the_consumers_that_caused_it(caused_by: object, left: list[str]) -> None:
    router = ConsumerRouter([Consumer(handler, "t", name=name) for name in ("one", "two")])
    event = Event.new("c", {}, context={"caused_by": caused_by})
    assert [consumer.name for consumer in router.wanting(event)] == left
    assert len(router.wanting(Event.new("c", {}))) == 2


def test_what_no_condition_asks_for_is_not_looked_at() -> None:
    router = ConsumerRouter([Consumer(handler, "t", channel="c*", level="INFO", version="<2")])
    event = decode(encode(Event.new("c", {"cls_type": "a"})))
    assert router.wanting(event)
    assert not vars(event)


def test_channels_without_end_do_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("balog.consumers.routing._REMEMBERED", 10)
    router = ConsumerRouter([Consumer(handler, "t", channel="c*")])
    for number in range(100):
        assert len(router.wanting(Event.new(f"c{number}", {}))) == 1
    assert len(router._remembered) <= 10


def test_types_as_long_as_events_do_not_fill_memory() -> None:
    router = ConsumerRouter([Consumer(handler, "t", payload_version=">=1")])
    for number in range(20):
        payload = {"cls_type": "x" * 10_000 + str(number), "version": "1.0.0"}
        assert len(router.wanting(decode(encode(Event.new("c", payload))))) == 1
    assert not router._remembered
    assert not router._suited


def test_of_many_conditions_only_those_are_asked_that_can_be_true(monkeypatch: pytest.MonkeyPatch) -> None:
    router = ConsumerRouter(
        [make(number, where=f"payload.n < 9 AND payload.s = 's{number // 2}'") for number in range(100)]
    )
    asked: list[str] = []
    matches = Expression.matches

    def note(self: Expression, subject: Event) -> bool:
        asked.append(self.text)
        return matches(self, subject)

    monkeypatch.setattr(Expression, "matches", note)
    found = router.wanting(decode(encode(Event.new("c", {"n": 1, "s": "s7"}))))
    assert [consumer.name for consumer in found] == ["c14", "c15"]
    assert asked == ["payload.n < 9 AND payload.s = 's7'"]


def test_what_a_subclass_raises_is_not_hidden() -> None:
    class Broken(Consumer):
        def match_event(self, event: Event | dict) -> bool:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        ConsumerRouter([Broken(handler, "t")]).wanting(Event.new("c", {}))


def test_a_lease_counts_from_the_request_and_not_from_the_look_whether_the_topic_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = MemoryTopics().topic("orders")
    monkeypatch.setattr(topic, "exists", lambda: time.sleep(0.3) is None)
    monkeypatch.setattr(topic, "receive", lambda *_: [])
    assert Subscription(topic, {}, ConsumerRouter([]), None).receive("g", 1, 0.0, 10.0)[1] > uptime() + 9.8
