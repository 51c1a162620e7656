"""The engine: every event to all who want it, once; failures again and then aside; nothing lost."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import pytest

from balog.common.backoff import Backoff
from balog.common.errors import ConfigError, TopicError
from balog.consumers import Consumer, ConsumerHub, ConsumerOperator, Engine, EngineStats, Hook, MessageConsumer
from balog.event import Event
from balog.topics import Message, Received, Topic
from balog.topics.local import LocalTopic, LocalTopics
from tests.consumers.runs import Scripted, fail_once, running
from tests.waiting import wait_for

Handler = Callable[[dict[str, Any], Event], object]
Publish = Callable[..., list[str]]


def hub_of(*handlers: Handler | Consumer) -> ConsumerHub:
    hub = ConsumerHub()
    for number, handler in enumerate(handlers):
        hub.add(handler if isinstance(handler, Consumer) else Consumer(handler, "orders", name=f"handler{number}"))
    return hub


def run(home: LocalTopics, *handlers: Handler | Consumer, **options: Any) -> EngineStats:
    return Engine(hub_of(*handlers), home, first_delay=0.01, **options).run(until_empty=True)


NO_LUCK = ValueError("no luck\nat all")


class TestSuccess:
    def test_every_event_is_handled_once_in_order(self, home: LocalTopics, publish: Publish) -> None:
        ids = publish(*({"n": number} for number in range(250)))
        recorder = Scripted()
        assert run(home, recorder) == EngineStats(received=250, succeeded=250)
        assert recorder.ids == ids
        assert run(home, recorder) == EngineStats()
        assert recorder.ids == ids

    def test_all_who_want_an_event_get_it(self, home: LocalTopics, publish: Publish) -> None:
        log, metric, _ = publish({"cls_type": "log"}, {"cls_type": "metric"}, {"cls_type": "other"})
        logs, both = Scripted(), Scripted()
        counts = run(
            home, Consumer(logs, "orders", "log", name="logs"), Consumer(both, "orders", ("log", "metric"), name="both")
        )
        assert (logs.ids, both.ids) == ([log], [log, metric])
        assert counts == EngineStats(received=3, succeeded=2, unwanted=1, unwanted_types={"other": 1})

    def test_groups_are_independent(self, home: LocalTopics, publish: Publish) -> None:
        ids = publish({}, {})
        one, two = Scripted(), Scripted()
        run(home, one, group="one")
        run(home, two, group="two")
        assert one.ids == two.ids == ids

    def test_several_topics_are_read_by_one_engine(self, home: LocalTopics) -> None:
        handled = []
        for name in ("a", "b"):
            home.topic(name).publish([Message(name, b"not an event")])
        consumers = [
            Consumer(lambda settings, event: handled.append(event), f"{{x}}{name}", name=name) for name in "ab"
        ]
        engine = Engine(hub_of(*consumers), home, ConsumerOperator({"x": ""}))
        assert engine.run(until_empty=True) == EngineStats(received=2, dead=2)

    def test_a_handler_cannot_change_what_the_next_one_gets(self, home: LocalTopics, publish: Publish) -> None:
        publish({"n": 1})
        seen = []
        spoil = Consumer(lambda settings, event: event.payload.clear(), "orders", name="a")
        look = Consumer(lambda settings, event: seen.append(dict(event.payload)), "orders", name="b")
        run(home, spoil, look)
        assert seen == [{"n": 1}]

    def test_an_operator_needs_no_more_than_two_methods(self, home: LocalTopics, publish: Publish) -> None:
        ids = publish({}, {})
        seen = []

        class Operator:
            def get_topic(self, consumer: Consumer) -> str:
                return consumer.topic.replace("?", "orders")

            def process_event(self, consumer: Consumer, event: Event) -> None:
                seen.append((consumer.name, event.header.id))

        consumer = Consumer(lambda: None, "?", name="x")
        assert run(home, consumer, consumer_operator=Operator()).succeeded == 2
        assert seen == [("x", id) for id in ids]


class TestFailure:
    def test_a_failing_handler_is_tried_again_until_it_succeeds(self, home: LocalTopics, publish: Publish) -> None:
        (id,) = publish({})
        recorder = Scripted(NO_LUCK, NO_LUCK)
        assert run(home, recorder) == EngineStats(received=3, succeeded=1, failed=2)
        assert recorder.ids == [id] * 3

    def test_one_failure_does_not_hold_up_the_others(self, home: LocalTopics, publish: Publish) -> None:
        ids = publish({}, {}, {})
        recorder = Scripted(NO_LUCK)
        run(home, recorder)
        assert recorder.ids == [*ids, ids[0]]

    def test_the_delay_grows(self, home: LocalTopics, publish: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("random.random", lambda: 1.0)
        publish({})
        times: list[float] = []

        def fail(settings: dict[str, Any], event: Event) -> None:
            times.append(time.time())
            raise ValueError

        Engine(hub_of(fail), home, first_delay=0.1, max_attempts=4).run(until_empty=True)
        waits = [after - before for before, after in pairwise(times)]
        assert [wait >= least for wait, least in zip(waits, (0.1, 0.2, 0.4))] == [True, True, True]

    def test_after_the_last_attempt_it_is_dead_lettered_with_the_reason(
        self, home: LocalTopics, orders: Topic, publish: Publish
    ) -> None:
        (id,) = publish({})
        recorder = Scripted(then=NO_LUCK)
        assert run(home, recorder) == EngineStats(received=5, failed=5, dead=1)
        assert len(recorder.ids) == 5
        (dead,) = orders.dead_letters("balog")
        assert (dead.id, dead.attempts) == (id, 5)
        assert (dead.reason, dead.consumers) == ("handler0: ValueError: no luck at all", ("handler0",))
        assert dead.traceback.startswith("Traceback")
        assert "raise error" in dead.traceback
        assert orders.group_state("balog").pending == 0

    def test_a_hundred_events_that_failed_together_do_not_retry_together(
        self, home: LocalTopics, publish: Publish
    ) -> None:
        """Given 100 events that fail within moments, then their retries are spread over the whole delay."""
        publish(*[{}] * 100)
        times: dict[str, list[float]] = {}

        def fail_once(settings: dict[str, Any], event: Event) -> None:
            seen = times.setdefault(event.header.id, [])
            seen.append(time.monotonic())
            if len(seen) == 1:
                raise ValueError

        Engine(hub_of(fail_once), home, first_delay=1.0).run(until_empty=True)
        waits = sorted(second - first for first, second in times.values())
        assert waits[10] < 0.5 < waits[90]

    def test_each_failure_is_one_log_line(
        self, home: LocalTopics, publish: Publish, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("random.random", lambda: 1.0)
        (id,) = publish({})
        with caplog.at_level(logging.WARNING, "balog.consumers"):
            run(home, Scripted(then=NO_LUCK), max_attempts=2)
        assert [record.getMessage() for record in caplog.records] == [
            f"handler0 failed on {id} in orders, attempt 1 of 2, again in 0.01 s: ValueError: no luck at all",
            f"handler0 failed on {id} in orders, attempt 2 of 2, dead-lettered: ValueError: no luck at all",
        ]

    @pytest.mark.parametrize("body", [b"", b"\0\xff", b"{}", b"not json", b'{"schema": "9.0.0"}', b"[]"])
    def test_what_is_no_event_is_dead_lettered_at_once_with_its_bytes(
        self, home: LocalTopics, orders: Topic, body: bytes
    ) -> None:
        orders.publish([Message("odd", body)])
        recorder = Scripted()
        assert run(home, recorder) == EngineStats(received=1, dead=1)
        assert recorder.ids == []
        (dead,) = orders.dead_letters("balog")
        assert (dead.id, dead.body, dead.attempts) == ("odd", body, 1)
        assert dead.reason.startswith("not an event: $")


class TestWaiting:
    def test_until_empty_waits_for_what_another_consumer_holds(
        self, home: LocalTopics, orders: Topic, publish: Publish
    ) -> None:
        (id,) = publish({})
        orders.receive("balog", lease=0.5)
        recorder = Scripted()
        assert run(home, recorder).succeeded == 1
        assert recorder.ids == [id]

    def test_a_topic_that_comes_later_is_waited_for(self, home: LocalTopics, publish: Publish) -> None:
        recorder = Scripted()
        engine = Engine(hub_of(recorder), home)
        with running(engine):
            time.sleep(0.2)
            ids = publish({})
            wait_for(lambda: recorder.ids == ids)
        assert engine.counts == EngineStats(received=1, succeeded=1)

    def test_until_empty_needs_a_topic(self, home: LocalTopics) -> None:
        with pytest.raises(TopicError, match=r"orders in local:.*: no such topic"):
            run(home, Scripted())

    def test_no_consumers_is_wrong_use(self, home: LocalTopics) -> None:
        with pytest.raises(ConfigError, match="no consumers"):
            run(home)

    @pytest.mark.parametrize("group", ["", "../x"])
    def test_a_bad_group_is_refused(self, home: LocalTopics, group: str) -> None:
        with pytest.raises(ConfigError, match="group name"):
            Engine(hub_of(Scripted()), home, group=group)


class TestStopping:
    def test_stop_finishes_the_event_in_hand_and_releases_the_rest(
        self, home: LocalTopics, orders: Topic, publish: Publish
    ) -> None:
        ids = publish({}, {}, {})
        engine: Engine

        def stop_at_once(settings: dict[str, Any], event: Event) -> None:
            engine.stop()

        engine = Engine(hub_of(stop_at_once), home, lease=60)
        assert engine.run() == EngineStats(received=1, succeeded=1)
        rest = orders.receive("balog")
        assert [(message.id, message.attempts) for message in rest] == [(ids[1], 1), (ids[2], 1)]

    def test_a_stop_before_the_run_ends_it(self, home: LocalTopics, publish: Publish) -> None:
        publish({})
        engine = Engine(hub_of(Scripted()), home)
        engine.stop()
        assert engine.run() == EngineStats()
        assert engine.run(until_empty=True).succeeded == 1

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_the_first_signal_stops_gently(self, home: LocalTopics, publish: Publish, number: signal.Signals) -> None:
        publish({}, {})
        before = signal.getsignal(number)

        def signal_and_wait(settings: dict[str, Any], event: Event) -> None:
            os.kill(os.getpid(), number)
            wait_for(lambda: engine.state.draining)

        engine = Engine(hub_of(signal_and_wait), home)
        assert engine.run() == EngineStats(received=1, succeeded=1)
        assert signal.getsignal(number) is before


class TestTopicTrouble:
    @pytest.fixture(autouse=True)
    def short_pauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("poller", "settler"):
            monkeypatch.setattr(f"balog.consumers.running.{module}.PAUSES", Backoff(0.02))

    @pytest.mark.parametrize("call", ["receive", "ack"])
    def test_what_may_pass_is_waited_out_and_nothing_is_handled_twice(
        self,
        home: LocalTopics,
        orders: Topic,
        publish: Publish,
        call: str,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("random.random", lambda: 1.0)
        ids = publish({}, {})
        fail_once(orders, call)
        recorder = Scripted()
        engine = Engine(hub_of(recorder), home, lease=0.3)
        with running(engine):
            wait_for(lambda: len(recorder.ids) == 2 and orders.group_state("balog").pending == 0)
        assert recorder.ids == ids
        assert f"{call} is out of order; trying again in 0.02 s" in caplog.text

    @pytest.mark.parametrize("call", ["release", "dead_letter_each"])
    def test_a_failed_event_is_settled_once_the_topic_is_back(
        self, home: LocalTopics, orders: Topic, publish: Publish, call: str
    ) -> None:
        (id,) = publish({})
        fail_once(orders, call)
        recorder = Scripted(NO_LUCK, NO_LUCK)
        engine = Engine(hub_of(recorder), home, first_delay=0.01, max_attempts=2)
        with running(engine):
            wait_for(lambda: len(orders.dead_letters("balog")) == 1)
        assert recorder.ids == [id, id]
        assert engine.counts == EngineStats(received=2, failed=2, dead=1)

    def test_leases_that_can_not_be_extended_once_are_the_next_time(
        self, home: LocalTopics, orders: Topic, publish: Publish, caplog: pytest.LogCaptureFixture
    ) -> None:
        publish({})
        fail_once(orders, "extend")
        counts = run(home, lambda settings, event: time.sleep(0.8), lease=0.6)
        assert counts == EngineStats(received=1, succeeded=1)
        assert "leases could not be extended: extend is out of order" in caplog.text

    def test_what_can_not_pass_ends_the_run(self, home: LocalTopics, orders: Topic, publish: Publish) -> None:
        publish({})

        def damaged(*args: Any, **options: Any) -> int:
            error = TopicError("damaged")
            error.retryable = False
            raise error

        orders.ack = damaged  # type: ignore[method-assign]
        with pytest.raises(TopicError, match="damaged"):
            Engine(hub_of(Scripted()), home).run()

    def test_an_ack_that_comes_too_late_is_told_and_harms_nobody(
        self, home: LocalTopics, orders: LocalTopic, publish: Publish, caplog: pytest.LogCaptureFixture
    ) -> None:
        ids = publish({}, {})

        def lose_one(settings: dict[str, Any], event: Event) -> None:
            if event.header.id == ids[0]:
                (lease,) = [message for message in received if message.id == ids[0]]
                orders.release("balog", [lease], delay=3600)

        class Watch(Hook):
            def after_receive(self, topic: str, messages: Any) -> None:
                received.extend(messages)

        received: list[Received] = []
        engine = Engine(hub_of(lose_one), home, hooks=[Watch()])
        with caplog.at_level(logging.INFO, "balog.consumers"):
            with running(engine):
                wait_for(lambda: engine.counts.succeeded == 2)
        assert "1 of 2 acks in orders came too late: those messages are delivered again" in caplog.text

    @pytest.mark.parametrize("call", ["receive", "ack"])
    def test_until_empty_gives_the_error_up(
        self, home: LocalTopics, orders: Topic, publish: Publish, call: str
    ) -> None:
        publish({})
        fail_once(orders, call)
        with pytest.raises(TopicError, match=f"{call} is out of order"):
            run(home, Scripted())


class TestContextVariables:
    """What a handler binds in a context variable is gone with its call."""

    TENANT: ContextVar[int | None] = ContextVar("tenant", default=None)

    def _seen_before(self, bench: Any, **options: Any) -> list[int | None]:
        seen: list[int | None] = []
        engine_options = {"concurrency": options.pop("threads", 1)}

        def bind(event: Any) -> None:
            seen.append(self.TENANT.get())
            self.TENANT.set(1)

        async def bind_async(event: Event) -> None:
            bind(event)
            await asyncio.sleep(0)
            assert self.TENANT.get() == 1

        handler = {"plain": bind, "async": bind_async}[options.pop("form")]
        bench.publish(*({"n": n} for n in range(30)))
        counts = bench.run(Consumer(handler, "orders", **options), **engine_options)
        assert counts.succeeded == 30
        return seen

    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize("form", ["plain", "async"])
    @pytest.mark.parametrize("options", [{}, {"concurrency": 1}, {"batch": 4}, {"ordered_by": "payload.n % 2"}])
    def test_a_handler_sees_none_of_an_earlier_event(
        self, bench: Any, form: str, options: dict[str, Any], threads: int
    ) -> None:
        assert set(self._seen_before(bench, form=form, threads=threads, **options)) == {None}

    @pytest.mark.parametrize("batch", [None, 4])
    def test_nor_does_a_consumer_of_messages(self, bench: Any, batch: int | None) -> None:
        seen = []

        def bind(settings: object, received: object) -> None:
            seen.append(self.TENANT.get())
            self.TENANT.set(1)

        bench.publish(*({"n": n} for n in range(10)))
        bench.run(MessageConsumer(bind, "orders", batch=batch))
        assert set(seen) == {None}

    def test_nor_does_match_event_see_that_of_an_earlier_event(self, bench: Any) -> None:
        seen = []

        class Own(Consumer):
            def match_event(self, event: Any) -> bool:
                seen.append(TestContextVariables.TENANT.get())
                TestContextVariables.TENANT.set(1)
                return True

        bench.publish(*({"n": n} for n in range(10)))
        bench.run(Own(lambda event: None, "orders"))
        assert seen == [None] * 10

    def test_hooks_of_a_call_share_its_context(self, bench: Any) -> None:
        seen = []

        class Binds(Hook):
            def before_process(self, work: Any) -> None:
                seen.append(TestContextVariables.TENANT.get())
                work.token = TestContextVariables.TENANT.set(2)

            def after_process(self, work: Any, error: BaseException | None, seconds: float) -> None:
                TestContextVariables.TENANT.reset(work.token)

        bench.publish(*({"n": n} for n in range(10)))
        bench.run(lambda event: seen.append(self.TENANT.get()), hooks=[Binds()])
        assert seen == [None, 2] * 10
