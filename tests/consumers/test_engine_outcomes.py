"""What handlers raise, batches, order by key: what the engine makes of each."""

import asyncio
import gc
import json
import threading
import time
import weakref
from collections import Counter, defaultdict
from typing import Any

import pytest

from balog.common.errors import BalogError, ConfigError, MissingExtraError, TopicError
from balog.consumers import (
    Consumer,
    EngineStats,
    Halt,
    Hook,
    MessageConsumer,
    PartialFailure,
    ReceivedEvent,
    Reject,
    Requeue,
    Retry,
)
from balog.event import MAX_EVENT_BYTES, Event, encode
from balog.topics import Message, Received
from balog.topics.memory import MemoryTopic
from tests.consumers.runs import Scripted

Settings = dict[str, Any]


def number(event: Event) -> int:
    found: int = event.payload["n"]
    return found


class Odd(Exception):
    """One that can be referred to weakly."""


class TestFailure:
    def test_events_that_failed_together_come_again_in_few_groups_and_never_later_than_the_backoff(
        self, bench: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.publish(*({"n": n} for n in range(300)))
        release, delays = MemoryTopic.release, set()

        def release_at_once(topic: MemoryTopic, group: str, received: Any, delay: float, *, attempted: bool) -> int:
            delays.add(delay)
            return release(topic, group, received, 0.0, attempted=attempted)

        monkeypatch.setattr(MemoryTopic, "release", release_at_once)
        assert bench.run(Scripted(*[ValueError()] * 300), first_delay=8.0).succeeded == 300
        assert len(delays) <= 80  # of 300: eight in each octave
        assert max(delays) <= 8.0

    @pytest.mark.parametrize("kind", ["plain", "async"])
    def test_what_a_handler_raised_is_gone_with_its_call(self, bench: Any, kind: str) -> None:
        """Or frames, events and all that handlers had in hand would wait for the garbage collector."""
        bench.publish(*({} for _ in range(20)))
        raised: list[weakref.ref[Exception]] = []

        def fail(settings: Settings, event: Event) -> None:
            error = Odd("no")
            raised.append(weakref.ref(error))
            try:
                raise error
            finally:
                del error  # or the handler itself would make the circle

        async def fail_async(settings: Settings, event: Event) -> None:
            fail(settings, event)

        gc.collect()
        gc.disable()
        try:
            bench.run({"plain": fail, "async": fail_async}[kind], max_attempts=2)
            assert len(raised) == 40
            assert [error() for error in raised if error() is not None] == []
        finally:
            gc.enable()


class PanicException(BaseException):
    """What a Rust extension raises when it panics: no Exception, as PyO3 has it, and here without a text either."""

    def __str__(self) -> str:
        raise PanicException


class TestAnyError:
    """Nothing that a handler raises ends a run, but Halt: handlers never run in the main thread."""

    ERRORS = (PanicException, GeneratorExit, asyncio.CancelledError, KeyboardInterrupt, SystemExit, BaseException)

    @pytest.mark.parametrize("kind", ["plain", "async", "batch", "async batch"])
    @pytest.mark.parametrize("number", range(len(ERRORS)))
    def test_it_is_a_failed_attempt(self, bench: Any, kind: str, number: int) -> None:
        make = self.ERRORS[number]
        bench.publish({"n": 0}, {"n": 1}, {"n": 2})
        succeeded: list[int] = []

        def handle(given: Any) -> None:
            numbers = [event.payload["n"] for event in (given if "batch" in kind else [given])]
            if 1 in numbers:
                raise make()
            succeeded.extend(numbers)

        async def handle_async(given: Any) -> None:
            await asyncio.sleep(0)
            handle(given)

        batch = (3, 0.01) if "batch" in kind else None
        consumer = Consumer(handle_async if "async" in kind else handle, "orders", name="h", batch=batch)
        counts = bench.run(consumer, max_attempts=3)
        assert sorted(succeeded) == [0, 2]
        assert (counts.succeeded, counts.dead) == (2, 1)
        (letter,) = bench.dead
        assert letter.attempts == 3
        assert letter.reason.startswith("h: ")
        assert bench.pending == 0

    def test_one_that_cancels_its_own_task_has_failed(self, bench: Any) -> None:
        bench.publish({})

        async def handle(settings: Settings, event: Event) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

        assert bench.run(handle, max_attempts=2).dead == 1

    def test_a_hook_that_raises_it_costs_no_event(self, bench: Any) -> None:
        class Broken(Hook):
            def before_process(self, work: Any) -> None:
                raise PanicException

        bench.publish({})
        assert bench.run(lambda settings, event: None, hooks=[Broken()]).succeeded == 1


class TestReject:
    def test_it_is_given_up_at_the_first_attempt(self, bench: Any) -> None:
        (id,) = bench.publish({})
        assert bench.run(Scripted(then=Reject("no such order"))) == EngineStats(received=1, failed=1, dead=1)
        (letter,) = bench.dead
        assert (letter.id, letter.attempts, letter.consumers) == (id, 1, ("handler0",))
        assert letter.reason == "handler0: balog.consumers.outcomes.Reject: no such order"

    def test_others_of_the_event_are_not_held_back(self, bench: Any) -> None:
        bench.publish({})
        seen: list[str] = []

        def fail_once(settings: Settings, event: Event) -> None:
            seen.append("tried")
            if len(seen) == 1:
                raise ValueError

        bench.run(Scripted(then=Reject("no")), fail_once)
        assert seen == ["tried", "tried"]
        assert [(letter.consumers, letter.attempts) for letter in bench.dead] == [(("handler0",), 2)]
        assert "Reject: no" in bench.dead[0].traceback  # known from the ledger by then


class TestRetry:
    def test_it_is_no_attempt_and_the_message_never_leaves(self, bench: Any) -> None:
        bench.publish({})
        wait_a_while = Scripted(*[Retry("the other side is down", after=0.001)] * 19)
        assert bench.run(wait_a_while, max_attempts=2) == EngineStats(received=1, succeeded=1)
        assert len(wait_a_while.calls) == 20

    @pytest.mark.parametrize("after", ["120", float("nan")])
    def test_seconds_that_are_no_number_are_a_failure(self, bench: Any, wait_for: Any, after: Any) -> None:
        """Given a header that a handler passes on as it is, then the run goes on."""
        bench.publish({})

        def wait_a_while(settings: Settings, event: Event) -> None:
            raise Retry("the other side is down", after=after)

        with bench.running(wait_a_while, max_attempts=1, drain=0) as engine:
            wait_for(lambda: engine.counts.dead)
        assert len(bench.dead) == 1
        assert "TypeError" in bench.dead[0].reason or "ValueError" in bench.dead[0].reason

    def test_only_the_one_who_asked_is_called_again(self, bench: Any) -> None:
        bench.publish({})
        later, fine = Scripted(Retry("busy", after=0.001)), Scripted()
        bench.run(later, fine)
        assert (len(later.calls), len(fine.calls)) == (2, 1)

    def test_a_stop_gives_it_back_uncounted(self, bench: Any, wait_for: Any) -> None:
        bench.publish({})
        never = Scripted(then=Retry("down", after=3600))
        with bench.running(never):
            wait_for(lambda: never.calls)
        assert [message.attempts for message in bench.orders.receive("balog")] == [1]


class TestRequeue:
    def test_the_message_waits_in_the_topic_and_no_attempt_is_counted(self, bench: Any, wait_for: Any) -> None:
        bench.publish({})
        later = Scripted(then=Requeue("tomorrow", after=3600))
        with bench.running(later, max_attempts=1) as engine:
            wait_for(lambda: later.calls and not engine.state.in_flight)
            state = bench.orders.group_state("balog")
        assert (state.in_flight, state.waiting, bench.dead) == (0, 1, [])
        assert engine.counts.failed == 0

    @pytest.mark.parametrize("counts", [True, False])
    def test_it_comes_again_as_the_next_delivery_if_it_counts(self, bench: Any, counts: bool) -> None:
        bench.publish({})
        deliveries: list[int] = []

        def handle(settings: Settings, received: ReceivedEvent) -> None:
            deliveries.append(received.message.attempts)
            if len(deliveries) < 4:
                raise Requeue("not yet", counts=counts)

        stats = bench.run(MessageConsumer(handle, "orders", name="slow"), max_attempts=1)
        assert deliveries == ([1, 2, 3, 4] if counts else [1, 1, 1, 1])
        assert (stats.succeeded, stats.failed) == (1, 0)

    def test_with_an_order_it_holds_back_its_key(self, bench: Any) -> None:
        bench.publish(*({"n": n} for n in range(4)))
        handle = Scripted(Requeue("not yet"))
        bench.run(Consumer(handle, "orders", name="ordered", ordered_by="'all'"))
        assert handle.calls == [0, 0, 1, 2, 3]

    def test_seconds_that_are_no_number_are_refused(self) -> None:
        with pytest.raises(ValueError, match="after is nan"):
            Requeue("never", after=float("nan"))


class TestMessageConsumer:
    def test_it_gets_the_bytes_as_they_were_published(self, bench: Any) -> None:
        ids = bench.publish({"n": 1}, {"n": 2})
        got: list[ReceivedEvent] = []
        bench.run(MessageConsumer(lambda settings, one: got.append(one), "orders", name="raw"))
        assert [one.event.header.id for one in got] == ids
        assert [json.loads(one.message.body)["payload"] for one in got] == [{"n": 1}, {"n": 2}]

    def test_a_batch_that_failed_comes_again_as_it_was(self, bench: Any) -> None:
        bench.publish(*({"n": n} for n in range(6)))
        handle = Scripted(*[Requeue("all of them again")] * 2)
        bench.run(MessageConsumer(handle, "orders", name="raw", batch=(6, 5.0)))
        assert handle.calls == [[0, 1, 2, 3, 4, 5]] * 3

    def test_its_words_are_the_reason_and_nothing_is_logged(self, bench: Any, caplog: Any) -> None:
        bench.publish({})
        bench.run(MessageConsumer(Scripted(then=Reject("too old by an hour")), "orders", name="raw"))
        [letter] = bench.dead
        assert (letter.reason, letter.consumers, letter.traceback) == ("too old by an hour", ("raw",), "")
        assert caplog.records == []

    def test_it_gets_events_that_it_caused(self, bench: Any) -> None:
        bench.publish({}, context={"caused_by": {"event": "LG1", "consumers": ["raw", "plain"]}})
        got: list[str] = []
        bench.run(
            MessageConsumer(lambda settings, one: got.append("raw"), "orders", name="raw"),
            Consumer(lambda settings, event: got.append("plain"), "orders", name="plain"),
        )
        assert got == ["raw"]


class TestAdmission:
    def test_no_more_are_in_flight_than_it_admits(self, bench: Any) -> None:
        bench.publish(*({"n": n} for n in range(50)))
        most: list[int] = []

        def admit(held: int, size: int) -> tuple[int, float]:
            most.append(held)
            return max(0, 3 - held), 0.01

        stats = bench.run(lambda settings, event: time.sleep(0.001), admission=admit, concurrency=2)
        assert stats.succeeded == 50
        assert max(most) <= 3

    def test_while_it_admits_none_the_messages_stay_in_the_topic(self, bench: Any, wait_for: Any) -> None:
        bench.publish(*({} for _ in range(5)))
        asked: list[int] = []
        is_open = threading.Event()

        def admit(held: int, size: int) -> tuple[int, float]:
            asked.append(held)
            return (10 if is_open.is_set() else 0), 0.01

        with bench.running(lambda settings, event: None, admission=admit) as engine:
            wait_for(lambda: len(asked) > 3)
            assert bench.orders.group_state("balog").lag == 5
            is_open.set()
            wait_for(lambda: engine.counts.succeeded == 5)

    def test_a_forming_batch_is_called_when_no_more_are_admitted(self, bench: Any, wait_for: Any) -> None:
        bench.publish(*({} for _ in range(5)))
        handle = Scripted()
        consumer = Consumer(handle, "orders", batch=(100, 600.0))
        with bench.running(consumer, admission=lambda held, size: (0 if held else 2, 0.01)) as engine:
            wait_for(lambda: engine.counts.succeeded == 5)
        assert [len(call) for call in handle.calls] == [2, 2, 1]


class TestTick:
    def test_a_hook_hears_from_the_main_loop_and_of_a_topic_that_is_away(
        self, bench: Any, wait_for: Any, monkeypatch: Any
    ) -> None:
        ticks: list[object] = []
        away: list[str] = []

        class Watch(Hook):
            def tick(self, engine: object) -> None:
                ticks.append(engine)

            def unreachable(self, topic: str, error: BalogError) -> None:
                away.append(f"{topic}: {error}")

        def fail(*arguments: Any) -> None:
            raise TopicError("the disk is away")

        monkeypatch.setattr(MemoryTopic, "receive", fail)
        bench.publish({})
        with bench.running(lambda settings, event: None, hooks=[Watch()]) as engine:
            wait_for(lambda: away and len(ticks) > 1)
        assert set(ticks) == {engine}
        assert away[0] == "orders: the disk is away"


class TestRetriesOfAConsumer:
    def test_each_consumer_has_its_own_number(self, bench: Any) -> None:
        bench.publish({})
        once, often, default = (Scripted(then=ValueError(text)) for text in ("once", "often", "as the engine says"))
        bench.run(
            Consumer(once, "orders", name="a", retries=0),
            Consumer(often, "orders", name="b", retries=6, backoff=0.001),
            Consumer(default, "orders", name="c"),
            max_attempts=3,
        )
        assert [len(one.calls) for one in (once, often, default)] == [1, 7, 3]
        (letter,) = bench.dead
        assert sorted(letter.consumers) == ["a", "b", "c"]
        assert all(f"ValueError: {text}" in letter.reason for text in ("once", "often", "as the engine says"))


class TestBatch:
    def test_a_handler_gets_lists_of_its_size_in_order(self, bench: Any) -> None:
        ids = bench.publish(*({} for _ in range(25)))
        handle = Scripted()
        assert bench.run(Consumer(handle, "orders", batch=(10, 0.05))) == EngineStats(received=25, succeeded=25)
        assert [len(batch) for batch in handle.calls] == [10, 10, 5]
        assert handle.ids == ids

    @pytest.mark.parametrize(
        ("events", "batch", "options", "sizes"),
        [
            pytest.param(50, (50, 60), {"batch": 7}, [50], id="larger than what is received at once"),
            pytest.param(3, (50, 3600), {}, [3], id="the run ends when nothing is left"),
            pytest.param(60, (20, 60), {}, [20, 20, 20], id="received whole"),
        ],
    )
    def test_a_batch_waits_for_its_size_while_events_may_come(
        self, bench: Any, events: int, batch: Any, options: Any, sizes: list[int]
    ) -> None:
        bench.publish(*({} for _ in range(events)))
        handle = Scripted()
        bench.run(Consumer(handle, "orders", batch=batch), **options)
        assert [len(call) for call in handle.calls] == sizes

    def test_a_partial_failure_brings_only_those_back(self, bench: Any) -> None:
        ids = bench.publish(*({"n": n} for n in range(10)))
        handle = Scripted(PartialFailure({ids[3]: "odd", ids[7]: Reject("never")}))
        counts = bench.run(Consumer(handle, "orders", batch=(10, 0.05)))
        assert handle.calls == [list(range(10)), [3]]
        assert counts == EngineStats(received=11, succeeded=9, failed=2, dead=1)
        assert [letter.id for letter in bench.dead] == [ids[7]]

    def test_one_that_is_named_without_a_reason_has_failed(self, bench: Any) -> None:
        ids = bench.publish({}, {})
        reasons: Any = {ids[0]: None}
        handle = Scripted(then=PartialFailure(reasons))
        assert bench.run(Consumer(handle, "orders", batch=(2, 60)), max_attempts=1).succeeded == 1
        assert [letter.id for letter in bench.dead] == [ids[0]]

    def test_one_poison_event_does_not_take_its_neighbours_along(self, bench: Any) -> None:
        ids = bench.publish(*({"n": n} for n in range(20)))
        calls: list[int] = []
        done: Counter[int] = Counter()

        def handle(settings: Settings, events: list[Event]) -> None:
            calls.append(len(events))
            if any(number(event) == 13 for event in events):
                raise ValueError("poison")
            done.update(number(event) for event in events)

        counts = bench.run(Consumer(handle, "orders", batch=(20, 0.05)), max_attempts=3)
        assert [letter.id for letter in bench.dead] == [ids[13]]
        assert done == {n: 1 for n in range(20) if n != 13}
        assert calls == [20, *[1] * 21]  # all alone after the first time, the poison once more
        assert (counts.succeeded, counts.dead) == (19, 1)

    def test_a_partial_failure_that_names_strangers_is_one_of_all(self, bench: Any) -> None:
        bench.publish({}, {})
        handle = Scripted(PartialFailure(["LGother"]))
        assert bench.run(Consumer(handle, "orders", batch=(2, 1))).succeeded == 2
        assert [len(one) for one in handle.calls] == [2, 1, 1]

    def test_a_retry_keeps_them_together(self, bench: Any) -> None:
        bench.publish({}, {}, {})
        handle = Scripted(*[Retry("down", after=0.001)] * 2)
        bench.run(Consumer(handle, "orders", batch=(3, 5)))
        assert [len(one) for one in handle.calls] == [3, 3, 3]


class TestOrder:
    def test_events_of_one_key_are_handled_in_order_whatever_fails(self, bench: Any) -> None:
        ids = bench.publish(*({"k": f"k{n % 5}", "n": n} for n in range(100)))
        log: dict[str, list[int]] = defaultdict(list)
        tries: Counter[int] = Counter()
        lock = threading.Lock()
        active: Counter[str] = Counter()
        overlaps: list[str] = []

        def handle(settings: Settings, event: Event) -> None:
            key, n = event.payload["k"], number(event)
            with lock:
                active[key] += 1
                if active[key] > 1:
                    overlaps.append(key)
                tries[n] += 1
                fails = n % 7 == 0 and tries[n] < 3
                log[key].append(n)
            try:
                if fails or n == 33:
                    raise ValueError
            finally:
                with lock:
                    active[key] -= 1

        counts = bench.run(Consumer(handle, "orders", ordered_by="payload.k", backoff=0.001), concurrency=4)
        assert not overlaps
        assert all(seen == sorted(seen) for seen in log.values())
        assert (counts.succeeded, counts.dead) == (99, 1)
        assert [letter.id for letter in bench.dead] == [ids[33]]
        assert tries[33] == 5

    def test_pollers_of_a_topic_that_keeps_order_by_key_swap_nothing(self, bench: Any) -> None:
        """Given a log of several partitions, and a first receive that is read slowly."""

        class Log(MemoryTopic):
            keeps_order = False

            def receive(self, *arguments: Any, **options: Any) -> list[Received]:
                received = super().receive(*arguments, **options)
                if received and json.loads(received[0].body)["payload"]["n"] == 0:
                    time.sleep(0.2)
                return received

        bench.orders.__class__ = Log
        bench.publish(*({"k": "a", "n": n} for n in range(10)))
        handle = Scripted()
        bench.run(Consumer(handle, "orders", ordered_by="payload.k"), pollers=2, batch=5, concurrency=2)
        assert handle.calls == list(range(10))

    def test_a_failed_key_holds_only_its_own(self, bench: Any, wait_for: Any) -> None:
        bench.publish({"k": "a", "n": 0}, {"k": "a", "n": 1}, {"k": "b", "n": 2}, {"n": 3}, {"k": None, "n": 4})
        handle = Scripted(ValueError())
        with bench.running(Consumer(handle, "orders", ordered_by="payload.k", backoff=3600)):
            wait_for(lambda: len(handle.calls) == 4)
        assert handle.calls == [0, 2, 3, 4]
        again = bench.orders.receive("balog")
        assert [(message.attempts) for message in again] == [2, 1]  # the one that failed counts, and comes first

    def test_a_batch_holds_several_of_a_key_in_order_and_waits_after_a_failure(self, bench: Any) -> None:
        ids = bench.publish(*({"k": "ab"[n % 2], "n": n} for n in range(12)))
        handle = Scripted(PartialFailure([ids[2], ids[4]]))
        consumer = Consumer(handle, "orders", batch=(6, 0.01), ordered_by="payload.k", backoff=0.01)
        assert bench.run(consumer).succeeded == 12
        assert handle.calls[0] == [0, 1, 2, 3, 4, 5]
        evens = [n for call in handle.calls[1:] for n in call if n % 2 == 0]
        assert evens == [2, 4, 6, 8, 10]
        assert [2] in handle.calls
        assert [4] in handle.calls

    @pytest.mark.parametrize("error", [ValueError("no"), Retry("later", after=0.001), Reject("never")])
    def test_a_partial_failure_ends_the_rest_of_its_key_in_the_batch(self, bench: Any, error: BaseException) -> None:
        """What came behind it in its order comes again behind it; what came before it, or has another key, does not."""
        ids = bench.publish(*({"k": "ab"[n % 2], "n": n} for n in range(8)))
        handle = Scripted(PartialFailure({ids[2]: error}))
        consumer = Consumer(handle, "orders", name="h", ordered_by="payload.k", batch=(8, 0.01), backoff=0.001)
        counts = bench.run(consumer, max_attempts=3)
        assert handle.calls[0] == list(range(8))
        is_dead = isinstance(error, Reject)
        assert [n for call in handle.calls[1:] for n in call] == ([4, 6] if is_dead else [2, 4, 6])
        assert (counts.succeeded, counts.dead, counts.failed) == (
            7 if is_dead else 8,
            int(is_dead),
            isinstance(error, ValueError) + is_dead,
        )

    def test_without_an_order_a_partial_failure_ends_nothing(self, bench: Any) -> None:
        ids = bench.publish(*({"n": n} for n in range(4)))
        handle = Scripted(PartialFailure([ids[0]]))
        bench.run(Consumer(handle, "orders", name="h", batch=(4, 0.01)))
        assert handle.calls == [[0, 1, 2, 3], [0]]

    def test_what_is_held_has_a_bound_that_stops_intake(
        self, bench: Any, wait_for: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("balog.consumers.queueing.in_flight.MAX_HELD", 30)
        bench.publish(*({"k": "a", "n": n} for n in range(100)))
        handle = Scripted(then=ValueError())
        with bench.running(Consumer(handle, "orders", ordered_by="payload.k", backoff=3600), batch=10) as engine:
            wait_for(lambda: engine.state.in_flight == 30 and handle.calls)
            assert bench.orders.group_state("balog").lag == 70
        assert handle.calls == [0]

    def test_a_batch_that_can_never_fill_goes_when_no_more_may_be_held(
        self, bench: Any, wait_for: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("balog.consumers.queueing.in_flight.MAX_HELD", 30)
        bench.publish(*({} for _ in range(90)))
        handle = Scripted()
        with bench.running(Consumer(handle, "orders", batch=(1000, 3600)), batch=10):
            wait_for(lambda: len(handle.ids) >= 90 and len(handle.calls) >= 3)
        assert [len(call) for call in handle.calls] == [30, 30, 30]


class TestUnwanted:
    def test_the_default_handler_gets_what_nobody_wants_with_retries(self, bench: Any) -> None:
        bench.publish({"cls_type": "wanted"}, {"cls_type": "other"})
        seen: list[str | None] = []

        def default(event: Event) -> None:
            seen.append(event.cls_type)
            if len(seen) < 3:
                raise ValueError

        consumer = Consumer(lambda settings, event: None, "orders", "wanted", name="h")
        counts = bench.run(consumer, default_event_handler=default)
        assert seen == ["other"] * 3
        assert counts == EngineStats(received=4, succeeded=1, failed=2, unwanted=1, unwanted_types={"other": 1})

    def test_an_event_whose_match_event_raises_is_a_dead_letter(self, bench: Any) -> None:
        class Odd(Consumer):
            def match_event(self, event: Any) -> bool:
                if event.payload:
                    raise GeneratorExit("can't tell")
                return True

        bench.publish({}, {"n": 1}, {})
        counts = bench.run(Odd(lambda settings, event: None, "orders", name="odd"))
        assert (counts.succeeded, counts.dead) == (2, 1)
        assert bench.dead[0].reason == "cannot be routed to a handler: GeneratorExit: can't tell"


class TestHalt:
    @pytest.mark.parametrize("is_async", [False, True])
    def test_the_run_ends_with_it_and_the_events_are_as_they_were(self, bench: Any, is_async: bool) -> None:
        ids = bench.publish({}, {}, {})

        def lack(settings: Settings, event: Event) -> None:
            raise Halt("set PAGER_KEY")

        async def lack_async(settings: Settings, event: Event) -> None:
            lack(settings, event)

        with pytest.raises(Halt, match=r"^set PAGER_KEY$"):
            bench.run(lack_async if is_async else lack, max_attempts=1)
        assert bench.dead == []
        assert [(message.id, message.attempts) for message in bench.orders.receive("balog")] == [(id, 1) for id in ids]

    def test_of_a_batch_the_rest_is_done(self, bench: Any) -> None:
        ids = bench.publish({}, {}, {})
        lack = Scripted(then=PartialFailure({ids[1]: Halt("no package for parquet")}))
        with pytest.raises(Halt, match="no package for parquet"):
            bench.run(Consumer(lack, "orders", batch=(3, 60)), max_attempts=1)
        assert bench.dead == []
        assert [(message.id, message.attempts) for message in bench.orders.receive("balog")] == [(ids[1], 1)]

    @pytest.mark.parametrize("error", [ConfigError("no such place"), MissingExtraError("parquet", "spark")])
    def test_an_error_of_configuration_that_an_event_brings_about_is_a_failure_like_any_other(
        self, bench: Any, error: Exception
    ) -> None:
        """Given one event that names a sink which can't be, then it can't end the run again and again."""
        ids = bench.publish({"n": 0}, {"n": 1}, {"n": 2})

        def handle(settings: Settings, event: Event) -> None:
            if number(event) == 1:
                raise error

        assert bench.run(handle, max_attempts=2).succeeded == 2
        assert [(letter.id, letter.attempts) for letter in bench.dead] == [(ids[1], 2)]


def test_an_event_over_the_limit_is_a_dead_letter_and_holds_up_no_other(bench: Any) -> None:
    body = encode(Event.new("tests", {"text": "x" * MAX_EVENT_BYTES}))
    bench.orders.publish([Message("huge", body)])
    (small,) = bench.publish({})
    handle = Scripted()
    counts = bench.run(handle)
    assert (handle.ids, counts.succeeded, counts.dead) == ([small], 1, 1)
    assert "limit" in bench.dead[0].reason
