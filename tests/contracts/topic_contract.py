"""What every topic must do. A kind of topic is tested by a class that inherits this one and gives a ``url``.

What a home can't do, the class says (see the attributes). A server may be shared: every test has topics of its own.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.consumers import Consumer, ConsumerHub, Engine, EngineStats
from balog.consumers.ledger import Ledger
from balog.consumers.ledgers import MemoryLedger
from balog.errors import ConfigError, TopicError
from balog.event import Event, encode
from balog.topics import DeadLetter, Generation, GivenUp, Message, Received, Topic, Topics, open_topics
from tests.contracts.topic_processes import consume_in_process, publish_in_process


def messages(*ids: str) -> list[Message]:
    return [Message(id, f"body of {id}".encode()) for id in ids]


def ids(received: list[Received]) -> list[str]:
    return [message.id for message in received]


def take(topic: Topic, count: int, group: str = "g", *, lease: float = 60.0, seconds: float = 60.0) -> list[Received]:
    """Receive until there are so many, or nothing has come for long: a home may hand out few at a time."""
    taken: list[Received] = []
    deadline = time.monotonic() + seconds
    while len(taken) < count and time.monotonic() < deadline:
        taken += topic.receive(group, limit=count - len(taken), wait=1.0, lease=lease)
    return taken


def ack(topic: Topic, received: list[Received], group: str = "g") -> None:
    topic.ack(group, received)


def eventually(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Ask until it is so: a server's counts may come late."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def needs(ability: str, wanted: bool = True) -> Callable[[Any], Any]:
    """Have a test only for the homes that have an ability, an attribute of the contract, or that lack it."""

    def mark(test: Any) -> Any:
        test.needs = (ability, wanted)
        return test

    return mark


class TopicContract:
    """Attributes:
    keeps_groups: as the home's topics say; ``keeps_order``, ``keeps_ids`` and ``counts_attempts`` as well.
    lease: seconds, the shortest lease that the home can do.
    delay: seconds, a short delay of a release that it can do.
    idle: seconds of ``wait`` in which a message that is there comes for sure.
    large: bytes of a body that is large for it.
    many: messages that several processes share.
    longest_name: characters that a topic's name may have.
    name_ends: what the characters after the first ones of a good name may be.
    keeps_keys: a received message has its key.
    keeps_key_order: messages of one key come in order.
    tells_stale: a receipt that was used, or is another's by now, is seen to be stale.
    tells_apart: messages never received, in flight and waiting are counted each for itself.
    hands_out_once: several processes never get one message twice while its lease runs.
    reaches_processes: another process can open the same home.
    survives_fork: a child may go on with what its parent opened.
    seeks: a group can go on from elsewhere.
    """

    keeps_groups: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True
    keeps_ids: ClassVar[bool] = True
    counts_attempts: ClassVar[bool] = True
    lease: ClassVar[float] = 0.2
    delay: ClassVar[float] = 0.4
    idle: ClassVar[float] = 0.05
    large: ClassVar[int] = 1024 * 1024
    many: ClassVar[int] = 400
    longest_name: ClassVar[int] = 200
    name_ends: ClassVar[tuple[str, ...]] = ("", ".sync.done", "_x", "-X0")
    keeps_keys: ClassVar[bool] = True
    keeps_key_order: ClassVar[bool] = True
    tells_stale: ClassVar[bool] = True
    tells_apart: ClassVar[bool] = True
    hands_out_once: ClassVar[bool] = True
    reaches_processes: ClassVar[bool] = True
    survives_fork: ClassVar[bool] = True
    seeks: ClassVar[bool] = True

    @pytest.fixture
    def home(self, url: str) -> Iterator[Topics]:
        with open_topics(url) as home:
            yield home

    @pytest.fixture
    def name(self) -> str:
        return self.new_name()

    @pytest.fixture
    def topic(self, home: Topics, name: str) -> Topic:
        return home.topic(name)

    def new_name(self) -> str:
        """Give the name of a topic that nobody used yet."""
        return f"t{uuid4().hex[:16]}"

    def good_names(self) -> list[str]:
        """Give names that topics can have, the longest one too."""
        return [*(self.new_name() + end for end in self.name_ends), self.new_name().ljust(self.longest_name, "x")]

    def key_of(self, id: str) -> str | None:
        """Give a key for a message that must not be held up by others, where those of one key, or of none, are."""
        return None

    def another(self, url: str, home: Topics) -> Any:
        """Open the same home once more, as another process would; a context."""
        return open_topics(url)

    def is_silent(self, topic: Topic, group: str = "g") -> bool:
        return topic.receive(group, wait=self.idle) == []

    def outlast_lease(self) -> None:
        time.sleep(self.lease * 1.5)

    def in_order(self, topic: Topic, got: list[str], expected: list[str]) -> bool:
        return got == expected if topic.keeps_order else sorted(got) == sorted(expected)

    def __init_subclass__(cls) -> None:
        """Leave out what the home can't do: to skip it would count as a server that is missing."""
        for name, test in vars(TopicContract).items():
            ability, wanted = getattr(test, "needs", ("", None))
            if ability and name not in vars(cls):
                setattr(cls, name, test if getattr(cls, ability) == wanted else None)

    def test_a_topic_says_what_it_keeps(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert topic.keeps_groups == self.keeps_groups
        assert topic.keeps_order == self.keeps_order
        assert topic.keeps_ids == self.keeps_ids
        assert topic.counts_attempts == self.counts_attempts

    # -- publishing and receiving

    def test_messages_come_in_the_order_of_publishing(self, topic: Topic) -> None:
        topic.publish(messages("b", "a"))
        topic.publish(messages("c"))
        assert self.in_order(topic, ids(take(topic, 3)), ["b", "a", "c"])

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
        assert self.in_order(topic, ids(received), ["a", "b", "c"])

    def test_publishing_nothing_stores_nothing(self, topic: Topic) -> None:
        assert topic.publish([]) == 0
        assert not topic.exists()

    def test_publishing_makes_the_topic(self, topic: Topic) -> None:
        assert topic.publish(messages("a")) == 1
        assert topic.exists()

    @needs("keeps_ids")
    def test_a_message_whose_id_is_held_is_not_stored_twice(self, topic: Topic) -> None:
        assert topic.publish(messages("a", "b", "a")) == 2
        assert topic.publish([Message("b", b"another body"), *messages("c")]) == 1
        received = take(topic, 3)
        assert {message.id: message.body for message in received} == {i: f"body of {i}".encode() for i in "abc"}
        ack(topic, received)
        assert topic.publish(messages("a")) == 0
        assert self.is_silent(topic)

    def test_another_process_sees_what_was_published(self, url: str, name: str, home: Topics, topic: Topic) -> None:
        topic.publish(messages("a"))
        with self.another(url, home) as other:
            assert ids(take(other.topic(name), 1)) == ["a"]

    def test_any_bytes_are_a_body(self, topic: Topic) -> None:
        bodies = [b"", b"\0", b"a\0b\n", b"\xff\xfe", b'{"not": json', "ä\u2028😀".encode(), bytes(range(256))]
        topic.publish([Message(f"m{number}", body) for number, body in enumerate(bodies)])
        received = {message.id: message.body for message in take(topic, len(bodies))}
        assert received == {f"m{number}": body for number, body in enumerate(bodies)}

    def test_a_large_body_comes_whole(self, topic: Topic) -> None:
        bodies = {f"m{number}": os.urandom(self.large) for number in range(3)}
        topic.publish([Message(id, body) for id, body in bodies.items()])
        assert {message.id: message.body for message in take(topic, 3)} == bodies

    @settings(
        max_examples=30,
        deadline=None,
        database=None,  # every kind of topic has examples of its own
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(st.dictionaries(st.from_regex(r"\A[!-~]{1,60}\Z"), st.binary(max_size=2000), min_size=1, max_size=20))
    def test_what_is_published_is_what_is_received(self, topic: Topic, bodies: dict[str, bytes]) -> None:
        here = uuid4().hex[:8]  # one topic for all examples: on a server each costs seconds
        sent = {f"{here}{id}": body for id, body in bodies.items()}
        assert topic.publish([Message(id, body, self.key_of(id)) for id, body in sent.items()]) == len(sent)
        received = take(topic, len(sent))
        assert {message.id: message.body for message in received} == sent
        assert self.in_order(topic, ids(received), list(sent))
        ack(topic, received)

    def test_receive_waits_for_a_message(self, topic: Topic, name: str, url: str, home: Topics) -> None:
        topic.publish(messages("first"))
        ack(topic, take(topic, 1))

        def publish_later() -> None:
            time.sleep(0.2)
            with self.another(url, home) as other:
                other.topic(name).publish(messages("late"))

        thread = threading.Thread(target=publish_later)
        thread.start()
        assert ids(topic.receive("g", wait=30)) == ["late"]
        thread.join()

    def test_receive_gives_nothing_when_nothing_comes(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        take(topic, 1)
        assert self.is_silent(topic)

    @needs("keeps_keys")
    def test_a_message_keeps_its_key(self, topic: Topic) -> None:
        topic.publish([Message("a", b"", "customer 7"), Message("b", b"", "ä/😀"), Message("c", b"")])
        assert {message.id: message.key for message in take(topic, 3)} == {"a": "customer 7", "b": "ä/😀", "c": None}

    @needs("keeps_key_order")
    def test_messages_of_one_key_come_in_order(self, topic: Topic) -> None:
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

    # -- groups

    @needs("keeps_groups")
    def test_each_group_gets_every_message(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        ack(topic, take(topic, 2, "one"), "one")
        assert self.in_order(topic, ids(take(topic, 2, "two")), ["a", "b"])
        assert self.is_silent(topic, "one")

    @needs("keeps_groups", False)
    def test_all_groups_of_a_queue_are_one(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        ack(topic, take(topic, 1, "one"), "one")
        assert self.is_silent(topic, "two")

    @needs("keeps_groups")
    def test_a_new_group_begins_at_the_oldest_message(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        ack(topic, take(topic, 1, "old"), "old")
        topic.publish(messages("b"))
        assert self.in_order(topic, ids(take(topic, 2, "new")), ["a", "b"])

    @needs("keeps_groups")
    def test_a_receipt_of_one_group_does_nothing_in_another(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = take(topic, 1, "one")
        take(topic, 1, "two", lease=self.lease)
        assert topic.ack("two", received) == 0
        self.outlast_lease()
        assert ids(take(topic, 1, "two")) == ["a"]

    @pytest.mark.parametrize("bad", ["", ".", "..", "../x", "a/b", ".hidden", "a b", "ä", "a\n", "a\0", "x" * 201])
    def test_a_bad_name_is_refused(self, home: Topics, topic: Topic, bad: str) -> None:
        with pytest.raises(ConfigError, match="can't be used"):
            home.topic(bad)
        topic.publish(messages("a"))
        with pytest.raises(ConfigError, match="can't be used"):
            topic.receive(bad)

    def test_a_good_name_is_taken(self, home: Topics) -> None:
        good = self.good_names()
        for name in good:
            home.topic(name).publish(messages("a"))
        assert set(good) <= set(home.names())
        for name in good:
            assert ids(take(home.topic(name), 1)) == ["a"]

    # -- leases

    def test_a_message_in_hand_is_not_handed_out_again(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert ids(take(topic, 1)) == ["a"]
        assert self.is_silent(topic)

    def test_a_message_whose_lease_ran_out_comes_again(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        take(topic, 1, lease=self.lease)
        self.outlast_lease()
        topic.publish(messages("b"))
        again = take(topic, 2)
        assert sorted((message.id, message.attempts) for message in again) == [("a", 2), ("b", 1)]

    @needs("keeps_order")
    def test_messages_that_come_again_come_before_new_ones(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        topic.release("g", take(topic, 2))
        assert ids(take(topic, 3)) == ["a", "b", "c"]

    @needs("tells_stale")
    def test_a_stale_receipt_changes_nothing(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        stale = take(topic, 1, lease=self.lease)
        self.outlast_lease()
        fresh = take(topic, 1)
        assert topic.ack("g", stale) == 0
        assert topic.release("g", stale) == 0
        assert topic.extend("g", stale) == 0
        assert topic.dead_letter("g", stale, "why") == 0
        assert self.is_silent(topic)
        assert topic.dead_letters("g") == []
        assert topic.ack("g", fresh) == 1

    def test_a_late_ack_counts_when_nobody_else_got_the_message(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = take(topic, 1, lease=self.lease)
        self.outlast_lease()
        assert topic.ack("g", received) == 1
        assert self.is_silent(topic)

    def test_an_acked_message_never_comes_again(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        received = take(topic, 2, lease=max(self.lease, 1.0))
        assert topic.ack("g", received) == 2
        if self.tells_stale:
            assert topic.ack("g", received) == 0
        time.sleep(max(self.lease, 1.0) * 1.5)
        assert self.is_silent(topic)

    def test_acking_nothing_changes_nothing(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert topic.ack("g", []) == topic.release("g", []) == topic.extend("g", []) == 0
        assert topic.dead_letter("g", [], "why") == 0
        assert ids(take(topic, 1)) == ["a"]

    def test_a_released_message_comes_after_its_delay(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = take(topic, 1)
        begin = time.time()
        assert topic.release("g", received, delay=self.delay) == 1
        again = topic.receive("g", wait=30)
        assert [(message.id, message.attempts) for message in again] == [("a", 2)]
        assert time.time() - begin >= self.delay * 0.9

    def test_a_message_that_is_released_without_a_delay_comes_at_once(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert topic.release("g", take(topic, 1, lease=600)) == 1
        assert [(message.id, message.attempts) for message in take(topic, 1)] == [("a", 2)]

    @needs("counts_attempts")
    def test_a_message_that_nobody_tried_keeps_its_attempts(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.release("g", take(topic, 1), attempted=False)
        assert [message.attempts for message in take(topic, 1)] == [1]

    def test_an_extended_lease_runs_longer(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = take(topic, 1, lease=max(self.lease, 1.0))
        assert topic.extend("g", received, lease=60) == 1
        time.sleep(max(self.lease, 1.0) * 1.5)
        assert self.is_silent(topic)
        assert topic.ack("g", received) == 1

    # -- dead letters

    def test_a_dead_letter_keeps_all_that_is_known_and_does_not_come_again(self, topic: Topic) -> None:
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
        assert self.is_silent(topic)
        assert eventually(lambda: len(topic.dead_letters("g")) == 1)
        (dead,) = topic.dead_letters("g")
        assert (dead.id, dead.body, dead.attempts) == ("a", b"body of a", 1)
        assert dead.reason.startswith("the reason\nin two lines")
        assert dead.consumers == ("shop.bill", "shop.ship")
        assert dead.traceback.startswith("Traceback …\n  File ä\n")
        assert began - 2 <= dead.died <= time.time() + 2

    @needs("keeps_groups")
    def test_a_dead_letter_is_its_groups_alone(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.dead_letter("g", take(topic, 1), "why")
        assert [letter.group for letter in topic.dead_letters("g")] == ["g"]
        assert topic.dead_letters("other") == []
        assert ids(take(topic, 1, "other")) == ["a"]

    def test_a_dead_letter_has_no_consumers_when_none_had_it(self, topic: Topic) -> None:
        topic.publish([Message("a", b"\xff no event")])
        topic.dead_letter("g", take(topic, 1), "not an event")
        assert eventually(lambda: len(topic.dead_letters("g")) == 1)
        (dead,) = topic.dead_letters("g")
        assert (dead.body, dead.reason, dead.consumers, dead.traceback) == (b"\xff no event", "not an event", (), "")

    def test_many_dead_letters_at_once_keep_each_its_own_reason(self, topic: Topic) -> None:
        names = [f"m{number}" for number in range(23)]
        topic.publish([Message(name, b"body of " + name.encode(), self.key_of(name)) for name in names])
        received = take(topic, len(names))
        given_up = [
            GivenUp(one, f"why {one.id}", ("c",) if one.id < "m2" else (), "t" * n) for n, one in enumerate(received)
        ]
        assert topic.dead_letter_each("g", given_up) == len(names)
        assert not self.tells_stale or topic.dead_letter_each("g", given_up) == 0
        assert eventually(lambda: len(topic.dead_letters("g")) == len(names))
        letters = {letter.id: letter for letter in topic.dead_letters("g")}
        assert {id: letter.reason for id, letter in letters.items()} == {name: f"why {name}" for name in names}
        for one in given_up:
            letter = letters[one.received.id]
            assert (letter.body, letter.consumers, letter.traceback) == (
                one.received.body,
                one.consumers,
                one.traceback,
            )
        assert self.is_silent(topic)

    def test_looking_at_dead_letters_leaves_them_there(self, topic: Topic) -> None:
        self.bury(topic, "a", "b", "c")
        for _ in range(2):
            assert sorted(letter.id for letter in topic.dead_letters("g")) == ["a", "b", "c"]
        assert len(topic.dead_letters("g", limit=2)) == 2

    def bury(self, topic: Topic, *names: str) -> None:
        topic.publish(messages(*names))
        topic.dead_letter("g", take(topic, len(names)), "why", consumers=["c"], traceback="t")
        assert eventually(lambda: len(topic.dead_letters("g")) == len(names))

    def test_a_redriven_letter_comes_again_as_new(self, topic: Topic) -> None:
        self.bury(topic, "a")
        assert topic.redrive("g", lambda letter: letter.body) == 1
        assert topic.dead_letters("g") == []
        (again,) = take(topic, 1)
        assert (again.id, again.body, again.attempts) == ("a", b"body of a", 1)
        assert topic.ack("g", [again]) == 1
        assert self.is_silent(topic)
        assert topic.redrive("g", lambda letter: letter.body) == 0

    def test_a_redriven_letter_may_be_mended_and_some_stay(self, topic: Topic) -> None:
        self.bury(topic, "a", "b", "c")
        seen: list[DeadLetter] = []

        def decide(letter: DeadLetter) -> bytes | None:
            seen.append(letter)
            return b"mended " + letter.body if letter.id == "b" else None

        assert topic.redrive("g", decide) == 1
        assert sorted(letter.id for letter in seen) == ["a", "b", "c"]
        assert {(letter.reason, letter.consumers, letter.traceback) for letter in seen} == {("why", ("c",), "t")}
        assert [(message.id, message.body) for message in take(topic, 1)] == [("b", b"mended body of b")]
        assert eventually(lambda: sorted(letter.id for letter in topic.dead_letters("g")) == ["a", "c"])

    def test_a_redrive_looks_at_no_more_than_its_limit(self, topic: Topic) -> None:
        self.bury(topic, "a", "b", "c")
        assert topic.redrive("g", lambda letter: letter.body, limit=2) == 2
        assert len(take(topic, 2)) == 2
        assert eventually(lambda: len(topic.dead_letters("g")) == 1)

    def test_a_letter_that_can_not_be_decided_on_stays(self, topic: Topic) -> None:
        self.bury(topic, "a")

        def decide(letter: DeadLetter) -> bytes | None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            topic.redrive("g", decide)
        assert eventually(lambda: [letter.id for letter in topic.dead_letters("g")] == ["a"])
        assert topic.redrive("g", lambda letter: letter.body) == 1
        assert ids(take(topic, 1)) == ["a"]

    def test_a_redriven_letter_can_be_retried_and_die_again(self, topic: Topic) -> None:
        self.bury(topic, "a")
        topic.redrive("g", lambda letter: b"second")
        topic.release("g", take(topic, 1))
        (again,) = take(topic, 1)
        assert (again.body, again.attempts) == (b"second", 2)
        assert topic.dead_letter("g", [again], "once more") == 1
        assert eventually(lambda: len(topic.dead_letters("g")) == 1)
        (dead,) = topic.dead_letters("g")
        assert (dead.id, dead.body, dead.reason, dead.attempts) == ("a", b"second", "once more", 2)

    @needs("keeps_groups")
    def test_a_redriven_letter_comes_to_no_other_group(self, topic: Topic) -> None:
        self.bury(topic, "a")
        ack(topic, take(topic, 1, "other"), "other")
        topic.redrive("g", lambda letter: letter.body)
        assert ids(take(topic, 1)) == ["a"]
        assert self.is_silent(topic, "other")

    # -- generations

    def test_a_message_keeps_its_generation_until_it_is_redriven(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        (first,) = take(topic, 1)
        topic.release("g", [first])
        (second,) = take(topic, 1)
        assert first.generation == second.generation == Generation()
        for _ in range(2):
            before = second.generation
            topic.dead_letter("g", [second], "why")
            assert eventually(lambda: topic.redrive("g", lambda letter: letter.body) == 1)
            (third,) = take(topic, 1)
            topic.release("g", [third])
            (second,) = take(topic, 1)
            assert second.generation == third.generation > before
            assert second.generation.replay == before.replay

    @needs("seeks")
    def test_a_seek_begins_a_replay_and_what_dies_in_it_is_of_it(self, topic: Topic) -> None:
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
        topic.redrive("g", lambda letter: letter.body)
        (again,) = take(topic, 1)
        assert again.generation > received.generation
        assert again.generation.replay == received.generation.replay > replays[-1]

    # -- an engine on the topic

    def run_engine(self, home: Topics, topic: Topic, handler: Any, ledger: Ledger, **options: Any) -> EngineStats:
        hub = ConsumerHub()
        hub.add(Consumer(handler, topic.name, name="h", backoff=0.01, **options))
        return Engine(hub, home, group="g", ledger=ledger, lease=30).run(until_empty=True)

    def publish_events(self, topic: Topic, count: int) -> list[str]:
        events = [Event.new("tests", {"n": n}) for n in range(count)]
        topic.publish([Message(one.header.id, encode(one), self.key_of(one.header.id)) for one in events])
        return [event.header.id for event in events]

    def deliver(self, topic: Topic, count: int, times: int) -> None:
        """Have messages delivered to somebody who ends before it calls a handler."""
        for _ in range(times):
            topic.release("g", take(topic, count))

    def test_redriven_letters_have_all_attempts_again_also_when_a_process_ended_over_them(
        self, home: Topics, topic: Topic
    ) -> None:
        self.publish_events(topic, 2)
        ledger, calls = MemoryLedger(), Counter[int]()

        def fail(settings: Any, event: Event) -> None:
            calls[event.payload["n"]] += 1
            raise ValueError(f"call {calls[event.payload['n']]}")

        assert self.run_engine(home, topic, fail, ledger, retries=2).dead == 2
        assert calls == {0: 3, 1: 3}
        assert eventually(lambda: len(topic.dead_letters("g")) == 2)
        assert topic.redrive("g", lambda letter: letter.body) == 2
        self.deliver(topic, 2, times=2)
        assert self.run_engine(home, topic, fail, ledger, retries=2).dead == 2
        assert calls == {0: 6, 1: 6}
        assert eventually(lambda: [one.reason for one in topic.dead_letters("g")] == ["h: ValueError: call 6"] * 2)

    def test_an_event_that_was_only_in_hand_when_processes_ended_has_all_its_attempts(
        self, home: Topics, topic: Topic
    ) -> None:
        self.publish_events(topic, 3)
        self.deliver(topic, 3, times=4)
        calls: Counter[int] = Counter()

        def fail_twice(settings: Any, event: Event) -> None:
            calls[event.payload["n"]] += 1
            if calls[event.payload["n"]] <= 2:
                raise ValueError

        assert self.run_engine(home, topic, fail_twice, MemoryLedger(), retries=2).succeeded == 3
        assert calls == {0: 3, 1: 3, 2: 3}

    def test_failed_calls_add_up_over_engines(self, home: Topics, topic: Topic) -> None:
        self.publish_events(topic, 1)
        ledger, calls = MemoryLedger(), []

        def fail(settings: Any, event: Event) -> None:
            calls.append(1)
            engine.stop()
            raise ValueError

        while not topic.exists() or not topic.dead_letters("g"):
            hub = ConsumerHub()
            hub.add(Consumer(fail, topic.name, name="h", backoff=0.01, retries=2))
            engine = Engine(hub, home, group="g", ledger=ledger, lease=30)
            engine.run()
            assert len(calls) <= 3
        assert len(calls) == 3

    @needs("seeks")
    def test_a_replay_runs_the_handlers_again_and_a_restart_does_not(self, home: Topics, topic: Topic) -> None:
        self.publish_events(topic, 3)
        ledger, calls = MemoryLedger(), Counter[int]()

        def handle(settings: Any, event: Event) -> None:
            calls[event.payload["n"]] += 1
            if event.payload["n"] == 1:
                raise ValueError

        for round in (1, 2, 3):
            counts = self.run_engine(home, topic, handle, ledger, retries=1)
            assert (counts.succeeded, counts.failed, counts.dead) == (2, 2, 1)
            assert counts.duplicates == 0
            assert calls == {0: round, 1: 2 * round, 2: round}
            assert self.run_engine(home, topic, handle, ledger, retries=1).received == 0
            topic.close()
            topic.seek("g", "earliest")

    # -- looking and moving

    def test_peeking_takes_nothing_from_anyone(self, topic: Topic) -> None:
        topic.publish([Message("a", b"one"), Message("b", b"two"), Message("c", b"three")])
        seen = {message.id: message.body for message in topic.peek(limit=3)}
        assert set(seen.items()) <= {("a", b"one"), ("b", b"two"), ("c", b"three")}
        assert seen
        assert sorted(ids(take(topic, 3))) == ["a", "b", "c"]

    @needs("keeps_order")
    def test_peeking_gives_the_oldest_or_the_newest_in_order(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        assert ids(topic.peek(limit=2)) == ["a", "b"]
        assert ids(topic.peek(limit=2, newest=True)) == ["b", "c"]
        assert ids(topic.peek(limit=10)) == ids(topic.peek(limit=10, newest=True)) == ["a", "b", "c"]

    @needs("seeks")
    def test_a_group_goes_back_to_the_earliest_message(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        ack(topic, take(topic, 2))
        assert topic.seek("g", "earliest").lag == 2
        assert sorted((message.id, message.attempts) for message in take(topic, 2)) == [("a", 1), ("b", 1)]

    @needs("seeks")
    def test_a_group_skips_to_the_latest_message(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        first = take(topic, 1)
        topic.release("g", first, delay=60)
        topic.close()
        assert topic.seek("g", "latest").pending == 0
        topic.publish(messages("d"))
        assert ids(take(topic, 1)) == ["d"]

    @needs("seeks")
    def test_a_group_goes_to_the_first_message_of_a_time(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        time.sleep(0.05)
        between = time.time()
        time.sleep(0.05)
        topic.publish(messages("c"))
        assert topic.seek("g", between).lag == 1
        assert ids(take(topic, 1)) == ["c"]

    @needs("seeks")
    def test_a_group_that_never_was_can_be_moved(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.seek("new", "latest")
        topic.publish(messages("b"))
        assert ids(take(topic, 1, "new")) == ["b"]

    @needs("seeks")
    def test_a_group_that_holds_messages_is_not_moved(self, url: str, name: str, home: Topics, topic: Topic) -> None:
        topic.publish(messages("a"))
        take(topic, 1)
        with self.another(url, home) as other, pytest.raises(TopicError):
            other.topic(name).seek("g", "earliest")

    @needs("seeks", False)
    def test_a_queue_refuses_to_seek(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        with pytest.raises(TopicError) as caught:
            topic.seek("g", "earliest")
        assert not caught.value.retryable

    # -- state

    @needs("tells_apart")
    def test_the_state_tells_where_each_group_is(self, topic: Topic, name: str) -> None:
        topic.publish(messages("a", "b", "c", "d", "e", "f"))
        first = take(topic, 4)
        topic.ack("g", first[:1])
        topic.release("g", first[1:2], delay=60)
        topic.dead_letter("g", first[2:3], "why")
        state = topic.describe()
        assert (state.name, state.messages, state.bytes) == (name, 6, 6 * len("body of a"))
        assert state.oldest == pytest.approx(time.time(), abs=60)
        assert [group.name for group in state.groups] == ["g"]
        group = topic.group_state("g")
        assert group == state.groups[0]
        assert (group.lag, group.in_flight, group.waiting, group.dead, group.pending) == (2, 1, 1, 1, 4)

    def test_what_is_pending_and_dead_is_counted(self, topic: Topic, name: str) -> None:
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

    def test_a_group_that_never_received_has_everything_before_it(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        assert eventually(lambda: topic.group_state("new").pending == 2)

    def test_what_needs_a_topic_says_that_there_is_none(self, topic: Topic) -> None:
        for use in (topic.peek, topic.describe, lambda: topic.redrive("g", lambda letter: letter.body)):
            with pytest.raises(TopicError) as caught:
                use()
            assert topic.name in str(caught.value)
            assert "\n" not in str(caught.value)

    def test_a_home_lists_its_topics(self, home: Topics) -> None:
        first, second, never = sorted(self.new_name() for _ in range(3))
        home.topic(second).publish(messages("a"))
        home.topic(first).publish(messages("a"))
        home.topic(never)
        names = home.names()
        assert names == sorted(names)
        assert [name for name in names if name in (first, second, never)] == [first, second]

    def test_a_closed_topic_opens_again(self, home: Topics, topic: Topic) -> None:
        topic.publish(messages("a"))
        home.close()
        assert ids(take(topic, 1)) == ["a"]

    # -- many at once

    @needs("reaches_processes")
    def test_several_processes_handle_each_message_once(self, url: str, name: str, home: Topics) -> None:
        wanted = [f"m{number}" for number in range(self.many)]
        half = self.many // 2
        overlap = 50 if home.topic(name).keeps_ids else 0  # ids in both shares: stored once
        shares = [wanted[: half + overlap], wanted[half - overlap :]]
        context = multiprocessing.get_context("spawn")
        over, handled = context.Event(), context.Queue()
        publishers = [context.Process(target=publish_in_process, args=(url, name, share)) for share in shares]
        consumers = [context.Process(target=consume_in_process, args=(url, name, over, handled)) for _ in range(3)]
        for process in (*publishers, *consumers):
            process.start()
        seen: Counter[str] = Counter()
        while len(seen) < len(wanted):
            seen.update(handled.get(timeout=120))
        for process in publishers:
            process.join()
        over.set()
        while any(process.is_alive() for process in consumers) or not handled.empty():
            if not handled.empty():  # a child ends when what it put was taken
                seen.update(handled.get())
            time.sleep(0.001)
        assert [process.exitcode for process in (*publishers, *consumers)] == [0] * 5
        assert set(seen) == set(wanted)
        if self.hands_out_once:
            assert seen == Counter(wanted)

    def test_several_threads_share_a_topic(self, topic: Topic) -> None:
        wanted = [f"m{number}" for number in range(300)]
        handled: list[str] = []
        topic.publish(messages("first"))
        ack(topic, take(topic, 1))
        deadline = time.monotonic() + 120

        def publish(share: list[str]) -> None:
            for id in share:
                topic.publish(messages(id))

        def consume() -> None:
            while len(handled) < len(wanted) and time.monotonic() < deadline:
                received = topic.receive("g", limit=5, wait=0.05, lease=60)
                handled.extend(ids(received))
                topic.ack("g", received)

        threads = [threading.Thread(target=publish, args=(wanted[i::2],)) for i in range(2)]
        threads += [threading.Thread(target=consume) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=150)
        assert Counter(handled) == Counter(wanted)

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    @needs("survives_fork")
    def test_a_forked_child_and_its_parent_share_a_topic(self, topic: Topic) -> None:

        def publish(id: str) -> int:
            return topic.publish([Message(id, b"", self.key_of(id))])

        publish("before")
        over = threading.Event()
        published = 0

        def keep_busy() -> None:
            nonlocal published
            while not over.is_set():
                published += publish(f"busy{published}")

        thread = threading.Thread(target=keep_busy)
        thread.start()
        children = []
        for number in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                try:
                    assert publish(f"child{number}") == 1
                    if topic.keeps_groups:
                        assert take(topic, 1, f"g{number}")[0].id == "before"
                    topic.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        over.set()
        thread.join()
        assert statuses == [0] * 5
        publish("after")
        everything = ids(take(topic, published + 7, "parent"))
        assert {"before", "after", *(f"child{number}" for number in range(5))} <= set(everything)
        assert len(everything) == len(set(everything)) == published + 7
