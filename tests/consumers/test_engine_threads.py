"""Threads, the event loop, timeouts, leases and stops of an engine."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

import pytest

from balog.common.errors import BalogError
from balog.consumers import Consumer, EngineStats, Hook, Work
from balog.consumers.ledgers.ledger import LedgerEntry
from balog.event import Event
from tests.consumers.runs import Blocking, Scripted

Settings = dict[str, Any]


class Gauge:
    """How many are inside at once, and the most that ever were."""

    def __init__(self) -> None:
        self.now = self.most = self.entered = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.entered += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


class TestConcurrency:
    def test_as_many_calls_run_at_once_as_asked_for(self, bench: Any) -> None:
        bench.publish(*({} for _ in range(8)))
        barrier = threading.Barrier(4, timeout=30)
        counts = bench.run(lambda settings, event: barrier.wait(), concurrency=4)
        assert counts.succeeded == 8

    def test_a_consumers_own_limit_does_not_block_workers_for_others(self, bench: Any) -> None:
        bench.publish(*({} for _ in range(12)))
        narrow, wide = Gauge(), Gauge()
        release = threading.Event()

        def slow(settings: Settings, event: Event) -> None:
            with narrow:
                assert release.wait(30)

        def quick(settings: Settings, event: Event) -> None:
            with wide:
                if wide.entered == 12:
                    release.set()

        consumers = [Consumer(slow, "orders", name="a", concurrency=1), Consumer(quick, "orders", name="b")]
        assert bench.run(*consumers, concurrency=2).succeeded == 12
        assert (narrow.most, narrow.entered) == (1, 12)

    def test_with_one_worker_events_come_one_after_the_other(self, bench: Any) -> None:
        ids = bench.publish(*({} for _ in range(200)))
        seen: list[str] = []
        gauge = Gauge()

        def handle(settings: Settings, event: Event) -> None:
            with gauge:
                seen.append(event.header.id)

        bench.run(handle, batch=7, pollers=3)
        assert (seen, gauge.most) == (ids, 1)


class TestAsync:
    def test_many_wait_at_once_in_one_thread(self, bench: Any) -> None:
        bench.publish(*({} for _ in range(40)))
        gauge = Gauge()
        threads = set()

        async def handle(settings: Settings, event: Event) -> None:
            threads.add(threading.current_thread().name)
            with gauge:
                await asyncio.sleep(0.01)

        assert bench.run(handle, concurrency=2).succeeded == 40
        assert 2 < gauge.most <= 16
        assert threads == {"balog-async"}

    @pytest.mark.parametrize(("limit", "most"), [(None, 8), (3, 3)])
    def test_eight_wait_at_once_for_one_thread_or_as_many_as_the_consumer_says(
        self, bench: Any, limit: int | None, most: int
    ) -> None:
        bench.publish(*({} for _ in range(40)))
        gauge = Gauge()
        all_here = asyncio.Event()

        async def handle(settings: Settings, event: Event) -> None:
            with gauge:
                if gauge.most == most:
                    all_here.set()
                await all_here.wait()

        assert bench.run(Consumer(handle, "orders", concurrency=limit)).succeeded == 40
        assert gauge.most == most

    def test_a_limit_of_one_keeps_the_order(self, bench: Any) -> None:
        ids = bench.publish(*({} for _ in range(20)))
        seen = []

        async def handle(settings: Settings, event: Event) -> None:
            await asyncio.sleep(0.001 * (len(seen) % 2))
            seen.append(event.header.id)

        bench.run(Consumer(handle, "orders", concurrency=1))
        assert seen == ids

    @pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
    def test_a_plain_handler_that_returns_an_awaitable_has_failed(self, bench: Any) -> None:
        bench.publish({})

        async def later() -> None: ...

        assert bench.run(lambda settings, event: later(), max_attempts=1).dead == 1
        assert bench.dead[0].reason.endswith("which nothing awaits; declare it async def")

    def test_batches_of_an_async_handler(self, bench: Any) -> None:
        bench.publish(*({} for _ in range(10)))
        sizes: list[int] = []

        async def handle(settings: Settings, events: list[Event]) -> None:
            await asyncio.sleep(0)
            sizes.append(len(events))

        assert bench.run(Consumer(handle, "orders", batch=(5, 1))).succeeded == 10
        assert sizes == [5, 5]


class TestTimeout:
    @pytest.mark.parametrize("returns", [False, True])
    def test_an_async_handler_is_cancelled_and_has_failed_also_if_it_then_returns(
        self, bench: Any, returns: bool
    ) -> None:
        bench.publish({})
        ended: list[str] = []

        async def handle(settings: Settings, event: Event) -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                ended.append("cancelled")
                if not returns:
                    raise

        counts = bench.run(Consumer(handle, "orders", name="h", timeout=0.02), max_attempts=2)
        assert counts == EngineStats(received=2, failed=2, dead=1)
        assert ended == ["cancelled"] * 2
        assert bench.dead[0].reason == "h: TimeoutError: no end after 0.02 s"

    def test_one_that_was_cancelled_before_does_not_put_the_next_one_s_end_off(
        self, bench: Any, wait_for: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Given that a cancelled call may take its time to end, then the next attempt's time is still its own."""
        monkeypatch.setattr("balog.consumers.running.engine_run.GRACE", 3600.0)
        bench.publish({})

        async def handle(settings: Settings, event: Event) -> None:
            await asyncio.sleep(3600)

        with bench.running(Consumer(handle, "orders", name="h", timeout=0.02), max_attempts=2, drain=0):
            wait_for(lambda: bench.dead)

    def test_a_thread_that_hangs_is_replaced_and_its_late_return_changes_nothing(
        self, bench: Any, wait_for: Any
    ) -> None:
        hanging, *others = bench.publish({"hang": True}, {}, {})
        release = threading.Event()
        seen: list[str] = []

        def handle(settings: Settings, event: Event) -> None:
            seen.append(event.header.id)
            if event.payload.get("hang") and seen.count(hanging) == 1:
                release.wait(30)

        consumer = Consumer(handle, "orders", name="h", timeout=0.05)
        with bench.running(consumer) as engine:
            wait_for(lambda: engine.counts.succeeded == 3)
            assert (engine.state.hung, engine.counts.failed) == (1, 1)
            assert seen == [hanging, *others, hanging]
            release.set()
            wait_for(lambda: engine.state.hung == 0)
            wait_for(lambda: sum("balog-worker" in thread.name for thread in threading.enumerate()) == 1)
            assert engine.counts == EngineStats(received=4, succeeded=3, failed=1)

    def test_more_than_may_hang_end_the_run(self, bench: Any) -> None:
        bench.publish(*({} for _ in range(10)))
        release = threading.Event()
        consumer = Consumer(lambda settings, event: release.wait(30), "orders", name="h", timeout=0.02)
        with pytest.raises(BalogError, match=r"^\d+ handlers hang beyond their timeout, more than the 2 that may"):
            bench.run(consumer, concurrency=2)
        release.set()

    def test_one_who_is_in_time_is_left_alone(self, bench: Any) -> None:
        bench.publish(*({} for _ in range(50)))
        consumer = Consumer(lambda settings, event: time.sleep(0.002), "orders", name="h", timeout=30)
        assert bench.run(consumer, concurrency=4) == EngineStats(received=50, succeeded=50)


