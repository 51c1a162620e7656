import random
import threading
import time

import pytest

from balog.common.errors import ConfigError
from balog.delivery import Dispatcher, event_queue, worker
from balog.event import decode
from balog.sinks import Batching, Retrying, SinkError, base
from balog.sinks.store import StoreSinkConfig
from tests.stand_ins.probe_sink import QUICK, balanced, close, deliveries, probe, send, started
from tests.waiting import wait_for


@pytest.fixture
def said():
    return []


class TestDelivering:
    def test_every_sink_gets_every_event_in_order(self, said):
        sinks, configs = zip(*(probe(place=place) for place in "ab"))
        dispatcher = Dispatcher(configs, said.append)
        send(dispatcher, 5000)
        stats = dispatcher.close(10)
        for sink in sinks:
            assert sink.taken == list(range(5000))
            assert (sink.opened, sink.closed) == (1, 1)
        assert said == []
        assert {name: found.delivered for name, found in stats.items()} == {"probe a": 5000, "probe b": 5000}
        assert all(found.warnings() == [] for found in stats.values())

    def test_no_sinks_is_fine(self, said):
        dispatcher = started(said, 3)
        assert (dispatcher.position, dispatcher.durable) == (3, 3)
        assert dispatcher.close(1) == {}

    def test_a_sink_gets_only_what_its_where_takes(self, said):
        errors, config = probe(where="payload.n >= 7 OR level = 'ERROR'")
        everything, other = probe(place="all")
        dispatcher = started(said, 10, config, other)
        stats = dispatcher.close(10)
        assert (errors.taken, everything.taken) == ([7, 8, 9], list(range(10)))
        assert (stats["probe it"].filtered, stats["probe it"].delivered) == (7, 3)

    def test_a_where_that_is_no_expression_is_named_by_its_place(self, said):
        with pytest.raises(ConfigError) as caught:
            Dispatcher([probe()[1], probe(place="b", where="level >")[1]], said.append)
        assert caught.value.path == "$.sinks[1].where"

    def test_a_sink_that_cannot_be_built_is_named_by_its_place(self, said):
        with pytest.raises(ConfigError) as caught:
            Dispatcher([probe()[1], StoreSinkConfig(path="x", topic="../up")], said.append)
        assert caught.value.path == "$.sinks[1].topic"


class TestBatching:
    def test_a_batch_ends_at_its_events(self, said):
        sink, config = probe(batch=Batching(events=7, age=60))
        close(started(said, 30, config))
        assert [len(batch) for batch in sink.batches] == [7, 7, 7, 7, 2]

    def test_a_batch_ends_at_its_bytes(self, said):
        sink, config = probe(batch=Batching(bytes=2048, age=60))
        dispatcher = Dispatcher([config], said.append)
        send(dispatcher, 20, text="x" * 500)
        close(dispatcher)
        assert sink.taken == list(range(20))
        assert {len(batch) for batch in sink.batches} <= {1, 2, 3}

    def test_a_full_batch_does_not_wait_for_its_age(self, said):
        sink, config = probe(batch=Batching(events=5, age=3600))
        dispatcher = started(said, 4, config)
        time.sleep(0.05)
        assert sink.taken == []
        send(dispatcher, 1, start=4)
        wait_for(lambda: sink.taken == [0, 1, 2, 3, 4])
        close(dispatcher)

    def test_bytes_alone_fill_a_batch(self, said):
        sink, config = probe(batch=Batching(bytes=1024, age=3600))
        dispatcher = Dispatcher([config], said.append)
        send(dispatcher, 1, text="x" * 1024)
        wait_for(lambda: sink.taken == [0])
        close(dispatcher)

    def test_a_batch_that_is_not_full_goes_at_its_age(self, said):
        sink, config = probe(batch=Batching(events=1000, age=0.05))
        dispatcher = started(said, 3, config)
        wait_for(lambda: sink.taken == [0, 1, 2])
        close(dispatcher)

    def test_an_event_larger_than_a_batch_goes_alone(self, said):
        sink, config = probe(batch=Batching(bytes=1024, age=60))
        dispatcher = started(said, 1, config)
        send(dispatcher, 1, start=1, text="x" * 5000)
        send(dispatcher, 1, start=2)
        close(dispatcher)
        assert sink.batches == [[0], [1], [2]]


