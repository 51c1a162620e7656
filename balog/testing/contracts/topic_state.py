"""How every topic reports its state, and moves groups."""

from __future__ import annotations

import time

import pytest

from balog.common.errors import TopicError
from balog.testing.contracts.abilities import needs
from balog.testing.contracts.topic_fixtures import TopicFixtures, ack, eventually, ids, messages, take
from balog.topics import Message, Topic, Topics


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
