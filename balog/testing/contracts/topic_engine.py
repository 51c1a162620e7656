"""How the consumer engine works on every topic."""

from __future__ import annotations

from collections import Counter
from typing import Any

from balog.consumers import Consumer, ConsumerHub, Engine, EngineStats
from balog.consumers.ledgers.factory import MemoryLedger
from balog.consumers.ledgers.ledger import Ledger
from balog.event import Event, encode
from balog.testing.contracts.abilities import needs
from balog.testing.contracts.topic_fixtures import TopicFixtures, eventually, take
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