class TestRetrying:
    def test_a_transient_failure_is_retried_and_said_once(self, said):
        sink, config = probe(SinkError("busy"), SinkError("busy"), retry=QUICK)
        dispatcher = started(said, 10, config)
        wait_for(lambda: sink.taken == list(range(10)))
        stats = close(dispatcher)
        assert (stats.delivered, stats.retries, stats.reason, stats.is_failing) == (10, 2, "busy", False)
        assert sink.opened == 1
        assert said == ["probe it: busy; trying again", "probe it: takes events again"]

    def test_a_sink_that_fails_now_and_then_does_not_fill_the_screen(self, said):
        sink, config = probe(retry=QUICK, batch=Batching(events=1))
        sink.outcomes = [SinkError("busy"), None] * 20
        close(started(said, 20, config))
        assert sink.taken == list(range(20))
        assert said == ["probe it: busy; trying again", "probe it: takes events again"]

    def test_what_the_other_side_asks_for_is_kept_to(self, said, monkeypatch):
        pauses = []
        monkeypatch.setattr(
            worker.SinkWorker, "_pause", lambda self, seconds, asked: pauses.append((seconds, asked)) or True
        )
        _, config = probe(*[SinkError("busy", retry_after=7.5)] * 2, *[SinkError("down")] * 8, retry=Retrying())
        close(started(said, 1, config))
        assert [asked for _, asked in pauses] == [7.5, 7.5, *[None] * 8]
        longest = [min(0.1 * 2**n, 30.0) for n in range(10)]
        assert all(0 <= seconds <= most for most, (seconds, _) in zip(longest, pauses))

    def test_retry_after_is_waited_out(self, said):
        began = time.monotonic()
        sink, config = probe(SinkError("busy", retry_after=0.4), retry=Retrying(first=0.001))
        dispatcher = started(said, 1, config)
        wait_for(lambda: sink.taken)
        assert time.monotonic() - began >= 0.4
        close(dispatcher)

    def test_a_retry_after_beyond_the_deadline_is_not_waited_for(self, said):
        sink, config = probe(batch=Batching(age=0), retry=QUICK)
        sink.fails = SinkError("busy", retry_after=3600)
        dispatcher = started(said, 1, config)
        wait_for(lambda: said)
        began = time.monotonic()
        assert close(dispatcher, 60).dropped == 1
        assert time.monotonic() - began < 30

    def test_only_what_was_not_taken_comes_again(self, said):
        def half(sink, numbers):
            sink.taken += numbers[::2]
            return SinkError("busy", remaining=range(1, len(numbers), 2))

        sink, config = probe(half, half, retry=QUICK, batch=Batching(age=60))
        stats = close(started(said, 8, config))
        assert sorted(sink.taken) == list(range(8))
        assert (stats.delivered, stats.retries) == (8, 2)

    def test_a_part_that_is_taken_begins_the_delays_anew(self, said, monkeypatch):
        """Given a sink that fails eight times, when it takes a part, then the next delay is a first one."""

        def part(sink, numbers):
            sink.taken += numbers[:1]
            return SinkError("busy", remaining=range(1, len(numbers)))

        pauses = []
        monkeypatch.setattr(worker.SinkWorker, "_pause", lambda self, seconds, asked: pauses.append(seconds) or True)
        sink, config = probe(*[SinkError("down")] * 8, part, retry=Retrying(), batch=Batching(age=60))
        close(started(said, 2, config))
        assert sink.taken == [0, 1]
        assert len(pauses) == 9
        assert pauses[-1] <= 0.1

    def test_a_sink_that_takes_a_part_and_refuses_the_rest_works_again(self, said):
        def part(sink, numbers):
            sink.taken += numbers[1:]
            return SinkError("1 was refused", retryable=False, rejected={0: "no field"}, remaining=[])

        sink, config = probe(SinkError("down"), part, retry=QUICK, batch=Batching(age=60))
        stats = close(started(said, 3, config))
        assert (sink.taken, stats.delivered, stats.dead, stats.is_failing) == ([1, 2], 2, 1, False)
        assert said == [
            "probe it: down; trying again",
            "probe it: takes events again",
            "probe it: no field; not delivered",
        ]


