"""Who is through with what: duplicates, partial success, redriven letters, crashes, a ledger that is out of reach."""

import threading
from collections import Counter
from functools import partial
from typing import Any

import pytest

from balog.common.errors import TopicError
from balog.consumers import Consumer, EngineStats, Hook, Retry
from balog.consumers.ledgers.factory import MemoryLedger, NoLedger
from balog.consumers.ledgers.ledger import Calls, Known, LedgerEntry, read
from balog.event import Event, decode, encode
from balog.log.context import bound_values
from balog.topics import Generation, Message, Topic
from balog.topics.memory import MemoryTopic
from tests.consumers.runs import Scripted, fail_once

Settings = dict[str, Any]


class Queue(MemoryTopic):
    """A topic that stores whatever it is sent, as queues do."""

    keeps_ids = False


@pytest.fixture
def queue(bench: Any) -> Topic:
    bench.orders.__class__ = Queue
    return bench.orders  # type: ignore[no-any-return]


def copies(number: int, **payload: Any) -> list[Message]:
    event = Event.new("tests", payload)
    return [Message(f"copy{copy}", encode(event)) for copy in range(number)]


def test_a_failed_event_that_comes_again_is_looked_up_once_and_not_before_its_call_too(bench: Any) -> None:
    asked: list[list[str]] = []
    known = bench.ledger.known
    bench.ledger.known = lambda group, events: asked.append([*events]) or known(group, events)
    ids = bench.publish({"n": 1})
    assert bench.run(Scripted(ValueError(), ValueError(), None)).succeeded == 1
    assert asked == [ids, ids]


def test_a_consumer_that_succeeds_elsewhere_while_a_failed_one_is_called_is_not_called(bench: Any) -> None:
    (id,) = bench.publish({})
    bench.orders.receive("balog", lease=0.0)  # by a process that goes on with "slow"; "failed" failed there
    bench.ledger.record("balog", [LedgerEntry(id, "orders/failed", Known(Generation(), Calls(1, 0, 1)).text)])
    slow = Scripted()
    end = partial(bench.ledger.record, "balog", [LedgerEntry(id, "orders/slow", "")])
    failed = Consumer(lambda settings, event: end(), "orders", name="failed")
    bench.run(failed, Consumer(slow, "orders", name="slow"), concurrency=1)
    assert slow.ids == []


class TestDuplicates:
    def test_an_event_that_was_sent_twice_is_handled_once(self, bench: Any, queue: Topic) -> None:
        first, second, third = copies(3)
        handle = Scripted()
        queue.publish([first])
        assert bench.run(handle) == EngineStats(received=1, succeeded=1)
        queue.publish([second, third])
        assert bench.run(handle) == EngineStats(received=2, duplicates=2)
        assert len(handle.ids) == 1
        assert bench.pending == 0

    def test_the_second_copy_waits_for_the_first(self, bench: Any, queue: Topic) -> None:
        queue.publish(copies(5))
        inside = threading.Lock()
        seen: list[str] = []

        def handle(settings: Settings, event: Event) -> None:
            assert inside.acquire(blocking=False)
            threading.Event().wait(0.05)
            seen.append(event.header.id)
            inside.release()

        assert bench.run(handle, concurrency=4) == EngineStats(received=5, succeeded=1, duplicates=4)
        assert len(seen) == 1

    def test_when_the_first_copy_fails_the_second_goes_on(self, bench: Any, queue: Topic) -> None:
        queue.publish(copies(2))
        fine, fail_once = Scripted(), Scripted(ValueError())
        counts = bench.run(fine, fail_once)
        assert (len(fine.calls), len(fail_once.calls)) == (1, 2)
        assert (counts.succeeded, counts.duplicates, counts.failed) == (1, 1, 1)

    def test_without_a_ledger_each_copy_is_an_event(self, bench: Any, queue: Topic) -> None:
        queue.publish(copies(3))
        assert bench.run(lambda settings, event: None, ledger=NoLedger()).received == 3


