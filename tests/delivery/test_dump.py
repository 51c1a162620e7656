"""A topic into an archive: nothing is acked before it is in a file, and nobody else loses anything."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from balog.common.storage import open_storage
from balog.delivery.dump import DumpStats, dump
from balog.event import Event, encode
from balog.sinks import SinkError
from balog.sinks.base import Delivery
from balog.sinks.store import StoreSinkConfig
from balog.topics import Message, Received, Topic
from balog.topics.archives import read_lines
from balog.topics.memory import MemoryTopic, MemoryTopics


class Queue(MemoryTopic):
    """All groups are one, and deliveries can't be taken back, as of a queue."""

    keeps_groups = False
    keeps_order = False
    poll_timeout = 0.01


@pytest.fixture
def topic() -> Topic:
    topic = MemoryTopics().topic("orders")
    topic.poll_timeout = 0.01
    return topic


def publish(topic: Topic, count: int) -> list[bytes]:
    events = [Event.new("a.b", {"n": number}) for number in range(count)]
    topic.publish([Message(event.header.id, encode(event)) for event in events])
    return [encode(event) for event in events]


def into_files(path: Path, topic: Topic, *, group: str = "dump", keep: bool = False) -> DumpStats:
    sink = StoreSinkConfig(topic="orders", path=str(path)).build()
    sink.open()
    counts = dump(topic, group, sink, keep=keep)
    sink.close()
    return counts


def written(path: Path) -> list[bytes]:
    storage = open_storage(str(path))
    found = []
    for name, _ in storage.files():
        with storage.open(name) as source:
            found += [line.data for line in read_lines(source)]
    return found


class Failing:
    """A sink that takes some batches and then no more; it sees what the topic holds as acked at each."""

    def __init__(self, topic: Topic, group: str, batches: int) -> None:
        self.topic, self.group, self.left = topic, group, batches
        self.taken: list[bytes] = []
        self.in_flight: list[int] = []

    def open(self) -> None: ...

    def close(self) -> None: ...

    def write(self, batch: Sequence[Delivery]) -> None:
        self.in_flight.append(self.topic.group_state(self.group).in_flight)
        if not self.left:
            raise SinkError("the disk is full")
        self.left -= 1
        self.taken += [delivery.body for delivery in batch]


def test_all_of_a_topic_is_in_the_files(tmp_path: Path, topic: Topic) -> None:
    bodies = publish(topic, 2500)
    assert into_files(tmp_path, topic).written == 2500
    assert written(tmp_path) == bodies


def test_the_next_dump_goes_on_where_the_last_ended(tmp_path: Path, topic: Topic) -> None:
    first = publish(topic, 2)
    for more in (0, 3):
        new = publish(topic, more)
        into_files(tmp_path, topic)
    assert sorted(written(tmp_path)) == sorted(first + new)


def test_other_groups_lose_nothing(tmp_path: Path, topic: Topic) -> None:
    publish(topic, 3)
    into_files(tmp_path, topic)
    assert topic.group_state("balog").pending == 3


def test_nothing_is_acked_before_it_is_written(topic: Topic) -> None:
    publish(topic, 5)
    sink = Failing(topic, "dump", 5)
    dump(topic, "dump", sink)
    assert sink.in_flight == [5]
    assert topic.group_state("dump").pending == 0


@pytest.mark.parametrize("batches", [0, 1, 2])
def test_what_could_not_be_written_is_given_back_at_once(topic: Topic, batches: int) -> None:
    bodies = publish(topic, 3000)
    sink = Failing(topic, "dump", batches)
    with pytest.raises(SinkError):
        dump(topic, "dump", sink)
    state = topic.group_state("dump")
    assert (state.in_flight, state.pending) == (0, 3000 - batches * 1000)
    after = Failing(topic, "dump", 10)
    dump(topic, "dump", after)
    assert sink.taken + after.taken == bodies


def test_what_is_no_event_is_a_dead_letter_with_its_bytes(tmp_path: Path, topic: Topic) -> None:
    topic.publish([Message("x", b"no event")])
    publish(topic, 1)
    counts = into_files(tmp_path, topic)
    assert (counts.written, counts.dead) == (1, 1)
    assert [(letter.id, letter.body) for letter in topic.dead_letters("dump")] == [("x", b"no event")]


def test_an_event_over_several_lines_is_one_line_in_the_file(tmp_path: Path, topic: Topic) -> None:
    event = Event.new("a", {"n": 1})
    topic.publish([Message("x", encode(event).replace(b",", b",\n"))])
    into_files(tmp_path, topic)
    assert written(tmp_path) == [encode(event)]


def test_a_limit_is_kept(topic: Topic) -> None:
    publish(topic, 10)
    sink = Failing(topic, "dump", 5)
    assert dump(topic, "dump", sink, limit=4).written == 4
    assert topic.group_state("dump").pending == 6


def test_a_queue_that_is_only_looked_at_gets_all_back_once_written(tmp_path: Path) -> None:
    home = MemoryTopics()
    queue = Queue("orders", home._clock)
    bodies = publish(queue, 1500)
    queue.publish([Message("x", b"no event")])
    counts = into_files(tmp_path, queue, group="all", keep=True)
    assert (counts.written, counts.dead, counts.left) == (1500, 0, 1501)
    assert sorted(written(tmp_path)) == sorted(bodies)
    state = queue.group_state("all")
    assert (state.in_flight, state.waiting) == (0, 1501)


class Slow(MemoryTopic):
    """Gives nothing the first times, as a server does that is still letting the group in."""

    poll_timeout = 0.01
    receives = 0

    def receive(self, *arguments: object, **named: object) -> list[Received]:  # type: ignore[override]
        self.receives += 1
        return super().receive(*arguments, **named) if self.receives > 5 else []  # type: ignore[arg-type]


def test_a_home_that_takes_its_time_is_waited_for() -> None:
    home = MemoryTopics()
    topic = Slow("orders", home._clock)
    bodies = publish(topic, 3)
    sink = Failing(topic, "dump", 5)
    dump(topic, "dump", sink)
    assert sink.taken == bodies


def test_two_messages_of_one_id_are_both_given_back() -> None:
    class Repeating(Queue):
        def receive(self, *arguments: Any, **named: Any) -> list[Received]:
            return [replace(message, id=event.header.id) for message in super().receive(*arguments, **named)]

    queue = Repeating("orders", MemoryTopics()._clock)
    event = Event.new("a", {})
    queue.publish([Message(id, encode(event)) for id in ("first", "second")])
    counts = dump(queue, "all", Failing(queue, "all", 5), keep=True)
    assert (counts.written, counts.left) == (1, 2)


def test_a_stop_ends_between_batches(topic: Topic) -> None:
    publish(topic, 3000)
    sink = Failing(topic, "dump", 9)
    dump(topic, "dump", sink, should_stop=lambda: bool(sink.taken))
    assert len(sink.taken) == 1000
    assert topic.group_state("dump").in_flight == 0


def test_what_is_held_until_the_end_of_a_dump_is_held_without_its_body(tmp_path: Path) -> None:
    class Watched(Queue):
        def release(
            self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True
        ) -> int:
            held.extend(len(message.body) for message in received)
            return super().release(group, received, delay, attempted=attempted)

    held: list[int] = []
    queue = Watched("orders", time.time)
    publish(queue, 3)
    assert into_files(tmp_path, queue, keep=True).left == 3
    assert held == [0, 0, 0]
