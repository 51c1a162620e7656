"""What every topic must do. A kind of topic is tested by a class that inherits this one and gives a ``url``."""

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.errors import ConfigError
from balog.topics import Message, Received, Topic, Topics, open_topics

LEASE = 0.2


def messages(*ids: str) -> list[Message]:
    return [Message(id, f"body of {id}".encode()) for id in ids]


def ids(received: list[Received]) -> list[str]:
    return [message.id for message in received]


def publish_in_process(url: str, name: str, wanted: list[str]) -> int:
    with open_topics(url) as home:
        return sum(home.topic(name).publish(messages(*wanted[i : i + 20])) for i in range(0, len(wanted), 20))


def consume_in_process(url: str, name: str, total: int, handled: "multiprocessing.queues.Queue[list[str]]") -> None:
    mine: list[str] = []
    with open_topics(url) as home:
        topic = home.topic(name)
        while not topic.exists():
            time.sleep(0.01)
        while topic.describe().messages < total or topic.group_state("g").pending:
            received = topic.receive("g", limit=7, wait=0.05, lease=60)
            mine += ids(received)
            assert topic.ack("g", received) == len(received)
    handled.put(mine)


class TopicContract:
    @pytest.fixture
    def home(self, url: str) -> Iterator[Topics]:
        with open_topics(url) as home:
            yield home

    @pytest.fixture
    def topic(self, home: Topics) -> Topic:
        return home.topic("orders")

    # -- publishing and receiving

    def test_messages_come_in_the_order_of_publishing(self, topic: Topic) -> None:
        topic.publish(messages("b", "a"))
        topic.publish(messages("c"))
        assert ids(topic.receive("g")) == ["b", "a", "c"]

    def test_a_received_message_is_the_published_one(self, topic: Topic) -> None:
        before = time.time()
        topic.publish([Message("a", b"body")])
        (received,) = topic.receive("g")
        assert (received.id, received.body, received.attempts) == ("a", b"body", 1)
        assert before - 1 <= received.published <= time.time() + 1

    def test_no_more_than_the_limit_is_received(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        assert ids(topic.receive("g", limit=2)) == ["a", "b"]
        assert ids(topic.receive("g", limit=2)) == ["c"]

    def test_publishing_nothing_stores_nothing(self, topic: Topic) -> None:
        assert topic.publish([]) == 0
        assert not topic.exists()

    def test_a_message_whose_id_is_held_is_not_stored_twice(self, topic: Topic) -> None:
        assert topic.publish(messages("a", "b", "a")) == 2
        assert topic.publish([Message("b", b"another body"), *messages("c")]) == 1
        received = topic.receive("g")
        assert ids(received) == ["a", "b", "c"]
        assert received[1].body == b"body of b"
        topic.ack("g", received)
        assert topic.publish(messages("a")) == 0
        assert topic.receive("g") == []

    def test_another_process_sees_what_was_published(self, url: str, topic: Topic) -> None:
        topic.publish(messages("a"))
        with open_topics(url) as other:
            assert ids(other.topic("orders").receive("g")) == ["a"]

    @pytest.mark.parametrize("body", [b"", b"\0", b"a\0b\n", b"\xff\xfe", b'{"not": json', bytes(range(256))])
    def test_any_bytes_are_a_body(self, topic: Topic, body: bytes) -> None:
        topic.publish([Message("a", body)])
        assert [message.body for message in topic.receive("g")] == [body]

    def test_a_body_of_a_megabyte_comes_whole(self, topic: Topic) -> None:
        bodies = [os.urandom(1024 * 1024) for _ in range(3)]
        topic.publish([Message(str(number), body) for number, body in enumerate(bodies)])
        assert [message.body for message in topic.receive("g")] == bodies

    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.dictionaries(st.from_regex(r"\A[!-~]{1,60}\Z"), st.binary(max_size=2000), min_size=1, max_size=20))
    def test_what_is_published_is_what_is_received(self, home: Topics, bodies: dict[str, bytes]) -> None:
        topic = home.topic(f"t{time.time_ns()}")
        assert topic.publish([Message(id, body) for id, body in bodies.items()]) == len(bodies)
        assert [(message.id, message.body) for message in topic.receive("g")] == list(bodies.items())

    def test_receive_waits_for_a_message(self, topic: Topic, url: str) -> None:
        topic.publish(messages("first"))
        topic.ack("g", topic.receive("g"))

        def publish_later() -> None:
            time.sleep(0.2)
            with open_topics(url) as other:
                other.topic("orders").publish(messages("late"))

        thread = threading.Thread(target=publish_later)
        thread.start()
        assert ids(topic.receive("g", wait=30)) == ["late"]
        thread.join()

    def test_receive_gives_nothing_when_nothing_comes(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.receive("g")
        assert topic.receive("g", wait=0.05) == []

    # -- groups

    def test_each_group_gets_every_message(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        topic.ack("one", topic.receive("one"))
        assert ids(topic.receive("two")) == ["a", "b"]
        assert topic.receive("one") == []

    def test_a_new_group_begins_at_the_oldest_message(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.ack("old", topic.receive("old"))
        topic.publish(messages("b"))
        assert ids(topic.receive("new")) == ["a", "b"]

    def test_a_receipt_of_one_group_does_nothing_in_another(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = topic.receive("one")
        topic.receive("two", lease=LEASE)
        assert topic.ack("two", received) == 0
        time.sleep(LEASE)
        assert ids(topic.receive("two")) == ["a"]

    @pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", ".hidden", "a b", "ä", "a\n", "a\0", "x" * 201])
    def test_a_bad_name_is_refused(self, home: Topics, topic: Topic, name: str) -> None:
        with pytest.raises(ConfigError, match="can't be used"):
            home.topic(name)
        topic.publish(messages("a"))
        with pytest.raises(ConfigError, match="can't be used"):
            topic.receive(name)

    @pytest.mark.parametrize("name", ["a", "tap_stripe.sync.done", "0", "-x", "x" * 200])
    def test_a_good_name_is_taken(self, home: Topics, name: str) -> None:
        home.topic(name).publish(messages("a"))
        assert home.names() == [name]

    # -- leases

    def test_a_message_in_hand_is_not_handed_out_again(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        assert ids(topic.receive("g", lease=60)) == ["a"]
        assert topic.receive("g") == []

    def test_a_message_whose_lease_ran_out_comes_again(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        topic.receive("g", limit=1, lease=LEASE)
        assert topic.receive("g", limit=1, lease=60)[0].id == "b"
        again = topic.receive("g", wait=30)
        assert [(message.id, message.attempts) for message in again] == [("a", 2)]

    def test_messages_that_come_again_come_before_new_ones(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c"))
        topic.release("g", topic.receive("g", limit=2))
        assert ids(topic.receive("g")) == ["a", "b", "c"]

    def test_a_stale_receipt_changes_nothing(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        stale = topic.receive("g", lease=LEASE)
        fresh = topic.receive("g", wait=30, lease=60)
        assert topic.ack("g", stale) == 0
        assert topic.release("g", stale) == 0
        assert topic.extend("g", stale) == 0
        assert topic.dead_letter("g", stale, "why") == 0
        assert topic.receive("g") == []
        assert topic.dead_letters("g") == []
        assert topic.ack("g", fresh) == 1

    def test_a_late_ack_counts_when_nobody_else_got_the_message(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = topic.receive("g", lease=LEASE)
        time.sleep(LEASE * 1.5)
        assert topic.ack("g", received) == 1
        assert topic.receive("g") == []

    def test_an_acked_message_never_comes_again(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        received = topic.receive("g", lease=LEASE)
        assert topic.ack("g", received) == 2
        assert topic.ack("g", received) == 0
        time.sleep(LEASE * 1.5)
        assert topic.receive("g") == []

    def test_a_released_message_comes_after_its_delay(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        begin = time.time()
        assert topic.release("g", topic.receive("g", lease=60), delay=0.4) == 1
        assert topic.receive("g") == []
        (again,) = topic.receive("g", wait=30)
        assert (again.id, again.attempts) == ("a", 2)
        assert time.time() - begin >= 0.4

    def test_a_message_that_nobody_tried_keeps_its_attempts(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        topic.release("g", topic.receive("g"), attempted=False)
        assert [message.attempts for message in topic.receive("g")] == [1]

    def test_an_extended_lease_runs_longer(self, topic: Topic) -> None:
        topic.publish(messages("a"))
        received = topic.receive("g", lease=LEASE)
        assert topic.extend("g", received, lease=60) == 1
        time.sleep(LEASE * 1.5)
        assert topic.receive("g") == []
        assert topic.ack("g", received) == 1

    # -- dead letters and state

    def test_a_dead_letter_keeps_message_and_reason_and_does_not_come_again(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        first, second = topic.receive("g", lease=LEASE)
        assert topic.dead_letter("g", [first], "the reason\nin two lines, odd: \udcff") == 1
        topic.ack("g", [second])
        time.sleep(LEASE * 1.5)
        assert topic.receive("g") == []
        (dead,) = topic.dead_letters("g")
        assert (dead.id, dead.body, dead.group, dead.attempts) == ("a", b"body of a", "g", 1)
        assert dead.reason.startswith("the reason\nin two lines")
        assert topic.dead_letters("other") == []
        assert ids(topic.receive("other")) == ["a", "b"]

    def test_the_state_tells_where_each_group_is(self, topic: Topic) -> None:
        topic.publish(messages("a", "b", "c", "d", "e", "f"))
        first = topic.receive("g", limit=4, lease=60)
        topic.ack("g", first[:1])
        topic.release("g", first[1:2], delay=60)
        topic.dead_letter("g", first[2:3], "why")
        state = topic.describe()
        assert (state.name, state.messages, state.bytes) == ("orders", 6, 6 * len("body of a"))
        assert state.oldest == pytest.approx(time.time(), abs=60)
        assert [group.name for group in state.groups] == ["g"]
        group = topic.group_state("g")
        assert group == state.groups[0]
        assert (group.lag, group.in_flight, group.waiting, group.dead, group.pending) == (2, 1, 1, 1, 4)

    def test_a_group_that_never_received_has_everything_before_it(self, topic: Topic) -> None:
        topic.publish(messages("a", "b"))
        assert topic.group_state("new").pending == 2

    def test_a_home_lists_its_topics(self, home: Topics) -> None:
        home.topic("b").publish(messages("a"))
        home.topic("a").publish(messages("a"))
        home.topic("never-published")
        assert home.names() == ["a", "b"]

    def test_a_closed_topic_opens_again(self, home: Topics, topic: Topic) -> None:
        topic.publish(messages("a"))
        home.close()
        assert ids(topic.receive("g")) == ["a"]

    # -- many at once

    def test_several_processes_handle_each_message_once(self, url: str) -> None:
        wanted = [f"m{number}" for number in range(400)]
        context = multiprocessing.get_context("spawn")
        handled: multiprocessing.queues.Queue[list[str]] = context.Queue()
        shares = [wanted[:250], wanted[150:]]  # ids in both: stored once
        publishers = [context.Process(target=publish_in_process, args=(url, "busy", share)) for share in shares]
        consumers = [
            context.Process(target=consume_in_process, args=(url, "busy", len(wanted), handled)) for _ in range(3)
        ]
        for process in (*publishers, *consumers):
            process.start()
        results = [handled.get(timeout=120) for _ in consumers]
        for process in (*publishers, *consumers):
            process.join()
            assert process.exitcode == 0
        assert Counter(id for result in results for id in result) == Counter(wanted)

    def test_several_threads_share_a_topic(self, topic: Topic) -> None:
        wanted = [f"m{number}" for number in range(300)]
        handled: list[str] = []
        topic.publish(messages("first"))
        topic.ack("g", topic.receive("g"))

        def publish(share: list[str]) -> None:
            for id in share:
                topic.publish(messages(id))

        def consume() -> None:
            while len(handled) < len(wanted):
                received = topic.receive("g", limit=5, wait=0.05, lease=60)
                handled.extend(ids(received))
                topic.ack("g", received)

        threads = [threading.Thread(target=publish, args=(wanted[i::2],)) for i in range(2)]
        threads += [threading.Thread(target=consume) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
        assert Counter(handled) == Counter(wanted)

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_forked_child_and_its_parent_share_a_topic(self, topic: Topic) -> None:
        topic.publish(messages("before"))
        over = threading.Event()
        published = 0

        def keep_busy() -> None:
            nonlocal published
            while not over.is_set():
                published += topic.publish(messages(f"busy{published}"))

        thread = threading.Thread(target=keep_busy)
        thread.start()
        children = []
        for number in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                try:
                    assert topic.publish(messages(f"child{number}")) == 1
                    assert topic.receive(f"g{number}")[0].id == "before"
                    topic.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        over.set()
        thread.join()
        assert statuses == [0] * 5
        topic.publish(messages("after"))
        everything = ids(topic.receive("parent", limit=1_000_000))
        assert {"before", "after", *(f"child{number}" for number in range(5))} <= set(everything)
        assert len(everything) == len(set(everything)) == published + 7
