"""How the consumer engine works on every topic, and how processes, threads and forked children share one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from typing import Any

import pytest

from balog.consumers import Consumer, ConsumerHub, Engine, EngineStats
from balog.consumers.ledgers.factory import MemoryLedger
from balog.consumers.ledgers.ledger import Ledger
from balog.event import Event, encode
from balog.testing.contracts.abilities import needs
from balog.testing.contracts.topic_fixtures import TopicFixtures, ack, eventually, ids, messages, take
from balog.testing.contracts.topic_processes import consume_in_process, publish_in_process
from balog.topics import Message, Topic, Topics


class EngineContract(TopicFixtures):
    """Attempts, redrives and replays, counted by an engine and its ledger."""

    def run_engine(self, backend: Topics, topic: Topic, handler: Any, ledger: Ledger, **options: Any) -> EngineStats:
        hub = ConsumerHub()
        hub.add(Consumer(handler, topic.name, name="h", backoff=0.01, **options))
        return Engine(hub, backend, group="g", ledger=ledger, lease=30).run(until_empty=True)

    def publish_events(self, topic: Topic, count: int) -> list[str]:
        events = [Event.new("tests", {"n": n}) for n in range(count)]
        topic.publish([Message(event.header.id, encode(event), self.key_of(event.header.id)) for event in events])
        return [event.header.id for event in events]

    def deliver(self, topic: Topic, count: int, times: int) -> None:
        """Have messages delivered to somebody who ends before it calls a handler."""
        for _ in range(times):
            topic.release("g", take(topic, count))

    def test_redriven_messages_have_all_attempts_again_even_after_crashes(self, backend: Topics, topic: Topic) -> None:
        self.publish_events(topic, 2)
        ledger, calls = MemoryLedger(), Counter[int]()

        def fail(settings: Any, event: Event) -> None:
            calls[event.payload["n"]] += 1
            raise ValueError(f"call {calls[event.payload['n']]}")

        assert self.run_engine(backend, topic, fail, ledger, retries=2).dead == 2
        assert calls == {0: 3, 1: 3}
        assert eventually(lambda: len(topic.dead_letters("g")) == 2)
        assert topic.redrive("g", lambda dead_letter: dead_letter.body) == 2
        self.deliver(topic, 2, times=2)
        assert self.run_engine(backend, topic, fail, ledger, retries=2).dead == 2
        assert calls == {0: 6, 1: 6}
        assert eventually(lambda: [entry.reason for entry in topic.dead_letters("g")] == ["h: ValueError: call 6"] * 2)

    def test_deliveries_without_a_call_spend_no_attempts(self, backend: Topics, topic: Topic) -> None:
        self.publish_events(topic, 3)
        self.deliver(topic, 3, times=4)
        calls: Counter[int] = Counter()

        def fail_twice(settings: Any, event: Event) -> None:
            calls[event.payload["n"]] += 1
            if calls[event.payload["n"]] <= 2:
                raise ValueError

        assert self.run_engine(backend, topic, fail_twice, MemoryLedger(), retries=2).succeeded == 3
        assert calls == {0: 3, 1: 3, 2: 3}

    def test_failed_calls_add_up_over_engines(self, backend: Topics, topic: Topic) -> None:
        self.publish_events(topic, 1)
        ledger, calls = MemoryLedger(), []

        def fail(settings: Any, event: Event) -> None:
            calls.append(1)
            engine.stop()
            raise ValueError

        while not topic.exists() or not topic.dead_letters("g"):
            hub = ConsumerHub()
            hub.add(Consumer(fail, topic.name, name="h", backoff=0.01, retries=2))
            engine = Engine(hub, backend, group="g", ledger=ledger, lease=30)
            engine.run()
            assert len(calls) <= 3
        assert len(calls) == 3

    @needs("can_seek")
    def test_a_replay_runs_the_handlers_again_and_a_restart_does_not(self, backend: Topics, topic: Topic) -> None:
        self.publish_events(topic, 3)
        ledger, calls = MemoryLedger(), Counter[int]()

        def handle(settings: Any, event: Event) -> None:
            calls[event.payload["n"]] += 1
            if event.payload["n"] == 1:
                raise ValueError

        for round in (1, 2, 3):
            counts = self.run_engine(backend, topic, handle, ledger, retries=1)
            assert (counts.succeeded, counts.failed, counts.dead) == (2, 2, 1)
            assert counts.duplicates == 0
            assert calls == {0: round, 1: 2 * round, 2: round}
            assert self.run_engine(backend, topic, handle, ledger, retries=1).received == 0
            topic.close()
            topic.seek("g", "earliest")


class SharingContract(TopicFixtures):
    """Several processes, threads and forked children on one topic."""

    @needs("shares_with_processes")
    def test_several_processes_handle_each_message_once(self, url: str, name: str, backend: Topics) -> None:
        wanted = [f"m{number}" for number in range(self.shared_messages)]
        half = self.shared_messages // 2
        overlap = 50 if backend.topic(name).keeps_ids else 0  # ids in both shares: stored once
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
        if self.delivers_once:
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