class TestPartialSuccess:
    def test_only_who_failed_is_tried_again_also_by_another_engine(self, bench: Any) -> None:
        bench.publish({})
        fine, fail_once = Scripted(), Scripted(ValueError())

        class Stop(Hook):
            def retried(self, *arguments: Any) -> None:
                engine.stop()

        engine = bench.engine(fine, fail_once, hooks=[Stop()])
        engine.run()
        assert (len(fine.calls), len(fail_once.calls)) == (1, 1)
        assert bench.run(fine, fail_once) == EngineStats(received=1, succeeded=1)
        assert (len(fine.calls), len(fail_once.calls)) == (1, 2)

    def test_a_success_is_on_record_though_others_keep_the_message(self, bench: Any, wait_for: Any) -> None:
        (id,) = bench.publish({})
        release = threading.Event()

        def slow(settings: Settings, event: Event) -> None:
            release.wait(30)

        with bench.running(lambda settings, event: None, slow, concurrency=2):
            wait_for(lambda: bench.ledger.known("balog", [id]) == {id: {"orders/handler0": ""}})
            release.set()

    def test_what_others_still_need_to_know_outlives_a_power_cut(self, bench: Any, queue: Topic) -> None:
        """Given an event that is all done and one that a consumer failed at, then only the latter's note must last."""
        notes: list[tuple[list[str], bool]] = []

        class Noting(MemoryLedger):
            def record(self, group: str, entries: Any, *, durable: bool = True) -> None:
                notes.append(([entry.event for entry in entries], durable))
                super().record(group, entries, durable=durable)

        def fail_once(settings: Settings, event: Event) -> None:
            if event.payload and notes[1:] == []:
                raise ValueError

        ledger = Noting()
        (done,) = bench.publish({})
        bench.run(lambda settings, event: None, fail_once, ledger=ledger)
        (failed,) = bench.publish({"fails": True})
        bench.run(lambda settings, event: None, fail_once, ledger=ledger)
        assert notes[0] == ([done, done], False)
        assert notes[1] == ([failed, failed], True)  # who succeeded, and how often the other one failed

    def test_where_no_message_is_two_an_ack_is_record_enough(self, bench: Any) -> None:
        class Untouched(MemoryLedger):
            def record(self, *arguments: Any, **options: Any) -> None:
                raise AssertionError("written to")

        bench.publish({}, {})
        assert bench.run(lambda settings, event: None, ledger=Untouched()).succeeded == 2


class TestRedriven:
    def test_who_gave_up_is_tried_again_and_who_succeeded_is_not(self, bench: Any) -> None:
        bench.publish({})
        fine, fails_twice = Scripted(), Scripted(*[ValueError()] * 2)
        assert bench.run(fine, fails_twice, max_attempts=2).dead == 1
        assert bench.orders.redrive("balog", lambda letter: letter.body) == 1
        assert bench.run(fine, fails_twice, max_attempts=2) == EngineStats(received=1, succeeded=1)
        assert (len(fine.calls), len(fails_twice.calls)) == (1, 3)

    @pytest.mark.parametrize("keeps_ids", [True, False])
    def test_a_redriven_letter_has_all_attempts_again_each_time(self, bench: Any, keeps_ids: bool) -> None:
        bench.orders.__class__ = MemoryTopic if keeps_ids else Queue
        bench.publish({})
        seen: list[int] = []

        def handle(settings: Settings, event: Event) -> None:
            seen.append(1)
            raise ValueError(f"call {len(seen)}")

        assert bench.run(handle, max_attempts=3).dead == 1
        for round in (2, 3):
            assert bench.orders.redrive("balog", lambda letter: letter.body) == 1
            assert bench.run(handle, max_attempts=3) == EngineStats(received=3, failed=3, dead=1)
            assert len(seen) == 3 * round
            assert bench.dead[0].reason.endswith(f"call {len(seen)}")

    @pytest.mark.parametrize("keeps_ids", [True, False])
    def test_a_crash_before_the_first_call_takes_nothing_from_a_redriven_letter(
        self, bench: Any, keeps_ids: bool
    ) -> None:
        bench.orders.__class__ = MemoryTopic if keeps_ids else Queue
        bench.publish({})
        handle = Scripted(then=ValueError())
        assert bench.run(handle, max_attempts=3).dead == 1
        assert bench.orders.redrive("balog", lambda letter: letter.body) == 1
        deliver(bench.orders, 2)
        assert bench.run(handle, max_attempts=3).dead == 1
        assert len(handle.calls) == 6

    def test_an_event_that_was_given_up_and_is_sent_once_more_has_all_attempts(self, bench: Any, queue: Topic) -> None:
        first, second = copies(2)
        handle = Scripted(then=ValueError())
        for copy in (first, second):
            queue.publish([copy])
            assert bench.run(handle, max_attempts=3).failed == 3
        assert len(handle.calls) == 6


