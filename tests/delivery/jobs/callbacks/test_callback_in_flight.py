"""What a callback holds: leases that are extended, and settling that survives a topic that fails."""

from types import SimpleNamespace

import pytest

from balog.delivery.jobs.callbacks import in_flight
from balog.errors import TopicError
from balog.topics import Message
from balog.topics.memory import MemoryTopics


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(in_flight, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


class Flaky:
    """A topic of which some methods fail once."""

    def __init__(self, topic):
        self.topic = topic
        self.extended = []
        self.fails = set()

    def __getattr__(self, name):
        if name in self.fails:
            self.fails.discard(name)
            raise TopicError("away")
        return getattr(self.topic, name)

    def extend(self, group, received, lease):
        self.extended.append(len(received))
        return self.topic.extend(group, received, lease)


@pytest.fixture
def topic():
    home = MemoryTopics()
    topic = home.topic("orders")
    topic.publish([Message(f"LG{n}", b"{}") for n in range(10)])
    return Flaky(topic)


def make(topic):
    buried = []
    return in_flight.InFlightMessages(topic, "callback.partner", buried.append), buried


def test_leases_of_all_in_hand_are_extended_before_they_run_out(topic, clock):
    held, _ = make(topic)
    held.receive(10, 0)
    for _ in range(100):
        clock.now += 1.0
        held.extend()
    assert topic.extended == [10] * len(topic.extended)
    assert 100 / in_flight.LEASE * 2 <= len(topic.extended) <= 100 / in_flight.LEASE * 4


def test_what_is_settled_is_not_extended(topic, clock):
    held, _ = make(topic)
    held.ack(held.receive(10, 0))
    held.settle()
    clock.now += in_flight.LEASE
    held.extend()
    assert (len(held), topic.extended) == (0, [])


@pytest.mark.parametrize("method", ["ack", "release", "dead_letter_each"])
def test_what_could_not_be_settled_is_settled_the_next_time(topic, clock, method):
    held, buried = make(topic)
    received = held.receive(10, 0)
    held.ack(received[:4])
    held.release(received[4:7], 0.0, attempted=False)
    for message in received[7:]:
        held.give_up(message, "too old")
    topic.fails.add(method)
    with pytest.raises(TopicError):
        held.settle()
    assert len(held) > 0
    held.settle()
    state = topic.group_state("callback.partner")
    assert (len(held), state.pending, state.dead, len(buried)) == (0, 3, 3, 3)


def test_a_delay_counts_from_when_it_was_decided(topic, clock):
    held, _ = make(topic)
    held.release(held.receive(10, 0), 30.0, attempted=True)
    clock.now += 60.0
    held.settle()
    assert len(held.receive(10, 0)) == 10


def test_everything_else_is_given_back(topic, clock):
    held, _ = make(topic)
    received = held.receive(10, 0)
    held.ack(received[:3])
    held.release_all()
    held.settle()
    assert (len(held), topic.group_state("callback.partner").pending) == (0, 7)