class TestOpening:
    def test_a_sink_is_open_before_there_is_an_event(self, said):
        sink, config = probe()
        dispatcher = Dispatcher([config], said.append)
        wait_for(lambda: sink.opened)
        close(dispatcher)
        assert (sink.opened, sink.closed, sink.batches) == (1, 1, [])

    def test_one_that_does_not_open_is_tried_again_without_an_event_and_said_once(self, said, monkeypatch):
        sink, config = probe(retry=QUICK)
        tries = []

        def open_late():
            tries.append(1)
            if len(tries) < 5:
                raise SinkError("the port is taken")

        monkeypatch.setattr(sink, "open", open_late)
        dispatcher = Dispatcher([config], said.append)
        wait_for(lambda: len(tries) == 5 and not dispatcher.stats()["probe it"].is_failing)
        send(dispatcher, 3)
        assert close(dispatcher).delivered == 3
        assert len(tries) == 5
        assert said == ["probe it: the port is taken; trying again", "probe it: takes events again"]

    def test_a_mistake_at_opening_costs_no_event_before_its_batch(self, said, monkeypatch):
        sink, config = probe(retry=QUICK)
        faults = [ZeroDivisionError("oops")]
        opened = []

        def open_badly():
            opened.append(1)
            if faults:
                raise faults.pop()

        monkeypatch.setattr(sink, "open", open_badly)
        dispatcher = Dispatcher([config], said.append)
        wait_for(lambda: opened and dispatcher.stats()["probe it"].is_failing)
        send(dispatcher, 3)
        close(dispatcher)
        assert sink.taken == [0, 1, 2]

    def test_one_that_hangs_holds_up_neither_others_nor_an_end_that_has_nothing_for_it(self, said, monkeypatch):
        hung, config = probe(where="payload.n > 100")
        released = threading.Event()
        monkeypatch.setattr(hung, "open", released.wait)
        other, beside = probe(place="b")
        dispatcher = started(said, 5, config, beside)
        stats = dispatcher.close(600)  # were it waited for, this test would not end
        released.set()
        assert other.taken == [0, 1, 2, 3, 4]
        assert (stats["probe it"].filtered, said) == (5, [])

    def test_what_came_while_it_hangs_is_counted_as_lost(self, said, monkeypatch):
        hung, config = probe()
        released = threading.Event()
        monkeypatch.setattr(hung, "open", released.wait)
        assert close(started(said, 5, config), 0.1).dropped == 5
        released.set()


class TestRefusing:
    @pytest.mark.parametrize(
        ("error", "says"),
        [
            (SinkError("never", retryable=False), "never"),
            (ZeroDivisionError("two\nlines"), "ZeroDivisionError: two lines"),
        ],
    )
    def test_one_bad_event_does_not_take_the_others_along(self, said, error, says):
        sink, config = probe(batch=Batching(age=60))
        sink.refuses = lambda n: error if n == 333 else None
        stats = close(started(said, 1000, config))
        assert sink.taken == [n for n in range(1000) if n != 333]
        assert (stats.delivered, stats.dead, stats.lost, stats.is_failing) == (999, 1, 1, False)
        assert said == [f"probe it: {says}; not delivered"]
        assert stats.warnings() == ["1 event was not delivered"]

    def test_narrowing_down_is_bounded_by_two_writes_an_event(self, said):
        sink, config = probe(batch=Batching(age=60))
        writes = []
        sink.refuses = lambda n: writes.append(n) or SinkError("never", retryable=False)
        stats = close(started(said, 1000, config))
        assert (stats.delivered, stats.dead) == (0, 1000)
        assert len(writes) < 2 * 1000
        assert stats.is_failing

    def test_events_that_the_sink_names_are_lost_alone(self, said):
        def refuse(sink, numbers):
            sink.taken += numbers[2:]
            return SinkError("2 were refused", retryable=False, rejected={0: "no field", 1: "bad date"}, remaining=[])

        sink, config = probe(refuse, batch=Batching(age=60))
        stats = close(started(said, 10, config))
        assert sink.taken == list(range(2, 10))
        assert (stats.delivered, stats.dead, stats.retries) == (8, 2, 0)
        assert said == ["probe it: no field; not delivered"]


