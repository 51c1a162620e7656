"""Kafka when things break: consumers killed, partitions moved, a server that goes away, messages that are too large."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from balog.common.errors import TopicError
from balog.event import Event, encode
from balog.testing.contracts import topic_fixtures
from balog.testing.contracts.topic_fixtures import eventually
from balog.topics import Message, Received, Topic, Topics, open_topics
from balog.topics.kafka.dead_letters import DeadLetters
from balog.topics.kafka.partition import FetchedMessage
from tests.services.servers.kafka import KafkaServer

pytestmark = pytest.mark.service

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def url(kafka: KafkaServer) -> str:
    return kafka.url(**{"partitions": 1, "session.timeout.ms": 2000})


@pytest.fixture
def home(url: str) -> Iterator[Topics]:
    with open_topics(url) as home:
        yield home


@pytest.fixture
def topic(home: Topics) -> Topic:
    return home.topic(f"t{uuid4().hex[:12]}")


def messages(count: int, keys: int = 0) -> list[Message]:
    return [Message(f"m{n}", b"body %d" % n, f"k{n % keys}" if keys else None) for n in range(count)]


take = partial(topic_fixtures.take, lease=300.0)


def committed(kafka: KafkaServer, topic: Topic) -> int:
    look = Consumer({"bootstrap.servers": kafka.servers, "group.id": "g"})
    (found,) = look.committed([TopicPartition(topic.name, 0)], timeout=30)
    look.close()
    return int(found.offset)


KILLED = """
import os, signal, sys
from balog.topics import open_topics
topic = open_topics(sys.argv[1]).topic(sys.argv[2])
received = []
while len(received) < 10:
    received += topic.receive("g", limit=10 - len(received), wait=1.0, lease=300)