class TestReplayed:
    @pytest.mark.parametrize("keeps_ids", [True, False])
    def test_handlers_run_again_for_what_they_succeeded_and_failed_with(self, bench: Any, keeps_ids: bool) -> None:
        bench.orders.__class__ = MemoryTopic if keeps_ids else Queue
        bench.publish({"n": 1}, {"n": 2})
        one = Scripted()
        seen: Counter[int] = Counter()

        def other(settings: Settings, event: Event) -> None:
            seen[event.payload["n"]] += 1
            if event.payload["n"] == 2:
                raise ValueError

        for round in (1, 2, 3):
            counts = bench.run(one, other, max_attempts=2)
            assert (counts.duplicates, counts.failed, counts.dead) == (0, 2, 1)
            assert (Counter(one.calls), seen) == ({1: round, 2: round}, {1: round, 2: 2 * round})
            bench.orders.seek("balog", "earliest")

    def test_what_succeeded_in_a_replay_does_not_run_again_for_its_older_dead_letter(self, bench: Any) -> None:
        bench.publish({})
        fail_once = Scripted(ValueError())
        assert bench.run(fail_once, max_attempts=1).dead == 1
        bench.orders.seek("balog", "earliest")
        assert bench.run(fail_once, max_attempts=1).succeeded == 1
        bench.orders.redrive("balog", lambda letter: letter.body)
        assert bench.run(fail_once, max_attempts=1) == EngineStats(received=1, duplicates=1)
        assert len(fail_once.calls) == 2

    def test_within_a_replay_a_second_copy_is_still_a_duplicate(self, bench: Any, queue: Topic) -> None:
        queue.publish(copies(2))
        handle = Scripted()
        for round in (1, 2):
            counts = bench.run(handle)
            assert counts == EngineStats(received=2, succeeded=1, duplicates=1)
            assert len(handle.calls) == round
            queue.seek("balog", "earliest")


class TestTopics:
    """One event in two topics, as when an archive is published again: each topic's message is handled."""

    @pytest.fixture(params=[MemoryTopic, Queue], ids=["each id once", "a queue"])
    def topics(self, request: pytest.FixtureRequest, bench: Any) -> dict[str, Topic]:
        topics = {name: bench.home.topic(name) for name in ("orders", "again")}
        events = [Event.new("tests", {"n": number}) for number in range(3)]
        for topic in topics.values():
            topic.__class__ = request.param
            topic.publish([Message(event.header.id, encode(event)) for event in events])
        return topics

    def test_each_is_handled_in_its_first_run_and_in_each_replay(self, bench: Any, topics: dict[str, Topic]) -> None:
        seen: Counter[str] = Counter()
        for round in (1, 2, 3):
            for name, topic in topics.items():
                consumer = Consumer(lambda settings, event: seen.update([name]), name, name="one")  # noqa: B023
                assert bench.run(consumer) == EngineStats(received=3, succeeded=3)
                assert seen[name] == 3 * round
                topic.seek("balog", "earliest")

    def test_a_failure_in_one_is_no_attempt_in_the_other(self, bench: Any, topics: dict[str, Topic]) -> None:
        seen: Counter[str] = Counter()

        def fail(settings: Settings, event: Event) -> None:
            seen[event.header.id] += 1
            raise ValueError

        for name in topics:
            counts = bench.run(Consumer(fail, name, name="one"), max_attempts=2)
            assert counts == EngineStats(received=6, failed=6, dead=3)
        assert set(seen.values()) == {4}