class TestFailing:
    def test_a_dead_sink_holds_up_nobody(self, said):
        """Given a sink that fails for ever, then the others get everything, close returns, and the loss is counted."""
        dead, config = probe(batch=Batching(events=10))
        dead.fails = SinkError("refused")
        alive, other = probe(place="b")
        dispatcher = started(said, 100, config, other)
        stats = dispatcher.close(0.3)
        assert stats["probe it"].warnings() == ["100 events were not delivered"]
        assert stats["probe b"].warnings() == []
        assert alive.taken == list(range(100))
        assert dead.closed == 1
        assert said == ["probe it: refused; trying again"]

    def test_a_hanging_sink_that_comes_back_after_the_end_changes_nothing(self, said):
        sink, config = probe()
        sink.gate.clear()
        dispatcher = started(said, 10, config)
        before = dispatcher.close(0.1)
        assert before["probe it"].dropped == 10
        sink.gate.set()
        wait_for(lambda: sink.closed)
        assert dispatcher.stats() == before

    def test_a_full_queue_drops_and_counts(self, said, monkeypatch):
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 5000)
        sink, config = probe()
        sink.gate.clear()
        dispatcher = started(said, 200, config)
        sink.gate.set()
        stats = close(dispatcher)
        assert 0 < stats.dropped < 200
        assert stats.delivered == len(sink.taken)
        assert sum("queue is full" in line for line in said) == 1

    def test_a_batch_under_way_still_counts_as_queued(self, said, monkeypatch):
        """Given a sink that hangs with a batch in hand, then memory holds no more than one queue of events."""
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 20_000)
        sink, config = probe(batch=Batching(age=0))
        sink.gate.clear()
        dispatcher = Dispatcher([config], said.append)
        first = deliveries(1000)
        room = 20_000 // (len(first[0].body) + event_queue.ENTRY_BYTES)
        for delivery in first[:room]:
            dispatcher.put(delivery)
        wait_for(lambda: sink.opened)
        for delivery in first[room:]:
            dispatcher.put(delivery)
        sink.gate.set()
        assert close(dispatcher).dropped >= 1000 - room - 10

    def test_a_sink_that_works_is_waited_for(self, said, monkeypatch):
        """Given more events than fit the queue and patience, then a sink that goes on taking them gets them all."""
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 20_000)
        sink, config = probe(batch=Batching(events=50))
        assert close(started(said, 5000, config, put_timeout=30)).lost == 0
        assert sink.taken == list(range(5000))
        assert said == []

    @pytest.mark.parametrize("how", ["fails", "hangs"])
    def test_a_sink_that_fails_or_hangs_is_not_waited_for_long(self, said, monkeypatch, how):
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 20_000)
        monkeypatch.setattr(worker, "NO_PROGRESS_SECONDS", 0.1)
        sink, config = probe()
        if how == "fails":
            sink.fails = SinkError("refused")
        else:
            sink.gate.clear()
        assert close(started(said, 5000, config, put_timeout=10_000), 0.1).dropped == 5000
        sink.gate.set()

    def test_a_new_deadline_is_a_last_chance(self, said):
        """Given a sink that waits for its next try, then closing tries at once."""
        sink, config = probe(SinkError("busy"), retry=Retrying(first=3600, longest=3600), batch=Batching(age=0))
        dispatcher = started(said, 3, config)
        wait_for(lambda: said)
        close(dispatcher)
        assert sorted(sink.taken) == [0, 1, 2]

    def test_the_last_try_is_at_the_deadline(self, said):
        """Given delays that would pass the deadline, then a sink that comes back before it still gets the events."""
        until = None

        def away(_sink, _numbers):
            return SinkError("away") if until is None or time.monotonic() < until else None

        sink, config = probe(*[away] * 100, retry=Retrying(first=3600, longest=3600), batch=Batching(age=0))
        dispatcher = started(said, 3, config)
        wait_for(lambda: said)
        until = time.monotonic() + 0.2
        assert close(dispatcher, 0.5).lost == 0
        assert sink.taken == [0, 1, 2]


