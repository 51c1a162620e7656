"""How every topic leases messages, settles them by their receipts, keeps dead letters and redrives them."""

from __future__ import annotations

import time

import pytest

from balog.testing.contracts.abilities import needs
from balog.testing.contracts.topic_fixtures import TopicFixtures, ack, eventually, ids, messages, take
from balog.topics import DeadLetter, Generation, GivenUp, Message, Topic


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


class DeadLetterContract(TopicFixtures):
    """Dead letters, redrives and generations."""

    def test_a_dead_letter_keeps_its_details_and_is_not_redelivered(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        received = {message.id: message for message in take(topic, 2)}
        began = time.time()
        changed = topic.dead_letter(
            "g",
            [received["a"]],
            "the reason\nin two lines, odd: \udcff\0",
            consumers=["shop.bill", "shop.ship"],
            traceback="Traceback …\n  File ä\n\udcff",
        )
        assert changed == 1
        ack(topic, [received["b"]])
        assert self.is_empty(topic)
        assert eventually(lambda: len(topic.dead_letters("g")) == 1)
        (dead,) = topic.dead_letters("g")
        assert (dead.id, dead.body, dead.attempts) == ("a", b"body of a", 1)
        assert dead.reason.startswith("the reason\nin two lines")
        assert dead.consumers == ("shop.bill", "shop.ship")
        assert dead.traceback.startswith("Traceback …\n  File ä\n")
        assert began - 2 <= dead.died <= time.time() + 2

    @needs("keeps_groups")
    def test_a_dead_letter_belongs_to_one_group(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.dead_letter("g", take(topic, 1), "why")
        assert [dead_letter.group for dead_letter in topic.dead_letters("g")] == ["g"]
        assert topic.dead_letters("other") == []
        assert ids(take(topic, 1, "other")) == ["a"]

    def test_each_of_many_dead_letters_keeps_its_reason(self, topic: Topic) -> None:
        names = [f"m{number}" for number in range(23)]
        topic.publish([Message(name, b"\xff no event " + name.encode(), self.key_of(name)) for name in names])
        received = take(topic, len(names))
        given_up = [
            GivenUp(message, f"why {message.id}", ("c",) if message.id < "m2" else (), "t" * n)
            for n, message in enumerate(received)
        ]
        assert topic.dead_letter_each("g", given_up) == len(names)
        assert not self.detects_stale_receipts or topic.dead_letter_each("g", given_up) == 0
        assert eventually(lambda: len(topic.dead_letters("g")) == len(names))
        assert len(topic.dead_letters("g", limit=2)) == 2
        dead_letters = {dead_letter.id: dead_letter for dead_letter in topic.dead_letters("g")}
        assert {id: dead_letter.reason for id, dead_letter in dead_letters.items()} == {
            name: f"why {name}" for name in names
        }
        for entry in given_up:
            dead_letter = dead_letters[entry.received.id]
            assert (dead_letter.body, dead_letter.consumers, dead_letter.traceback) == (
                entry.received.body,
                entry.consumers,
                entry.traceback,
            )
        assert self.is_empty(topic)

    def make_dead_letters(self, topic: Topic, *names: str) -> None:
        topic.publish(messages(*names))
        topic.dead_letter("g", take(topic, len(names)), "why", consumers=["c"], traceback="t")
        assert eventually(lambda: len(topic.dead_letters("g")) == len(names))

    def test_a_redriven_dead_letter_is_delivered_as_new(self, topic: Topic) -> None:
        self.make_dead_letters(topic, "a")
        assert topic.redrive("g", lambda dead_letter: dead_letter.body) == 1
        assert topic.dead_letters("g") == []
        (again,) = take(topic, 1)
        assert (again.id, again.body, again.attempts) == ("a", b"body of a", 1)
        assert topic.ack("g", [again]) == 1
        assert self.is_empty(topic)
        assert topic.redrive("g", lambda dead_letter: dead_letter.body) == 0

    def test_a_redrive_can_change_bodies_and_skip_dead_letters(self, topic: Topic) -> None:
        self.make_dead_letters(topic, "a", "b", "c")
        seen: list[DeadLetter] = []

        def decide(dead_letter: DeadLetter) -> bytes | None:
            seen.append(dead_letter)
            return b"mended " + dead_letter.body if dead_letter.id == "b" else None

        assert topic.redrive("g", decide) == 1
        assert sorted(dead_letter.id for dead_letter in seen) == ["a", "b", "c"]
        assert {(dead_letter.reason, dead_letter.consumers, dead_letter.traceback) for dead_letter in seen} == {
            ("why", ("c",), "t")
        }
        assert [(message.id, message.body) for message in take(topic, 1)] == [("b", b"mended body of b")]
        assert eventually(lambda: sorted(dead_letter.id for dead_letter in topic.dead_letters("g")) == ["a", "c"])

    @needs("keeps_keys")
    def test_a_redriven_message_keeps_its_key(self, topic: Topic) -> None:
        topic.publish([Message("a", b"", "customer 7")])
        topic.dead_letter("g", take(topic, 1), "why")
        assert eventually(lambda: topic.redrive("g", lambda dead_letter: dead_letter.body) == 1)
        assert [(message.id, message.key) for message in take(topic, 1)] == [("a", "customer 7")]

    def test_the_limit_of_a_redrive_counts_kept_and_redriven_dead_letters(self, topic: Topic) -> None:
        self.make_dead_letters(topic, "a", "b", "c")
        seen: list[DeadLetter] = []

        def keep(dead_letter: DeadLetter) -> None:
            seen.append(dead_letter)

        assert topic.redrive("g", keep, limit=2) == 0
        assert len(seen) == 2
        assert topic.redrive("g", lambda dead_letter: dead_letter.body, limit=2) == 2
        assert len(take(topic, 2)) == 2
        assert eventually(lambda: len(topic.dead_letters("g")) == 1)

    @needs("can_seek")
    def test_a_replay_delivers_a_redriven_message_twice(self, topic: Topic) -> None:
        """Once as it was published, once as it was redriven."""
        self.make_dead_letters(topic, "a")
        topic.redrive("g", lambda dead_letter: b"mended")
        topic.release("g", take(topic, 1))
        topic.close()
        assert topic.seek("g", "earliest").pending == 2
        received = take(topic, 2)
        assert sorted(message.body for message in received) == [b"body of a", b"mended"]
        assert topic.ack("g", received) == 2

    def test_a_dead_letter_stays_if_the_decision_raises(self, topic: Topic) -> None:
        self.make_dead_letters(topic, "a")

        def decide(dead_letter: DeadLetter) -> bytes | None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            topic.redrive("g", decide)
        assert eventually(lambda: [dead_letter.id for dead_letter in topic.dead_letters("g")] == ["a"])
        assert topic.redrive("g", lambda dead_letter: dead_letter.body) == 1
        assert ids(take(topic, 1)) == ["a"]

    def test_a_redriven_message_can_be_retried_and_dead_lettered_again(self, topic: Topic) -> None:
        self.make_dead_letters(topic, "a")
        topic.redrive("g", lambda dead_letter: b"second")
        topic.release("g", take(topic, 1))
        (again,) = take(topic, 1)
        assert (again.body, again.attempts) == (b"second", 2)
        assert topic.dead_letter("g", [again], "once more") == 1
        assert eventually(lambda: len(topic.dead_letters("g")) == 1)
        (dead,) = topic.dead_letters("g")
        assert (dead.id, dead.body, dead.reason, dead.attempts) == ("a", b"second", "once more", 2)

    @needs("keeps_groups")
    def test_a_redriven_message_reaches_no_other_group(self, topic: Topic) -> None:
        self.make_dead_letters(topic, "a")
        ack(topic, take(topic, 1, "other"), "other")
        topic.redrive("g", lambda dead_letter: dead_letter.body)
        assert ids(take(topic, 1)) == ["a"]
        assert self.is_empty(topic, "other")

    def test_a_message_keeps_its_generation_until_it_is_redriven(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        (first,) = take(topic, 1)
        topic.release("g", [first])
        (second,) = take(topic, 1)
        assert first.generation == second.generation == Generation()
        for _ in range(2):
            before = second.generation
            topic.dead_letter("g", [second], "why")
            assert eventually(lambda: topic.redrive("g", lambda dead_letter: dead_letter.body) == 1)
            (third,) = take(topic, 1)
            topic.release("g", [third])
            (second,) = take(topic, 1)
            assert second.generation == third.generation > before
            assert second.generation.replay == before.replay

    @needs("can_seek")
    def test_a_seek_begins_a_replay_that_its_dead_letters_belong_to(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        replays = []
        for _ in range(3):
            (received,) = take(topic, 1)
            replays.append(received.generation.replay)
            ack(topic, [received])
            topic.close()
            topic.seek("g", "earliest")
        assert replays == sorted(set(replays))
        (received,) = take(topic, 1)
        topic.dead_letter("g", [received], "why")
        topic.redrive("g", lambda dead_letter: dead_letter.body)
        (again,) = take(topic, 1)
        assert again.generation > received.generation
        assert again.generation.replay == received.generation.replay > replays[-1]
