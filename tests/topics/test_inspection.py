"""What a look at a topic tells, and what it does not do to a queue."""

import pytest

from balog.event import Event, encode
from balog.filters import Expression
from balog.topics import Message, Received
from balog.topics.inspection import NO_EVENT, NO_TYPE, inspect, look
from balog.topics.memory import MemoryTopic
from tests.waiting import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(0.0)
    monkeypatch.setattr("balog.topics.inspection.time.time", clock)
    return clock


class Queue(MemoryTopic):
    keeps_groups = False
    keeps_order = False
    looked = 0

    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        self.looked = limit
        return super().peek(limit, newest=newest)


def fill(topic: MemoryTopic, *kinds: str | None) -> None:
    for number, kind in enumerate(kinds):
        event = Event.new("a", {"n": number, **({"cls_type": kind} if kind else {})})
        topic.publish([Message(event.header.id, encode(event))])


def test_types_are_counted_in_the_newest_messages(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = MemoryTopic("t", clock)
    fill(topic, "old", "a", "b", "b", None)
    topic.publish([Message("x", b"no event")])
    monkeypatch.setattr("balog.topics.inspection._SAMPLE", 5)
    found = inspect(topic)
    assert found.sampled == 5
    assert list(found.types.items()) == [("b", 2), ("a", 1), (NO_TYPE, 1), (NO_EVENT, 1)]


def test_the_rate_is_by_the_sample_until_now(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = MemoryTopic("t", clock)
    fill(topic, *["a"] * 10)
    clock.now = 100.0
    fill(topic, *["a"] * 10)
    clock.now = 120.0
    assert inspect(topic).rate == pytest.approx(20 / 120)
    monkeypatch.setattr("balog.topics.inspection._SAMPLE", 10)
    assert inspect(topic).rate == pytest.approx(10 / 20)


def test_a_queue_is_looked_at_with_care_and_has_no_rate(clock: Clock) -> None:
    queue = Queue("t", clock)
    fill(queue, *["a"] * 30)
    found = inspect(queue)
    assert (queue.looked, found.sampled, found.rate) == (10, 10, None)
    list(look(queue, 3, where=Expression("payload.n >= 0")))
    assert queue.looked == 10


def test_a_look_gives_the_last_of_the_newest(clock: Clock) -> None:
    topic = MemoryTopic("t", clock)
    fill(topic, *["a"] * 9)
    chosen = look(topic, 2, newest=True, where=Expression("payload.n < 7"))
    assert [event.payload["n"] for _, event in chosen if isinstance(event, Event)] == [5, 6]