topic.ack("g", [message for message in received if message.id in sys.argv[3].split(",")])
os.kill(os.getpid(), signal.SIGKILL)
"""


class TestKilledConsumers:
    def kill_one(self, url: str, topic: Topic, acked: list[str]) -> None:
        done = subprocess.run([sys.executable, "-c", KILLED, url, topic.name, ",".join(acked)], timeout=120)
        assert done.returncode == -9

    def test_what_was_acked_beyond_the_commit_does_not_come_again(self, url: str, topic: Topic) -> None:
        topic.publish(messages(12))
        self.kill_one(url, topic, ["m1", "m3", "m4", "m9"])
        got = {message.id: message.attempts for message in take(topic, 8)}
        assert got == {"m0": 2, "m2": 2, "m5": 2, "m6": 2, "m7": 2, "m8": 2, "m10": 1, "m11": 1}

    def test_a_message_that_kills_every_time_is_counted_every_time(self, url: str, topic: Topic) -> None:
        topic.publish(messages(10))
        for _ in range(3):
            self.kill_one(url, topic, [])
        assert {message.attempts for message in take(topic, 10)} == {4}


def consume(url: str, name: str, results: Any, over: Any) -> None:
    with open_topics(url) as home:
        topic = home.topic(name)
        while not over.is_set():
            received = topic.receive("g", limit=20, wait=0.3, lease=60)
            time.sleep(0.01)
            acked = topic.ack("g", received)
            results.put(([(message.key, message.id) for message in received], acked))


class TestRebalances:
    def test_two_processes_that_come_and_go_handle_everything(self, kafka: KafkaServer) -> None:
        url = kafka.url(partitions=3)
        name = f"t{uuid4().hex[:12]}"
        total = 1500
        results, over, gone = SPAWN.Queue(), SPAWN.Event(), SPAWN.Event()
        with open_topics(url) as home:
            topic = home.topic(name)
            topic.publish(messages(500, keys=7))
            first = SPAWN.Process(target=consume, args=(url, name, results, gone))
            second = SPAWN.Process(target=consume, args=(url, name, results, over))
            first.start()
            handled = results.get(timeout=60)[0]
            second.start()
            topic.publish([Message(f"m{n}", b"", f"k{n % 7}") for n in range(500, 1000)])
            deadline = time.monotonic() + 120
            while len({id for _, id in handled}) < total and time.monotonic() < deadline:
                handled += results.get(timeout=60)[0]
                if len(handled) > 700 and not gone.is_set():
                    gone.set()
                    topic.publish([Message(f"m{n}", b"", f"k{n % 7}") for n in range(1000, total)])
            over.set()
            first.join(60)
            second.join(60)
            counts = Counter(id for _, id in handled)
            assert set(counts) == {f"m{n}" for n in range(total)}
            assert sum(counts.values()) == total  # what was in hand was settled before its partition moved
            assert topic.group_state("g").pending == 0
        assert (first.exitcode, second.exitcode) == (0, 0)

    def test_receipts_of_a_partition_that_moved_change_nothing(
        self, kafka: KafkaServer, topic: Topic, url: str
    ) -> None:
        topic.publish(messages(3))
        stale = take(topic, 3)
        topic.close()
        again = take(topic, 3)
        assert topic.ack("g", stale) == 0
        assert topic.dead_letter("g", stale, "late") == 0
        assert [message.attempts for message in again] == [2, 2, 2]
        assert topic.ack("g", again) == 3


class TestServerThatGoesAway:
    def test_publishing_and_receiving_go_on_when_it_is_back(self, kafka: KafkaServer) -> None:
        name = f"t{uuid4().hex[:12]}"
        with open_topics(kafka.url(partitions=1)) as home:
            home.topic(name).publish(messages(5))  # the first one may take its time
        with open_topics(kafka.url(**{"partitions": 1, "message.timeout.ms": 1000})) as home:
            topic = home.topic(name)
            received = take(topic, 2)
            kafka.stop()
            with pytest.raises(TopicError) as caught:
                topic.publish([Message("late", b"")])
            assert caught.value.retryable
            assert "\n" not in str(caught.value)
            kafka.up()
            deadline = time.monotonic() + 60
            acked = 0
            while not acked and time.monotonic() < deadline:
                try:
                    acked = topic.ack("g", received)
                    rest = [] if acked else topic.receive("g", wait=1.0, lease=1)
                    acked = acked or topic.ack("g", rest)
                except TopicError as error:
                    if not error.retryable:
                        raise
                    time.sleep(0.2)
            while topic.group_state("g").pending and time.monotonic() < deadline:
                topic.ack("g", topic.receive("g", wait=1.0))
            assert topic.group_state("g").pending == 0

    def test_who_has_asked_before_it_was_restarted_gets_answers_soon_after(self, kafka: KafkaServer) -> None:
        """Given a restart after which partitions have new leaders, then the old ones are soon forgotten."""
        with open_topics(kafka.url(partitions=3)) as home:
            topic = home.topic(f"t{uuid4().hex[:12]}")
            topic.publish(messages(9, keys=9))
            assert topic.ack("g", take(topic, 9)) == 9
            before = topic.describe()
            kafka.stop(signal.SIGTERM)  # killed, it would keep its leaders
            kafka.up()
            failures: list[str] = []

            def state() -> object:
                try:
                    return topic.describe()
                except TopicError as error:
                    failures.append(str(error))
                    return None

            assert eventually(lambda: state() == before, 20)
            assert not [failure for failure in failures if "epoch" in failure]


class TestLargeMessages:
    def test_a_megabyte_and_the_largest_event_pass(self, topic: Topic) -> None:
        bodies = [os.urandom(1024 * 1024), os.urandom(16 * 1024 * 1024)]
        topic.publish([Message(str(n), body) for n, body in enumerate(bodies)])
        assert [message.body for message in take(topic, 2)] == bodies

    def test_twenty_megabytes_are_refused_for_good_in_one_line(self, topic: Topic) -> None:
        with pytest.raises(TopicError, match=r"too large for it .*max\.message\.bytes") as caught:
            topic.publish([Message("huge", os.urandom(20 * 1024 * 1024))])
        assert not caught.value.retryable
        assert "huge" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_one_that_is_too_large_for_the_dead_letters_blocks_nothing(self, home: Any, topic: Topic) -> None:
        home._clients.make_topic(topic.name, 1, {"max.message.bytes": "30000000"}, "here")
        topic.publish([Message("huge", os.urandom(20_000_000)), Message("small", b"x")])
        assert topic.dead_letter("g", take(topic, 2), "why", traceback="trace") == 2
        huge, small = topic.dead_letters("g")
        assert (huge.id, huge.body) == ("huge", b"")
        assert (
            huge.reason == f"its 20000000 bytes are too large for {topic.name}.g.dead and lie at {topic.name}-0-0; why"
        )
        assert (small.id, small.body, small.reason, small.traceback) == ("small", b"x", "why", "trace")
        assert topic.group_state("g").pending == 0


class TestForeigners:
    def test_a_record_that_is_nested_too_deeply_is_received_as_any_other(
        self, kafka: KafkaServer, topic: Topic
    ) -> None:
        topic.publish(messages(1))
        producer = Producer({"bootstrap.servers": kafka.servers})
        producer.produce(topic.name, b'{"x":' + b"[" * 100_000)
        producer.flush(30)
        topic.publish([Message("behind", b"")])
        assert [message.id for message in take(topic, 3)] == ["m0", f"{topic.name}-0-1", "behind"]

    def test_records_of_other_producers_have_the_id_of_their_event_or_their_place(
        self, kafka: KafkaServer, topic: Topic
    ) -> None:
        topic.publish(messages(1))
        event = Event.new("a.b", {"cls_type": "x"})
        producer = Producer({"bootstrap.servers": kafka.servers})
        producer.produce(topic.name, encode(event), key=b"\xff")
        producer.produce(topic.name, b"not json")
        producer.flush(30)
        assert [(m.id, m.key) for m in take(topic, 3)] == [
            ("m0", None),
            (event.header.id, None),
            (f"{topic.name}-0-2", None),
        ]

    def test_other_tools_see_the_offset_below_which_all_is_settled(self, kafka: KafkaServer, topic: Topic) -> None:
        topic.publish(messages(4))
        received = take(topic, 4)
        topic.ack("g", [received[0], received[2]])
        assert committed(kafka, topic) == 1


class TestCommits:
    def test_no_commit_passes_a_dead_letter_that_is_not_written_yet(
        self, kafka: KafkaServer, topic: Topic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic.publish(messages(2))
        dying, other = take(topic, 2)
        writing, go_on = threading.Event(), threading.Event()
        write = DeadLetters.write

        def slowly(letters: DeadLetters, given_up: Any) -> None:
            writing.set()
            assert go_on.wait(60)
            write(letters, given_up)

        monkeypatch.setattr(DeadLetters, "write", slowly)
        thread = threading.Thread(target=topic.dead_letter, args=("g", [dying], "why"))
        thread.start()
        assert writing.wait(60)
        assert topic.ack("g", [other]) == 1
        before = committed(kafka, topic)
        go_on.set()
        thread.join(60)
        assert (before, committed(kafka, topic)) == (0, 2)
        assert [letter.id for letter in topic.dead_letters("g")] == ["m0"]


class TestMemory:
    def test_what_was_acked_is_not_kept_until_its_lease_is_over(self, topic: Topic) -> None:
        topic.publish(messages(5000))
        left = 5000
        while left:
            left -= topic.ack("g", topic.receive("g", limit=500, wait=5, lease=300))
        assert sum(isinstance(one, FetchedMessage) for one in gc.get_objects()) < 2500


class TestStragglers:
    def test_many_that_wait_stay_where_they_are(self, home: Topics, topic: Topic) -> None:
        topic.publish(messages(6000))
        left = 6000
        while left:
            received = topic.receive("g", limit=500, wait=5, lease=60)
            left -= topic.release("g", received, delay=300)
        assert eventually(lambda: topic.group_state("g").waiting == 6000)
        retries = home.topic(f"{topic.name}.g.retry")
        before = retries.describe().messages
        time.sleep(1)
        assert retries.describe().messages == before <= 6000

    def test_a_few_that_wait_do_not_hold_the_commit_back(self, topic: Topic) -> None:
        topic.publish(messages(5000))
        first = take(topic, 10)
        topic.release("g", first, delay=5)
        rest: list[Received] = []
        while len(rest) < 4990:
            some = topic.receive("g", limit=500, wait=5, lease=60)
            topic.ack("g", some)
            rest += [message for message in some if message.attempts == 1]
        again = take(topic, 10)
        assert sorted(message.id for message in again) == sorted(message.id for message in first)
        assert {message.attempts for message in again} == {2}
        topic.ack("g", again)
        assert topic.group_state("g").pending == 0


class TestSlowHandlers:
    def test_a_member_that_handles_for_longer_than_the_poll_interval_stays_in_its_group(
        self, kafka: KafkaServer
    ) -> None:
        url = kafka.url(**{"partitions": 1, "max.poll.interval.ms": 2000, "session.timeout.ms": 2000})
        with open_topics(url) as home:
            topic = home.topic(f"t{uuid4().hex[:12]}")
            topic.publish(messages(2))
            received = take(topic, 2)
            time.sleep(3)
            assert topic.ack("g", received) == 2