def calls(event: str, calls: Calls) -> LedgerEntry:
    """Return what the ledger holds of calls that did not succeed."""
    return LedgerEntry(event, "orders/handler0", Known(Generation(), calls).text)


def unended(text: str) -> int | None:
    """Return how many calls never ended; None where an entry is none of calls."""
    found = read(text).calls
    return None if found is None else found.unended


def deliver(topic: Topic, times: int) -> None:
    """Have everything been delivered so often, to somebody who died each time."""
    for _ in range(times):
        topic.release("balog", topic.receive("balog", 1000))


class TestCrashes:
    def test_what_was_only_there_when_others_crashed_is_still_handled(self, bench: Any) -> None:
        bench.publish(*({} for _ in range(20)))
        deliver(bench.orders, 9)
        handle = Scripted()
        counts = bench.run(handle, concurrency=4)
        assert counts == EngineStats(received=20, succeeded=20)
        assert len(set(handle.ids)) == len(handle.ids) == 20

    def test_what_began_alone_again_and_again_and_never_came_back_is_given_up(self, bench: Any) -> None:
        killer, neighbour = bench.publish({}, {})
        deliver(bench.orders, 9)
        bench.ledger.record("balog", [calls(killer, Calls(2, 3, 9)), calls(neighbour, Calls(2, 2, 9))])
        handle = Scripted()
        counts = bench.run(handle)
        assert (handle.ids, counts) == ([neighbour], EngineStats(received=2, succeeded=1, dead=1))
        (letter,) = bench.dead
        assert (letter.id, letter.consumers) == (killer, ("handler0",))
        assert letter.reason.startswith("handler0: 3 of 5 calls came to no end")

    def test_without_a_ledger_a_killer_is_not_kept_alive(self, bench: Any) -> None:
        bench.publish({})
        deliver(bench.orders, 106)
        assert bench.run(lambda settings, event: None, ledger=NoLedger()).dead == 1

    def test_suspects_run_one_at_a_time_and_the_ledger_knows_before(self, bench: Any) -> None:
        ids = bench.publish(*({} for _ in range(6)))
        deliver(bench.orders, 5)
        begun: list[set[str]] = []

        def handle(settings: Settings, event: Event) -> None:
            known = bench.ledger.known("balog", ids)
            begun.append({id for id, states in known.items() if unended(states["orders/handler0"]) == 1})
            assert begun[-1] == {event.header.id}

        assert bench.run(handle, concurrency=3).succeeded == 6
        assert len(begun) == 6

    def test_deliveries_that_only_crashes_ended_spend_no_attempts(self, bench: Any) -> None:
        bench.publish({})
        deliver(bench.orders, 9)
        handle = Scripted(then=ValueError("so it was that"))
        assert bench.run(handle, max_attempts=3) == EngineStats(received=3, failed=3, dead=1)
        assert len(handle.calls) == 3
        assert bench.dead[0].reason == "handler0: ValueError: so it was that"

    def test_one_call_that_never_ended_is_an_attempt(self, bench: Any) -> None:
        (id,) = bench.publish({})
        deliver(bench.orders, 1)
        bench.ledger.record("balog", [calls(id, Calls(0, 1, 1))])
        handle = Scripted(then=ValueError())
        assert bench.run(handle, max_attempts=3).dead == 1
        assert len(handle.calls) == 2

    def test_failures_count_in_whichever_process_they_happen(self, bench: Any) -> None:
        bench.publish({})
        seen: list[int] = []
        engine: Any = None

        def handle(settings: Settings, event: Event) -> None:
            seen.append(1)
            engine.stop()
            raise ValueError

        for _ in range(3):
            engine = bench.engine(handle, max_attempts=3)
            engine.run()
        assert len(seen) == 3
        assert len(bench.dead) == 1

    def test_without_a_ledger_deliveries_count_as_attempts(self, bench: Any) -> None:
        bench.publish({})
        handle = Scripted(then=ValueError())
        assert bench.run(handle, ledger=NoLedger(), max_attempts=3).dead == 1
        assert len(handle.calls) == 3

    def test_a_ledger_that_breaks_after_a_call_ends_the_run(self, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Given one of a team's own, then its error is raised, and nobody waits for the call for ever."""
        bench.publish({})
        deliver(bench.orders, 5)

        def handle(settings: Settings, event: Event) -> None:
            monkeypatch.setattr(bench.ledger, "record", lambda group, entries: 1 / 0)

        engine = bench.engine(handle, drain=0.1)
        timer = threading.Timer(20, engine.stop)
        timer.start()
        with pytest.raises(ZeroDivisionError):
            engine.run()
        assert timer.is_alive()
        timer.cancel()

    def test_a_suspect_that_waits_when_the_run_ends_has_not_begun(self, bench: Any, wait_for: Any) -> None:
        (id,) = bench.publish({})
        deliver(bench.orders, 5)
        handle = Scripted(then=Retry("down", after=3600))
        with bench.running(handle):
            wait_for(lambda: handle.calls)
        assert unended(bench.ledger.known("balog", [id])[id]["orders/handler0"]) == 0


class TestOutOfReach:
    @pytest.mark.parametrize("call", ["known", "record"])
    def test_nothing_is_acked_until_it_is_back_and_nothing_handled_twice(
        self, bench: Any, queue: Topic, wait_for: Any, call: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue.publish(copies(1))
        errors = fail_once(bench.ledger, call)
        handle = Scripted()
        with bench.running(handle, lease=0.5) as engine:
            wait_for(lambda: not errors)
            assert bench.pending == 1
            wait_for(lambda: engine.counts.succeeded == 1)
        assert len(handle.ids) == 1
        assert bench.pending == 0

    def test_a_run_that_ends_when_nothing_is_left_gives_up(self, bench: Any, queue: Topic) -> None:
        queue.publish(copies(1))
        fail_once(bench.ledger, "known")
        with pytest.raises(TopicError, match="known is out of order"):
            bench.run(lambda settings, event: None)
        assert [message.attempts for message in queue.receive("balog")] == [1]


class TestNoEndlessLoop:
    def test_what_a_handler_logs_says_what_caused_it(self, bench: Any) -> None:
        (id,) = bench.publish({})
        seen: list[Any] = []
        bench.run(lambda settings, event: seen.append(bound_values()["caused_by"]))
        assert seen == [{"event": id, "consumers": ["handler0"]}]

    def test_causes_add_up_so_that_a_circle_of_two_ends(self, bench: Any) -> None:
        bench.publish({})
        handled: Counter[str] = Counter()

        def pass_on(name: str, to: str) -> Consumer:
            def handle(settings: Settings, event: Event) -> None:
                handled[name] += 1
                new = Event.new("tests", {"cls_type": to}, context={"caused_by": bound_values()["caused_by"]})
                bench.orders.publish([Message(new.header.id, encode(new))])

            return Consumer(handle, "orders", None if name == "a" else name, name=name)

        bench.run(pass_on("a", "b"), pass_on("b", "c"), pass_on("c", "b"))
        assert handled == {"a": 1, "b": 1, "c": 1}
        last = decode(bench.orders.peek(newest=True, limit=1)[0].body)
        assert last.header.context["caused_by"]["consumers"] == ["a", "b", "c"]

    def test_the_default_handler_does_not_feed_itself(self, bench: Any) -> None:
        bench.publish({"cls_type": "other"})
        seen: list[str] = []

        def default(event: Event) -> None:
            seen.append(event.header.id)
            new = Event.new("tests", {}, context={"caused_by": bound_values()["caused_by"]})
            bench.orders.publish([Message(new.header.id, encode(new))])

        bench.run(Consumer(lambda settings, event: None, "orders", "wanted", name="h"), default_event_handler=default)
        assert len(seen) == 1