class TestLeases:
    def test_all_that_is_held_stays_ours_however_long_it_takes(self, bench: Any) -> None:
        bench.publish(*({"k": "a"} for _ in range(5)))
        stolen: list[Any] = []

        def slow(settings: Settings, event: Event) -> None:
            time.sleep(0.15)
            stolen.extend(bench.orders.receive("balog"))

        counts = bench.run(Consumer(slow, "orders", name="h", ordered_by="payload.k"), lease=0.2, prefetch=10)
        assert (counts, stolen) == (EngineStats(received=5, succeeded=5), [])


class TestFork:
    PROGRAM = """
import os, sys
from balog.consumers import Consumer, ConsumerHub, Engine
from balog.event import Event, encode
from balog.topics import Message, open_topics

def handle(settings, event):
    if os.fork() == 0:
        os.write(1, b"child\\n")
        {child}
        return
    os.write(1, b"parent\\n")
    os.wait()

hub = ConsumerHub()
hub.add(Consumer(handle, "orders", name="h"))
with open_topics("local:topics") as home:
    events = [Event.new("tests", {{}}) for _ in range(3)]
    home.topic("orders").publish([Message(event.header.id, encode(event)) for event in events])
    print(Engine(hub, home).run(until_empty=True), flush=True)
"""

    @pytest.mark.parametrize("child", ["pass", "raise ValueError"])
    def test_a_child_that_comes_back_from_the_handler_neither_acks_nor_goes_on(self, tmp_path: Any, child: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", self.PROGRAM.format(child=child)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        lines = Counter(done.stdout.splitlines())
        assert lines["child"] == lines["parent"] == 3
        assert done.stdout.splitlines()[-1].startswith("EngineStats(received=3, succeeded=3, failed=0")
        assert len(lines) == 3


class TestStopping:
    def test_what_was_only_received_is_given_back_at_once_and_uncounted(self, bench: Any, wait_for: Any) -> None:
        bench.publish(*({} for _ in range(50)))
        handle = Blocking()
        with bench.running(handle, prefetch=20, lease=600) as engine:
            assert handle.begun.wait(30)
            wait_for(lambda: engine.state.in_flight > 1)
            engine.stop()
            wait_for(lambda: engine.state.in_flight == 1)  # while the handler still runs
            others = bench.orders.receive("balog", 100)
            assert [message.attempts for message in others] == [1] * 49
            assert engine.state.draining
            handle.released.set()
        assert engine.counts == EngineStats(received=1, succeeded=1)
        assert bench.orders.group_state("balog").in_flight == 49

    def test_handlers_that_take_too_long_are_left_behind(self, bench: Any) -> None:
        bench.publish({})
        handle = Blocking()
        with bench.running(handle, drain=0.05, lease=600) as engine:
            assert handle.begun.wait(30)
        assert [message.attempts for message in bench.orders.receive("balog")] == [2]
        handle.released.set()
        assert engine.counts.succeeded == 0

    def test_an_async_handler_has_the_drain_to_end(self, bench: Any, wait_for: Any) -> None:
        bench.publish({})
        begun = threading.Event()

        async def handle(settings: Settings, event: Event) -> None:
            begun.set()
            await asyncio.sleep(0.2)

        with bench.running(handle) as engine:
            assert begun.wait(30)
        assert engine.counts == EngineStats(received=1, succeeded=1)

    def test_who_succeeded_before_the_stop_is_known_after_it(self, bench: Any) -> None:
        bench.publish({})
        first, second = Scripted(), Scripted()

        class Stop(Hook):
            def after_process(self, *arguments: Any) -> None:
                engine.stop()

        engine = bench.engine(first, second, hooks=[Stop()])
        engine.run()
        assert (len(first.calls), len(second.calls)) == (1, 0)
        bench.run(first, second)
        assert (len(first.calls), len(second.calls)) == (1, 1)

    def test_an_interrupt_of_the_main_thread_ends_the_run_and_gives_events_back(
        self, bench: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.publish({}, {})
        engine = bench.engine(lambda settings, event: None)

        def interrupt(*_: Any) -> float:
            raise KeyboardInterrupt

        monkeypatch.setattr("balog.consumers.queueing.scheduling.Schedule.take", lambda schedule: None)
        monkeypatch.setattr("balog.consumers.queueing.scheduling.Schedule.run_timers", interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.run()
        assert [message.attempts for message in bench.orders.receive("balog")] == [1, 1]

    def test_no_thread_and_no_descriptor_is_left(self, bench: Any) -> None:
        async def handle(settings: Settings, event: Event) -> None:
            await asyncio.sleep(0)

        bench.publish({})
        bench.run(handle)
        threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            bench.publish({})
            bench.run(handle, concurrency=3)
        assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


class Recorder(Hook):
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def started(self, engine: Any) -> None:
        self.calls.append(("started", engine.state.running))

    def stopped(self, engine: Any) -> None:
        self.calls.append(("stopped",))

    def before_process(self, work: Work) -> None:
        work.__dict__["mark"] = len(self.calls)
        self.calls.append(("before", work.consumer.name, work.attempt))

    def after_process(self, work: Work, error: BaseException | None, seconds: float) -> None:
        assert work.__dict__["mark"] < len(self.calls)
        assert seconds >= 0
        self.calls.append(("after", work.consumer.name, type(error).__name__))

    def retried(self, work: Work, event: Event, error: BaseException, delay: float) -> None:
        self.calls.append(("retried", event.header.id, str(error), delay))

    def dead(self, topic: str, received: Any, event: Event | None, reason: str, consumers: Any) -> None:
        self.calls.append(("dead", topic, received.id, event is not None, reason, tuple(consumers)))

    def before_ack(self, topic: str, received: Any) -> None:
        self.calls.append(("acking", topic, len(received)))

    def after_ack(self, topic: str, received: Any) -> None:
        self.calls.append(("acked", topic, len(received)))


class TestHooks:
    def test_they_see_what_happens_in_its_order(self, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("random.random", lambda: 1.0)  # each delay is its upper limit
        (id,) = bench.publish({})
        recorder = Recorder()
        handle = Scripted(ValueError("once"))
        bench.run(handle, hooks=[recorder])
        assert recorder.calls == [
            ("started", True),
            ("before", "handler0", 1),
            ("after", "handler0", "ValueError"),
            ("retried", id, "once", 0.001),
            ("before", "handler0", 2),
            ("after", "handler0", "NoneType"),
            ("acking", "orders", 1),
            ("acked", "orders", 1),
            ("stopped",),
        ]

    def test_they_hear_of_dead_letters(self, bench: Any) -> None:
        (id,) = bench.publish({})
        recorder = Recorder()
        bench.run(Scripted(then=ValueError("always")), hooks=[recorder], max_attempts=1)
        assert ("dead", "orders", id, True, "handler0: ValueError: always", ("handler0",)) in recorder.calls

    def test_one_that_fails_is_told_once_and_harms_nobody(self, bench: Any, caplog: pytest.LogCaptureFixture) -> None:
        class Broken(Hook):
            def before_process(self, work: Work) -> None:
                raise RuntimeError("broken hook")

        bench.publish(*({} for _ in range(10)))
        assert bench.run(lambda settings, event: None, hooks=[Broken()]).succeeded == 10
        assert [record.getMessage() for record in caplog.records if "hook" in record.getMessage()] == [
            "hook TestHooks.test_one_that_fails_is_told_once_and_harms_nobody.<locals>.Broken.before_process failed, "
            "now and maybe again: RuntimeError: broken hook"
        ]


class TestPrefetch:
    """A worker receives what it can call now, and a few messages more where calls are short."""

    @pytest.mark.parametrize(("options", "in_flight"), [({}, 1), ({"concurrency": 3}, 3), ({"prefetch": 4}, 5)])
    def test_messages_beyond_running_calls_stay_in_the_topic(
        self, bench: Any, wait_for: Any, options: dict[str, int], in_flight: int
    ) -> None:
        bench.publish(*({} for _ in range(20)))
        release = threading.Event()
        with bench.running(lambda event: release.wait(30), **options) as engine:
            wait_for(lambda: engine.state.calls == options.get("concurrency", 1))
            wait_for(lambda: engine.state.in_flight == in_flight)
            time.sleep(0.05)
            assert engine.state.in_flight == in_flight
            release.set()

    def test_two_workers_share_slow_calls(self, bench: Any, wait_for: Any) -> None:
        bench.publish(*({} for _ in range(8)))
        handled: Counter[str] = Counter()

        def slow(name: str) -> Any:
            def handle(event: Event) -> None:
                time.sleep(0.6)
                handled[name] += 1

            return Consumer(handle, "orders", name="slow")

        with bench.running(slow("one")), bench.running(slow("other")):
            wait_for(lambda: handled.total() == 8)
        assert min(handled.values()) >= 3

    @pytest.mark.parametrize("is_wanted", [True, False])
    def test_short_calls_share_receives(self, bench: Any, is_wanted: bool) -> None:
        class Counts(Hook):
            receives = 0

            def after_receive(self, topic: str, received: Any) -> None:
                self.receives += 1

        bench.publish(*({"cls_type": "a"} for _ in range(1000)))
        counts = Counts()
        bench.run(Consumer(lambda event: None, "orders", cls_type="a" if is_wanted else "b"), hooks=[counts])
        assert counts.receives < 300


class TestLost:
    """A message that this process lost while it waited is not called, and nor is an event handled elsewhere."""

    def test_what_the_backend_took_away_is_given_back_uncalled(self, bench: Any, monkeypatch: Any) -> None:
        ids = bench.publish(*({"n": n} for n in range(4)))
        called: list[int] = []
        lost: set[str] = set()
        monkeypatch.setattr(type(bench.orders), "holds", lambda _, group, message: message.id not in lost)

        def handle(event: Event) -> None:
            called.append(event.payload["n"])
            lost.update(ids[1:3]) if len(called) == 1 else lost.clear()

        assert bench.run(handle, prefetch=10).succeeded == 4
        assert called == [0, 3, 1, 2]

    def test_what_others_got_when_the_lease_was_over(self, bench: Any, wait_for: Any, monkeypatch: Any) -> None:
        """Given a process that did not run for longer than its lease, a success is in the ledger at once."""
        ids = bench.publish(*({"n": n} for n in range(4)))
        called: list[int] = []
        stolen: list[Any] = []
        monkeypatch.setattr("balog.consumers.running.leases.LeaseKeeper._keep", lambda *_: None)

        def handle(event: Event) -> None:
            called.append(event.payload["n"])
            time.sleep(0.3)
            stolen.extend(bench.orders.receive("balog", 10, lease=600))

        with bench.running(Consumer(handle, "orders", name="h"), prefetch=3, lease=0.2) as engine:
            wait_for(lambda: called and not engine.state.in_flight)
        assert (called, [message.id for message in stolen]) == ([0], ids)
        assert bench.ledger.known("balog", ids) == {ids[0]: {"orders/h": ""}}

    @pytest.mark.parametrize("batch", [None, 3])
    def test_what_others_handled_meanwhile_is_a_duplicate(self, bench: Any, batch: int | None) -> None:
        ids = bench.publish(*({"n": n} for n in range(7)))
        for message in bench.orders.receive("balog", 7):
            bench.orders.release("balog", [message])  # as an earlier delivery
        called: list[int] = []

        def handle(given: Any) -> None:
            called.extend(one.payload["n"] for one in ([given] if batch is None else given))
            bench.ledger.record("balog", [LedgerEntry(id, "orders/h") for id in ids[4:]])

        counts = bench.run(Consumer(handle, "orders", name="h", batch=batch), prefetch=10)
        assert called == [0, 1, 2, 3]
        assert (counts.succeeded, counts.duplicates) == (4, 3)
