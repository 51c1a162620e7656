"""How every topic leases messages, and settles them by their receipts."""

from __future__ import annotations

import time

from balog.testing.contracts.abilities import needs
from balog.testing.contracts.topic_fixtures import TopicFixtures, ids, messages, take
from balog.topics import Message, Topic


class LeaseContract(TopicFixtures):
    """Leases, receipts, acks, releases and extensions."""

    def test_a_message_in_flight_is_not_delivered_again(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert ids(take(topic, 1)) == ["a"]
        assert self.is_empty(topic)

    def test_a_message_whose_lease_expired_is_delivered_again(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        take(topic, 1, lease=self.lease)
        self.wait_past_lease()
        topic.publish(messages("b"))
        again = take(topic, 2)
        assert sorted((message.id, message.attempts) for message in again) == [("a", 2), ("b", 1)]

    @needs("keeps_order")
    def test_redelivered_messages_come_before_new_ones(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        topic.release("g", take(topic, 2))
        assert ids(take(topic, 3)) == ["a", "b", "c"]

    @needs("detects_stale_receipts")
    def test_a_stale_receipt_changes_nothing(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        stale = take(topic, 1, lease=self.lease)
        self.wait_past_lease()
        fresh = take(topic, 1)
        assert topic.ack("g", stale) == 0
        assert topic.release("g", stale) == 0
        assert topic.extend("g", stale) == 0
        assert topic.dead_letter("g", stale, "why") == 0
        assert self.is_empty(topic)
        assert topic.dead_letters("g") == []
        assert topic.ack("g", fresh) == 1

    def test_a_late_ack_counts_if_the_message_was_not_redelivered(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = take(topic, 1, lease=self.lease)
        self.wait_past_lease()
        assert topic.ack("g", received) == 1
        assert self.is_empty(topic)

    def test_an_acked_message_is_never_redelivered(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        received = take(topic, 2, lease=max(self.lease, 1.0))
        assert topic.ack("g", received) == 2
        if self.detects_stale_receipts:
            assert topic.ack("g", received) == 0
        time.sleep(max(self.lease, 1.0) * 1.5)
        assert self.is_empty(topic)

    def test_acking_nothing_changes_nothing(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert topic.ack("g", []) == topic.release("g", []) == topic.extend("g", []) == 0
        assert topic.dead_letter("g", [], "why") == 0
        assert ids(take(topic, 1)) == ["a"]

    def test_a_released_message_is_redelivered_after_its_delay(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = take(topic, 1)
        begin = time.time()
        assert topic.release("g", received, delay=self.delay) == 1
        again = topic.receive("g", wait=30)
        assert [(message.id, message.attempts) for message in again] == [("a", 2)]
        assert time.time() - begin >= self.delay * 0.9

    @needs("keeps_keys")
    def test_a_redelivered_message_is_the_published_one(self, topic: Topic) -> None:
        topic.publish([Message("a", b"body", "customer 7")])
        first = take(topic, 1)
        time.sleep(0.05)
        topic.release("g", first)
        (again,) = take(topic, 1)
        assert (again.id, again.body, again.key) == ("a", b"body", "customer 7")
        assert abs(again.published - first[0].published) < 0.01

    def test_each_delivery_is_one_more_attempt(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        attempts = []
        for _ in range(6):
            received = take(topic, 1)
            attempts.append(received[0].attempts)
            topic.release("g", received)
        assert attempts == [1, 2, 3, 4, 5, 6]

    @needs("counts_attempts")
    def test_a_delivery_without_an_attempt_does_not_count(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.release("g", take(topic, 1), attempted=False)
        assert [message.attempts for message in take(topic, 1)] == [1]

    def test_an_extended_lease_expires_later(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        received = take(topic, 3, lease=max(self.lease, 1.0))
        assert topic.extend("g", received, lease=60) == 3
        time.sleep(max(self.lease, 1.0) * 1.5)
        assert self.is_empty(topic)
        assert topic.ack("g", received) == 3

    def test_an_extension_counts_from_now(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert topic.extend("g", take(topic, 1, lease=600), lease=self.lease) == 1
        assert [(message.id, message.attempts) for message in take(topic, 1)] == [("a", 2)]