class TestDurable:
    def test_what_every_sink_took_is_durable(self, said):
        fast, one = probe(batch=Batching(age=0))
        slow, two = probe(place="slow", batch=Batching(age=0))
        slow.gate.clear()
        moved = threading.Event()
        dispatcher = Dispatcher([one, two], said.append, on_progress=moved.set)
        assert (dispatcher.position, dispatcher.durable) == (0, 0)
        send(dispatcher, 10)
        wait_for(lambda: len(fast.taken) == 10)
        assert (dispatcher.position, dispatcher.durable) == (10, 0)
        slow.gate.set()
        wait_for(lambda: dispatcher.durable == 10)
        assert moved.is_set()
        dispatcher.close(10)
        assert dispatcher.durable == 10

    def test_what_is_left_out_is_durable(self, said):
        _, config = probe(where="payload.n < 0")
        dispatcher = started(said, 10, config)
        assert dispatcher.durable == 10
        close(dispatcher)

    @pytest.mark.parametrize("error", [SinkError("no"), SinkError("no", retryable=False)])
    def test_what_is_lost_never_is(self, said, error):
        sink, config = probe(batch=Batching(events=5, age=60))
        sink.refuses = lambda n: error if n == 7 else None
        dispatcher = started(said, 10, config)
        dispatcher.close(0.2)
        assert dispatcher.durable == (7 if not error.retryable else 5)

    def test_what_did_not_fit_the_queue_never_is(self, said, monkeypatch):
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 5000)
        sink, config = probe(batch=Batching(age=0))
        sink.gate.clear()
        dispatcher = started(said, 100, config)
        room = dispatcher.position - dispatcher.stats()["probe it"].dropped
        sink.gate.set()
        wait_for(lambda: dispatcher.durable == room)
        send(dispatcher, 5)
        close(dispatcher)
        assert dispatcher.durable == room


@pytest.mark.parametrize("seed", range(20))
def test_every_event_is_accounted_for_whatever_a_sink_does(said, monkeypatch, seed):
    """Given sinks that fail, refuse, take in part and are slow at random, then put = delivered + dead + dropped."""
    chance = random.Random(seed)
    monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", chance.choice([20_000, 1 << 20]))
    taken = [[], []]

    def behave(which):
        def write(batch):
            numbers = [delivery.event.payload["n"] for delivery in batch]
            act = chance.random()
            if act < 0.2:
                raise SinkError("down")
            if act < 0.3:
                raise SinkError("bad", retryable=False)
            if act < 0.5:
                fates = [chance.choice("tru") for _ in numbers]
                taken[which] += [n for n, fate in zip(numbers, fates) if fate == "t"]
                rejected = {index: "bad" for index, fate in enumerate(fates) if fate == "r"}
                remaining = [index for index, fate in enumerate(fates) if fate == "u"]
                raise SinkError("partly", retryable=chance.random() < 0.7, rejected=rejected, remaining=remaining)
            if act < 0.52:
                raise ZeroDivisionError
            taken[which].extend(numbers)

        return write

    configs = []
    for which in range(2):
        sink, config = probe(
            place=str(which), retry=QUICK, batch=Batching(events=chance.choice([1, 10, 100]), age=0.001)
        )
        sink.write = behave(which)
        configs.append(config)
    dispatcher = Dispatcher(configs, said.append, put_timeout=chance.choice([0, 1]))
    send(dispatcher, 500)
    stats = dispatcher.close(chance.choice([0.0, 0.2, 10]))
    for which in range(2):
        found = stats[f"probe {which}"]
        assert (found.put, found.waiting, found.spooled) == (500, 0, 0)
        assert balanced(found)
        assert sorted(taken[which]) == sorted(set(taken[which]))
        assert found.delivered == len(taken[which])


@pytest.mark.parametrize("asks", [False, True])
def test_an_event_in_memory_is_decoded_once_and_only_if_its_sink_asks_for_it(said, monkeypatch, asks):
    decoded, seen = [], []
    monkeypatch.setattr(base, "decode_own", lambda body: decoded.append(body) or decode(body))
    sink, config = probe()
    sink.write = lambda batch: seen.extend((each.event, each.event) if asks else each.body for each in batch)
    dispatcher = Dispatcher([config], said.append)
    sent = deliveries(10)
    for delivery in sent:
        dispatcher.put(delivery)
    close(dispatcher)
    assert decoded == ([each.body for each in sent] if asks else [])
    assert seen == [(each.event, each.event) if asks else each.body for each in sent]
