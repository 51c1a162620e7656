"""How every topic publishes and receives messages, reports its state, and moves groups."""

from __future__ import annotations

import os
import threading
import time
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError, TopicError
from balog.testing.contracts.abilities import needs
from balog.testing.contracts.topic_fixtures import TopicFixtures, ack, eventually, ids, messages, take
from balog.topics import Message, Received, Topic, Topics


class MessageContract(TopicFixtures):
    """Publishing, receiving, keys, groups and names."""

    def test_a_topic_declares_its_abilities(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert topic.keeps_groups == self.keeps_groups
        assert topic.keeps_order == self.keeps_order
        assert topic.keeps_ids == self.keeps_ids
        assert topic.counts_attempts == self.counts_attempts

    def test_messages_are_received_in_the_order_of_publishing(self, topic: Topic) -> None:
        topic.publish(messages("b", "a"))
        topic.publish(messages("c"))
        assert self.is_in_order(topic, ids(take(topic, 3)), ["b", "a", "c"])

    def test_hundreds_of_messages_are_published_at_once(self, topic: Topic) -> None:
        sent = [f"m{number}" for number in range(250)]
        assert topic.publish([Message(id, b"", self.key_of(id)) for id in sent]) == len(sent)
        assert self.is_in_order(topic, ids(take(topic, len(sent))), sent)

    def test_a_received_message_is_the_published_one(self, topic: Topic) -> None:
        before = time.time()
        topic.publish([Message("a", b"body")])
        (received,) = take(topic, 1)
        assert (received.id, received.body, received.attempts) == ("a", b"body", 1)
        assert before - 1 <= received.published <= time.time() + 1

    def test_no_more_than_the_limit_is_received(self, topic: Topic) -> None:
        topic.publish([Message(id, b"", self.key_of(id)) for id in "abc"])
        received: list[Received] = []
        while len(received) < 3:
            some = topic.receive("g", limit=2, wait=30, lease=60)
            assert 1 <= len(some) <= 2
            received += some
        assert self.is_in_order(topic, ids(received), ["a", "b", "c"])

    def test_the_first_message_creates_the_topic(self, topic: Topic) -> None:
        assert topic.publish([]) == 0
        assert not topic.exists()
        assert topic.publish(messages("a")) == 1
        assert topic.exists()

    @needs("keeps_ids")
    def test_a_known_id_is_not_stored_again(self, topic: Topic) -> None:
        assert topic.publish(messages("a", "b", "a")) == 2
        assert topic.publish([Message("b", b"another body"), *messages("c")]) == 1
        received = take(topic, 3)
        assert {message.id: message.body for message in received} == {i: f"body of {i}".encode() for i in "abc"}
        ack(topic, received)
        assert topic.publish(messages("a")) == 0
        assert topic.publish_new(messages("c", "d")) == {"d"}
        assert ids(take(topic, 1)) == ["d"]

    def test_another_process_sees_what_was_published(self, url: str, name: str, backend: Topics, topic: Topic) -> None:
        topic.publish(messages("a"))
        with self.another(url, backend) as other:
            assert ids(take(other.topic(name), 1)) == ["a"]

    def test_any_bytes_are_a_body(self, topic: Topic) -> None:
        bodies = [b"", b"\0", b"a\0b\n", b"\xff\xfe", b'{"not": json', "ä\u2028😀".encode(), bytes(range(256))]
        topic.publish([Message(f"m{number}", body) for number, body in enumerate(bodies)])
        received = {message.id: message.body for message in take(topic, len(bodies))}
        assert received == {f"m{number}": body for number, body in enumerate(bodies)}

    def test_a_large_body_is_received_whole(self, topic: Topic) -> None:
        bodies = {f"m{number}": os.urandom(self.large_body) for number in range(3)}
        topic.publish([Message(id, body) for id, body in bodies.items()])
        assert {message.id: message.body for message in take(topic, 3)} == bodies

    @settings(
        max_examples=30,
        deadline=None,
        database=None,  # every kind of topic has examples of its own
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(st.dictionaries(st.from_regex(r"\A[!-~]{1,60}\Z"), st.binary(max_size=2000), min_size=1, max_size=20))
    def test_published_and_received_bodies_are_equal(self, topic: Topic, bodies: dict[str, bytes]) -> None:
        here = uuid4().hex[:8]  # one topic for all examples: on a server each costs seconds
        sent = {f"{here}{id}": body for id, body in bodies.items()}
        assert topic.publish([Message(id, body, self.key_of(id)) for id, body in sent.items()]) == len(sent)
        received = take(topic, len(sent))
        assert {message.id: message.body for message in received} == sent
        assert self.is_in_order(topic, ids(received), list(sent))
        ack(topic, received)

    def test_receive_waits_for_a_message(self, topic: Topic, name: str, url: str, backend: Topics) -> None:
        topic.publish(messages("first"))
        ack(topic, take(topic, 1))

        def publish_later() -> None:
            time.sleep(0.2)
            with self.another(url, backend) as other:
                other.topic(name).publish(messages("late"))

        thread = threading.Thread(target=publish_later)
        thread.start()
        assert ids(topic.receive("g", wait=30)) == ["late"]
        thread.join()

    @needs("keeps_keys")
    def test_a_message_keeps_its_key(self, topic: Topic) -> None:
        topic.publish([Message("a", b"", "customer 7"), Message("b", b"", "ä/😀"), Message("c", b"")])
        assert {message.id: message.key for message in take(topic, 3)} == {"a": "customer 7", "b": "ä/😀", "c": None}

    @needs("keeps_key_order")
    def test_messages_of_one_key_are_received_in_order(self, topic: Topic) -> None:
        sent = [Message(f"m{number}", b"", f"key {number % 3}") for number in range(30)]
        topic.publish(sent[:17])
        topic.publish(sent[17:])
        received: list[Received] = []
        while len(received) < len(sent):  # a queue may hold a key back until its messages are acked
            some = topic.receive("g", wait=30, lease=60)
            assert some
            ack(topic, some)
            received += some
        for key in range(3):
            assert [i for i in ids(received) if int(i[1:]) % 3 == key] == [m.id for m in sent[key::3]]

    @needs("keeps_groups")
    def test_each_group_gets_every_message(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        ack(topic, take(topic, 2, "one"), "one")
        assert self.is_in_order(topic, ids(take(topic, 2, "two")), ["a", "b"])
        assert self.is_empty(topic, "one")

    @needs("keeps_groups", False)
    def test_a_queue_has_one_group(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        ack(topic, take(topic, 1, "one"), "one")
        assert self.is_empty(topic, "two")

    @needs("keeps_groups")
    def test_a_receipt_is_invalid_in_another_group(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = take(topic, 1, "one")
        take(topic, 1, "two", lease=self.lease)
        assert topic.ack("two", received) == 0
        self.wait_past_lease()
        assert ids(take(topic, 1, "two")) == ["a"]

    @pytest.mark.parametrize("bad", ["", ".", "..", "../x", "a/b", ".hidden", "a b", "ä", "a\n", "a\0", "x" * 201])
    def test_an_invalid_name_is_rejected(self, backend: Topics, topic: Topic, bad: str) -> None:
        with pytest.raises(ConfigError, match="can't be used"):
            backend.topic(bad)
        topic.publish(messages("a"))
        with pytest.raises(ConfigError, match="can't be used"):
            topic.receive(bad)

    def test_a_valid_name_is_accepted(self, backend: Topics) -> None:
        good = self.valid_names()
        for name in good:
            backend.topic(name).publish(messages("a"))
        assert set(good) <= set(backend.names())
        for name in good:
            assert ids(take(backend.topic(name), 1)) == ["a"]


class StateContract(TopicFixtures):
    """Peeking, seeking, counts and the list of topics."""

    def test_peeking_leaves_messages_to_groups(self, topic: Topic) -> None:
        topic.publish([Message("a", b"one"), Message("b", b"two"), Message("c", b"three")])
        seen = {message.id: message.body for message in topic.peek(limit=3)}
        assert set(seen.items()) <= {("a", b"one"), ("b", b"two"), ("c", b"three")}
        assert seen
        assert sorted(ids(take(topic, 3))) == ["a", "b", "c"]

    @needs("keeps_order")
    def test_peeking_returns_the_oldest_or_the_newest_in_order(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        assert ids(topic.peek(limit=2)) == ["a", "b"]
        assert ids(topic.peek(limit=2, newest=True)) == ["b", "c"]
        assert ids(topic.peek(limit=10)) == ids(topic.peek(limit=10, newest=True)) == ["a", "b", "c"]

    @needs("can_seek")
    def test_a_group_can_seek_to_the_earliest_message(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        ack(topic, take(topic, 2))
        assert topic.seek("g", "earliest").lag == 2
        assert sorted((message.id, message.attempts) for message in take(topic, 2)) == [("a", 1), ("b", 1)]

    @needs("can_seek")
    def test_a_group_can_seek_to_the_latest_message(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        first = take(topic, 1)
        topic.release("g", first, delay=60)
        topic.close()
        assert topic.seek("g", "latest").pending == 0
        topic.publish(messages("d"))
        assert ids(take(topic, 1)) == ["d"]

    @needs("can_seek")
    def test_a_group_can_seek_to_a_time(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        time.sleep(0.05)
        between = time.time()
        time.sleep(0.05)
        topic.publish(messages("c"))
        assert topic.seek("g", between).lag == 1
        assert ids(take(topic, 1)) == ["c"]

    @needs("can_seek")
    def test_an_unknown_group_can_seek(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.seek("new", "latest")
        topic.publish(messages("b"))
        assert ids(take(topic, 1, "new")) == ["b"]

    @needs("can_seek")
    def test_a_group_with_messages_in_flight_cannot_seek(
        self, url: str, name: str, backend: Topics, topic: Topic
    ) -> None:
        topic.publish(messages("a"))
        take(topic, 1)
        with self.another(url, backend) as other, pytest.raises(TopicError):
            other.topic(name).seek("g", "earliest")

    @needs("can_seek", False)
    def test_a_queue_cannot_seek(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        with pytest.raises(TopicError) as caught:
            topic.seek("g", "earliest")
        assert not caught.value.retryable

    @needs("counts_exactly")
    def test_the_state_counts_lag_in_flight_waiting_and_dead(self, topic: Topic, name: str) -> None:
        topic.publish(messages("a", "b", "c", "d", "e", "f"))
        first = take(topic, 4)
        topic.ack("g", first[:1])
        topic.release("g", first[1:2], delay=60)
        topic.dead_letter("g", first[2:3], "why")
        state = topic.describe()
        assert (state.name, state.messages) == (name, 6)
        assert state.bytes in (None, 6 * len("body of a"))
        assert state.oldest is None or state.oldest == pytest.approx(time.time(), abs=60)
        assert [group.name for group in state.groups] == ["g"]
        group = topic.group_state("g")
        assert group == state.groups[0]
        assert (group.lag, group.in_flight, group.waiting, group.dead, group.pending) == (2, 1, 1, 1, 4)

    def test_pending_messages_and_dead_letters_are_counted(self, topic: Topic, name: str) -> None:
        topic.publish(messages("a", "b", "c", "d"))
        first = take(topic, 3)
        topic.ack("g", first[:1])
        topic.dead_letter("g", first[1:2], "why")
        assert eventually(lambda: topic.group_state("g").pending == 2)
        assert eventually(lambda: topic.group_state("g").dead == 1)
        state = topic.describe()
        assert state.name == name
        assert state.messages >= 2
        ack(topic, first[2:])
        ack(topic, take(topic, 1))
        assert eventually(lambda: topic.group_state("g").pending == 0)

    def test_a_missing_topic_is_one_clear_error(self, topic: Topic) -> None:
        for use in (topic.peek, topic.describe, lambda: topic.redrive("g", lambda dead_letter: dead_letter.body)):
            with pytest.raises(TopicError) as caught:
                use()
            assert topic.name in str(caught.value)
            assert "\n" not in str(caught.value)

    def test_a_backend_lists_its_topics(self, backend: Topics) -> None:
        first, second, never = sorted(self.new_name() for _ in range(3))
        backend.topic(second).publish(messages("a"))
        backend.topic(first).publish(messages("a"))
        backend.topic(never)
        names = backend.names()
        assert names == sorted(names)
        assert [name for name in names if name in (first, second, never)] == [first, second]

    def test_a_closed_topic_opens_again(self, backend: Topics, topic: Topic) -> None:
        topic.publish(messages("a"))
        backend.close()
        assert ids(take(topic, 1)) == ["a"]
