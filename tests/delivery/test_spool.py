import errno
import fcntl
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.delivery import Dispatcher, event_queue, segment, spooler, worker
from balog.delivery.dead_letters import SinkDeadLetters
from balog.delivery.segment import LinesFile, Segment
from balog.delivery.spool import SinkSpool, SpoolConfig
from balog.event import Event, decode, encode
from balog.sinks import Batching, Delivery, SinkError
from balog.sinks.statsd import StatsdSinkConfig
from tests.stand_ins.probe_sink import QUICK, ProbeConfig, balanced, close, deliveries, probe, send, started
from tests.waiting import wait_for


@pytest.fixture
def said():
    return []


@pytest.fixture
def spool(tmp_path):
    return SpoolConfig(path=str(tmp_path / "spool"))


@pytest.fixture
def dead(spool):
    """A sink that fails, with a config whose retries are quick."""
    sink, config = probe(retry=QUICK, batch=Batching(age=0.01))
    sink.fails = SinkError("down")
    return sink, config


def segments(spool):
    return sorted(Path(spool.path).glob("*/*.jsonl"))


def events_in(spool):
    """Give the numbers of the events that wait in a spool, by the segments' own account."""
    numbers = []
    for path in segments(spool):
        while (part := Segment.adopt(path)) is None:  # a closed dispatcher's thread ends its last attempt
            if not path.exists():  # by which the file was removed
                return events_in(spool)
            time.sleep(0.01)
        numbers += [decode(line).payload["n"] for line in part.read(10**9, 10**9)[0]]
        part.release()
    return numbers


def events_on_disk(spool):
    """Give the numbers of the events in a spool's files as a kill would leave them, delivered or not."""
    found = []
    for path in segments(spool):
        with suppress(FileNotFoundError):
            found += [json.loads(line)["payload"]["n"] for line in path.read_bytes().splitlines()[1:]]
    return found


def letters(spool):
    paths = sorted(Path(spool.path).glob("*/dead/*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]


def assert_config_is_there(spool):
    (path,) = Path(spool.path).glob("*/sink.json")
    found = json.loads(path.read_bytes())
    assert (found["name"], found["folder"], found["sink"]["type"]) == ("probe it", os.getcwd(), "probe")


class TestSegments:
    def test_the_first_line_says_where_the_events_begin(self, tmp_path):
        part = Segment.create(tmp_path)
        assert json.loads(part.path.read_bytes()) == {"balog_spool": 1, "position": f"{part.position:016d}"}
        assert part.position == part.size == len(part.path.read_bytes())
        part.release()

    def test_what_was_read_goes_on_waiting_until_it_is_settled(self, tmp_path):
        part = Segment.create(tmp_path)
        part.append([b"a", b"bb", b"ccc"])
        lines, end = part.read(2, 1000)
        assert (lines, part.waiting) == ([b"a", b"bb"], 3)
        assert part.read(2, 1000)[0] == lines
        part.advance(end, 2)
        part.release()
        again = Segment.adopt(part.path)
        assert (again.read(9, 1000)[0], again.waiting) == ([b"ccc"], 1)
        again.release()

    def test_a_segment_has_one_owner(self, tmp_path):
        part = Segment.create(tmp_path)
        assert Segment.adopt(part.path) is None
        part.release()
        other = Segment.adopt(part.path)
        assert other is not None
        other.remove()
        assert Segment.adopt(part.path) is None

    @pytest.mark.parametrize("cut", range(1, 12))
    def test_a_torn_line_is_cut_off(self, tmp_path, cut):
        part = Segment.create(tmp_path)
        part.append([b"first", b"second line"])
        part.release()
        os.truncate(part.path, part.size - cut)
        again = Segment.adopt(part.path)
        assert again.read(9, 1000)[0] == [b"first"]
        assert again.waiting == 1
        again.append([b"third"])
        assert again.read(9, 1000)[0] == [b"first", b"third"]
        again.release()

    @pytest.mark.parametrize(
        "head", [b"", b'{"balog', b"\0" * 51, b'{"balog_spool": 1, "position": "9999999999999999"}\n']
    )
    def test_a_damaged_first_line_loses_no_event(self, tmp_path, head):
        path = tmp_path / "x.jsonl"
        path.write_bytes(head + b"\nevent\n")
        part = Segment.adopt(path)
        lines, end = part.read(9, 1000)
        assert lines[-1] == b"event"
        assert part.waiting == len(lines)
        part.advance(end, len(lines))
        assert (part.position, part.waiting) == (part.size, 0)
        part.release()

    def test_an_empty_file_has_no_events(self, tmp_path):
        (tmp_path / "x.jsonl").touch()
        part = Segment.adopt(tmp_path / "x.jsonl")
        assert (part.waiting, part.read(9, 1000)[0]) == (0, [])
        part.release()

    def test_a_failed_write_leaves_nothing(self, tmp_path, monkeypatch):
        part = Segment.create(tmp_path)
        part.append([b"first"])
        real = os.pwrite
        calls = []

        def fail_late(descriptor, data, at):
            calls.append(at)
            if len(calls) > 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, bytes(data)[:7], at)

        monkeypatch.setattr(segment.os, "pwrite", fail_late)
        with pytest.raises(OSError):
            part.append([b"second", b"third"])
        monkeypatch.undo()
        assert part.path.read_bytes() == Segment.head + b"first\n"
        part.append([b"fourth"])
        assert part.read(9, 1000)[0] == [b"first", b"fourth"]
        part.release()

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), min_size=1), max_size=6),
        st.integers(1, 5),
        st.integers(1, 60),
        st.integers(1, 50),
    )
    def test_lines_come_back_as_they_were_however_they_are_read(self, tmp_path_factory, appends, count, size, chunk):
        old, segment._CHUNK = segment._CHUNK, chunk
        try:
            part = Segment.create(tmp_path_factory.mktemp("s"))
            got = []
            for lines in appends:
                part.append(lines)
            while part.waiting:
                lines, end = part.read(count, size)
                assert 1 <= len(lines) <= count
                part.advance(end, len(lines))
                got += lines
            assert got == [line for lines in appends for line in lines]
            assert part.position == part.size
            part.remove()
        finally:
            segment._CHUNK = old

    def test_who_makes_one_is_not_robbed_of_it(self, tmp_path, monkeypatch):
        """Given an adopter that comes between the making of a file and its lock, then another file is made."""
        real, robbed = fcntl.flock, []

        def flock(descriptor, how):
            if how == fcntl.LOCK_EX and not robbed:
                robbed.append(next(tmp_path.iterdir()))
                robbed[0].unlink()
            real(descriptor, how)

        monkeypatch.setattr(fcntl, "flock", flock)
        part = LinesFile.create(tmp_path)
        assert robbed
        assert part.path.exists()
        part.release()


class TestSpooling:
    def test_what_a_dead_sink_leaves_waits_on_disk_and_goes_in_order_later(self, said, spool, dead):
        sink, config = dead
        dispatcher = started(said, 1000, config, spool=spool)
        stats = close(dispatcher, 0.2)
        assert (stats.spooled, stats.lost, stats.waiting) == (1000, 0, 0)
        assert stats.warnings() == [f"1000 events wait in spool {spool.path}; balog replay {spool.path} sends them"]
        assert events_in(spool) == list(range(1000))
        assert dispatcher.durable == 1000

        sink.fails = None
        dispatcher = Dispatcher([config], said.append, spool=spool)
        wait_for(lambda: len(sink.taken) == 1000)
        send(dispatcher, 10, start=1000)
        stats = close(dispatcher)
        assert sink.taken == list(range(1010))
        assert (stats.adopted, stats.put, stats.delivered) == (1000, 10, 1010)
        assert segments(spool) == []

    def test_events_are_durable_while_the_sink_is_down_and_come_when_it_is_back(self, said, spool, dead):
        sink, config = dead
        dispatcher = started(said, 500, config, spool=spool)
        wait_for(lambda: dispatcher.durable == 500)
        assert dispatcher.stats()["probe it"].spooled == 500
        send(dispatcher, 500, start=500)
        sink.fails = None
        wait_for(lambda: len(sink.taken) == 1000)
        stats = close(dispatcher)
        assert sink.taken == list(range(1000))
        assert (stats.delivered, stats.spooled) == (1000, 0)
        assert segments(spool) == []

    def test_a_sink_that_hangs_makes_its_events_durable_too(self, said, spool):
        """Given a write that never returns, then what is in hand or queued goes to disk, and the end is in time."""
        sink, config = probe(batch=Batching(age=0))
        sink.gate.clear()
        dispatcher = started(said, 50, config, spool=spool)
        wait_for(lambda: sink.opened)
        send(dispatcher, 50, start=50)
        wait_for(lambda: dispatcher.durable == 100)
        stats = close(dispatcher, 0.2)
        assert (stats.spooled, stats.lost) == (100, 0)
        assert events_in(spool) == list(range(100))
        sink.gate.set()
        wait_for(lambda: sink.closed)
        assert events_in(spool) == list(range(100))

    def test_a_hand_that_was_spooled_and_then_taken_is_not_sent_again(self, said, spool):
        sink, config = probe(batch=Batching(age=0))
        sink.gate.clear()
        dispatcher = started(said, 100, config, spool=spool)
        wait_for(lambda: dispatcher.durable == 100)
        sink.gate.set()
        wait_for(lambda: len(sink.taken) == 100)
        close(dispatcher)
        assert sink.taken == list(range(100))
        assert segments(spool) == []

    def test_a_queue_that_is_full_goes_to_disk(self, said, spool, monkeypatch):
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 20_000)
        sink, config = probe(batch=Batching(age=0, events=10))
        sink.gate.clear()
        dispatcher = started(said, 3000, config, put_timeout=10, spool=spool)
        assert dispatcher.stats()["probe it"].dropped == 0
        sink.gate.set()
        assert close(dispatcher).delivered == 3000
        assert sink.taken == list(range(3000))

    def test_of_a_batch_that_was_taken_in_part_only_the_rest_waits(self, said, spool):
        def some(sink, numbers):
            sink.taken += numbers[:4]
            sink.fails = SinkError("down")
            return SinkError("429", rejected={4: "bad"}, remaining=range(5, len(numbers)))

        _, config = probe(SinkError("down"), some, retry=QUICK, batch=Batching(age=60))
        stats = close(started(said, 10, config, spool=spool), 0.3)
        assert (stats.delivered, stats.dead, stats.spooled, stats.lost) == (4, 1, 5, 0)
        assert events_in(spool) == [5, 6, 7, 8, 9]

    def test_two_sinks_have_a_folder_each(self, said, spool, dead):
        other, second = probe(place="b/../c d", retry=QUICK)
        other.fails = SinkError("down")
        started(said, 10, dead[1], second, spool=spool).close(0.1)
        folders = sorted(path.name for path in Path(spool.path).iterdir())
        assert [name.rpartition("-")[0] for name in folders] == ["probe-b-..-c-d", "probe-it"]

    def test_how_a_sink_is_fed_does_not_make_it_another(self, said, spool, dead):
        sink, config = dead
        started(said, 10, config, spool=spool).close(0.1)
        sink.fails = None
        fed_otherwise = ProbeConfig(where="payload.n < 0", batch=Batching(events=3))
        close(Dispatcher([fed_otherwise], said.append, spool=spool))
        assert sink.taken == list(range(10))

    def test_only_the_owner_can_read_it(self, said, spool, dead):
        old = os.umask(0)
        try:
            dead[0].fails = None
            dead[0].refuses = lambda n: SinkError("no", retryable=n != 3) if n >= 3 else None
            started(said, 10, dead[1], spool=spool).close(0.3)
        finally:
            os.umask(old)
        found = [Path(spool.path), *Path(spool.path).rglob("*")]
        modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in found}
        assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found} == set(modes.items())
        assert modes == {True: 0o700, False: 0o600}
        assert len([path for path in found if path.is_file()]) >= 3

    def test_the_sink_s_config_lies_also_beside_dead_letters_alone(self, said, spool):
        close(started(said, 1, probe(ZeroDivisionError())[1], spool=spool))
        assert_config_is_there(spool)

    def test_a_spool_that_nothing_waits_in_stays_empty(self, said, spool):
        close(started(said, 1000, probe()[1], spool=spool))
        assert list(Path(spool.path).iterdir()) == []

    def test_brokers_share_a_spool(self, said, spool, dead):
        """Given two at once and one that comes later, then what the first two left is delivered once."""
        sink, config = dead
        pair = [Dispatcher([config], said.append, spool=spool) for _ in range(2)]
        for turn, dispatcher in enumerate(pair):
            send(dispatcher, 300, start=turn * 300)
            wait_for(lambda dispatcher=dispatcher: dispatcher.durable == 300)
        third = Dispatcher([config], said.append, spool=spool)
        for dispatcher in pair:
            close(dispatcher, 0.05)
        sink.fails = None
        close(third)
        close(Dispatcher([config], said.append, spool=spool))
        assert sorted(sink.taken) == list(range(600))
        assert segments(spool) == []

    def test_new_events_do_not_wait_for_an_old_spool(self, said, spool, dead):
        """Given a long backlog, then it is delivered in turns with what comes now."""
        started(said, 1000, dead[1], spool=spool).close(0.1)
        fresh, fast = probe(batch=Batching(events=10, age=0))
        fresh.gate.clear()
        dispatcher = started(said, 100, fast, start=5000, spool=spool)
        fresh.gate.set()
        close(dispatcher)
        assert sorted(fresh.taken) == [*range(1000), *range(5000, 5100)]
        assert fresh.taken.index(5099) < 500


class TestTheWindow:
    """An event is on disk within ``sync`` seconds, unless the sink has taken it by then."""

    def test_events_that_a_slow_sink_has_not_taken_are_durable(self, said, tmp_path):
        """Given a sink that works, never fails, and is behind, then each event is on disk while it waits."""
        spool = SpoolConfig(path=str(tmp_path / "spool"), sync=0.2)
        sink, config = probe(batch=Batching(events=5, age=0))
        enough = threading.Event()
        real = sink.write
        sink.write = lambda batch: (enough.wait(0.05), real(batch))
        dispatcher = Dispatcher([config], said.append, spool=spool)
        send(dispatcher, 2000)  # 20 s at this pace
        wait_for(lambda: dispatcher.durable == 2000)
        assert len(sink.taken) < 2000
        assert set(sink.taken) | set(events_on_disk(spool)) == set(range(2000))
        assert dispatcher.stats()["probe it"].reason == ""
        enough.set()
        assert close(dispatcher, 60).delivered == 2000
        assert sink.taken == list(range(2000))
        assert segments(spool) == []

    def test_a_sink_that_keeps_up_costs_no_write(self, said, tmp_path, monkeypatch):
        made = []
        monkeypatch.setattr(LinesFile, "create", classmethod(lambda cls, *_: made.append(cls) or 1 / 0))
        spool = SpoolConfig(path=str(tmp_path / "spool"), sync=10)
        _, config = probe(batch=Batching(age=0.01))
        dispatcher = Dispatcher([config], said.append, spool=spool)
        for number in range(40):
            send(dispatcher, 10, start=10 * number)
            time.sleep(0.01)
        assert close(dispatcher).delivered == 400
        assert (made, list(Path(spool.path).iterdir())) == ([], [])

    def test_a_batch_that_waits_for_longer_than_the_window_stays_one_batch(self, said, tmp_path):
        spool = SpoolConfig(path=str(tmp_path / "spool"), sync=0.1)
        sink, config = probe(batch=Batching(age=3600, events=30))
        dispatcher = Dispatcher([config], said.append, spool=spool)
        for number in range(3):
            send(dispatcher, 9, start=9 * number)
            wait_for(lambda number=number: dispatcher.durable == 9 * number + 9)
            assert sorted(events_on_disk(spool)) == list(range(9 * number + 9))
        send(dispatcher, 5, start=27)
        wait_for(lambda: sink.taken)
        close(dispatcher)
        assert [len(batch) for batch in sink.batches] == [30, 2]
        assert sink.taken == list(range(32))

    def test_with_a_window_of_zero_an_event_is_on_disk_when_sync_returns(self, said, tmp_path):
        spool = SpoolConfig(path=str(tmp_path / "spool"), sync=0)
        sink, config = probe(batch=Batching(age=0, events=3))
        sink.gate.clear()
        other, second = probe(place="b")
        dispatcher = Dispatcher([config, second], said.append, spool=spool)
        for number in range(30):
            send(dispatcher, 1, start=number)
            dispatcher.sync()
            assert set(events_on_disk(spool)) >= set(range(number + 1))
            assert dispatcher.durable == number + 1
        sink.gate.set()
        dispatcher.close(10)
        assert sink.taken == other.taken == list(range(30))
        assert segments(spool) == []

    def test_with_another_window_sync_does_nothing(self, said, spool):
        _, config = probe(batch=Batching(age=3600))
        dispatcher = started(said, 10, config, spool=spool)
        dispatcher.sync()
        assert events_on_disk(spool) == []
        close(dispatcher)

    def test_a_full_disk_holds_nothing_up_and_loses_nothing_that_the_sink_takes(self, said, tmp_path, monkeypatch):
        def refuse(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(segment.os, "pwrite", refuse)
        spool = SpoolConfig(path=str(tmp_path / "spool"), sync=0)
        sink, config = probe(batch=Batching(age=0, events=3))
        sink.gate.clear()
        dispatcher = Dispatcher([config], said.append, spool=spool)
        for number in range(30):
            send(dispatcher, 1, start=number)
            dispatcher.sync()
        assert dispatcher.durable == 0
        wait_for(lambda: any("No space left on device; events wait in memory" in line for line in said))
        sink.gate.set()
        assert close(dispatcher).delivered == 30
        assert sink.taken == list(range(30))

    def test_a_signal_handler_that_logs_while_its_thread_writes_loses_nothing(self, said, tmp_path, monkeypatch):
        """Given a put and a sync in the middle of a sync, then the disk has all of it within the window."""
        spool = SpoolConfig(path=str(tmp_path / "spool"), sync=0)
        sink, config = probe(batch=Batching(age=3600))
        dispatcher = Dispatcher([config], said.append, spool=spool)
        real, came = os.fsync, []

        def fsync(descriptor):
            if not came and threading.current_thread() is threading.main_thread():
                came.append(True)
                send(dispatcher, 1, start=1)
                dispatcher.sync()
            real(descriptor)

        monkeypatch.setattr(segment.os, "fsync", fsync)
        send(dispatcher, 1)
        dispatcher.sync()
        assert came
        wait_for(lambda: dispatcher.durable == 2)
        assert sorted(events_on_disk(spool)) == [0, 1]
        close(dispatcher)
        assert sink.taken == [0, 1]


def test_what_a_sink_never_sends_is_not_spooled_for_it(said, spool):
    """Given a sink of metrics that is away, then logs are left out and metrics wait."""
    measure = Event.new("a", {"cls_type": "metric", "type": "counter", "metric": "rows", "value": 1, "n": 7})
    config = StatsdSinkConfig(host="no-such-host.invalid", retry=QUICK)
    dispatcher = started(said, 10, config, spool=spool)
    dispatcher.put(Delivery(measure, encode(measure)))
    stats = close(dispatcher, 0.1)
    assert (stats.filtered, stats.spooled, stats.delivered) == (10, 1, 0)
    assert events_in(spool) == [7]


class TestDeadLetters:
    def test_what_is_refused_lies_there_with_the_reason(self, said, spool):
        sink, config = probe(batch=Batching(age=60))
        sink.refuses = lambda n: SinkError(f"{n} is bad", retryable=False) if n in (3, 5) else None
        dispatcher = Dispatcher([config], said.append, spool=spool)
        sent = deliveries(10)
        for delivery in sent:
            dispatcher.put(delivery)
        stats = close(dispatcher)
        found = letters(spool)
        assert [(letter["sink"], letter["reason"]) for letter in found] == [
            ("probe it", "3 is bad"),
            ("probe it", "5 is bad"),
        ]
        assert [letter["event"] for letter in found] == [json.loads(sent[n].body) for n in (3, 5)]
        assert all(letter["time"].endswith("Z") for letter in found)
        assert (stats.delivered, stats.dead, stats.lost) == (8, 2, 0)
        (trouble,) = stats.warnings()
        assert trouble.startswith("2 events were refused for good, with the reason in ")
        assert Path(trouble.rpartition(" ")[2]).is_dir()
        assert dispatcher.durable == 10
        assert len(said) == 1
        assert said[0].startswith("probe it: 3 is bad; refused events are kept in ")

    @pytest.mark.parametrize("line", [b"", b"{}", b"\0\0\0", b'{"schema": "0.1.0", "head', b"\xff\xfe", b"[" * 5000])
    def test_a_corrupt_line_holds_up_nothing(self, said, spool, dead, line):
        sink, config = dead
        started(said, 10, config, spool=spool).close(0.1)
        (path,) = segments(spool)
        lines = path.read_bytes().splitlines()
        path.write_bytes(b"\n".join([*lines[:4], line, *lines[4:]]) + b"\n")
        sink.fails = None
        stats = close(Dispatcher([config], said.append, spool=spool))
        assert sink.taken == list(range(10))
        assert (stats.adopted, stats.delivered, stats.dead, stats.lost) == (11, 10, 1, 0)
        (letter,) = letters(spool)
        assert letter["raw"] == line.decode("utf-8", "backslashreplace")
        assert letter["reason"].startswith("no event: ")

    def test_a_segment_of_corrupt_lines_only(self, said, spool, dead):
        started(said, 1, dead[1], spool=spool).close(0.1)
        (path,) = segments(spool)
        path.write_bytes(Segment.head + b"x\n" * 50)
        stats = close(Dispatcher([dead[1]], said.append, spool=spool), 5)
        assert (stats.adopted, stats.dead, stats.spooled) == (50, 50, 0)


class TestRoom:
    def small(self, tmp_path):
        return SpoolConfig(path=str(tmp_path / "spool"), max_bytes=1 << 16)

    def used(self, spool):
        return sum(path.stat().st_size for path in Path(spool.path).rglob("*") if path.is_file())

    @pytest.fixture(autouse=True)
    def small_queue(self, monkeypatch):
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 20_000)
        monkeypatch.setattr(spooler, "_RETRY_SECONDS", 0.01)

    def test_a_full_spool_keeps_the_oldest(self, said, tmp_path, dead):
        spool = self.small(tmp_path)
        dispatcher = started(said, 2000, dead[1], spool=spool, put_timeout=30)
        stats = close(dispatcher, 0.1)
        assert stats.dropped + stats.spooled == 2000
        assert events_in(spool) == list(range(stats.spooled))
        assert 32_000 < self.used(spool) <= spool.max_bytes
        assert dispatcher.durable == stats.spooled
        assert len([line for line in said if "is full; events wait in memory" in line]) == 1
        assert stats.warnings()[-1] == f"{stats.dropped} events were not delivered"

    def test_a_spool_smaller_than_a_batch_is_filled(self, said, tmp_path, dead, monkeypatch):
        """Given a burst that is one batch by the sink's config and four times the spool, then the spool gets full."""
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 1 << 24)
        spool = self.small(tmp_path)
        sink, config = dead
        sink.gate.clear()
        dispatcher = started(said, 900, config, spool=spool, put_timeout=30)
        sink.gate.set()
        stats = close(dispatcher, 0.1)
        assert stats.dropped + stats.spooled == 900
        kept = events_in(spool)
        assert len(kept) == stats.spooled
        assert kept == list(range(len(kept)))
        assert 32_000 < self.used(spool) <= spool.max_bytes

    def test_dead_letters_that_find_no_room_are_counted(self, said, tmp_path):
        spool = self.small(tmp_path)
        sink, config = probe(batch=Batching(age=0))
        sink.refuses = lambda n: SinkError("never", retryable=False)
        dispatcher = Dispatcher([config], said.append, spool=spool)
        for turn in range(20):
            send(dispatcher, 50, start=turn * 50)
            wait_for(lambda turn=turn: dispatcher.stats()["probe it"].dead == turn * 50 + 50)
        stats = close(dispatcher)
        assert (stats.dead, stats.dropped) == (1000, 0)
        assert len(letters(spool)) == stats.dead - stats.lost
        assert 0 < stats.lost < 1000
        assert self.used(spool) <= spool.max_bytes
        assert dispatcher.durable < 1000


class TestDisk:
    def test_a_full_disk_is_said_once_and_holds_up_nothing(self, said, spool, dead, monkeypatch):
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 20_000)
        monkeypatch.setattr(spooler, "_RETRY_SECONDS", 0.0)

        def refuse(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(segment.os, "pwrite", refuse)
        dispatcher = started(said, 500, dead[1], spool=spool)
        time.sleep(0.6)
        send(dispatcher, 500)
        stats = close(dispatcher, 0.1)
        assert (stats.dropped, stats.spooled) == (1000, 0)
        assert dispatcher.durable == 0
        said_of_disk = [line for line in said if "No space left" in line]
        assert said_of_disk == [f"probe it: spool {spool.path}: No space left on device; events wait in memory"]
        assert segments(spool) == []

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
    def test_a_disk_that_is_really_full(self, said, tmp_path, dead, monkeypatch):
        monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", 100_000)
        monkeypatch.setattr(spooler, "_RETRY_SECONDS", 0.0)
        disk = tmp_path / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]).returncode:
            pytest.skip("nothing can be mounted here")
        try:
            spool = SpoolConfig(path=str(disk / "spool"))
            stats = close(started(said, 5000, dead[1], spool=spool, put_timeout=5), 0.1)
            assert stats.spooled + stats.dropped == 5000
            assert stats.spooled > 100
            assert events_in(spool) == list(range(stats.spooled))
            assert sum("No space left on device" in line for line in said) == 1
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    @pytest.mark.parametrize("what", ["file", "locked"])
    def test_a_folder_that_cannot_be_is_refused(self, said, tmp_path, what, monkeypatch):
        path = tmp_path / "spool"
        if what == "file":
            path.write_text("")
        else:
            monkeypatch.setattr("balog.delivery.spool.os.access", lambda *_: False)
        with pytest.raises(ConfigError) as caught:
            Dispatcher([], said.append, spool=SpoolConfig(path=str(path)))
        assert caught.value.path == "$.spool.path"
        assert str(path) in str(caught.value)

    def test_a_segment_that_cannot_be_read_is_left_alone(self, said, spool, dead, monkeypatch):
        sink, config = dead
        started(said, 10, config, spool=spool).close(0.1)
        sink.fails = None

        def fail(self, count, size):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(Segment, "read", fail)
        stats = close(Dispatcher([config], said.append, spool=spool), 5)
        assert stats.delivered == 0
        assert any("can't be read and is left alone: Input/output error" in line for line in said)
        assert len(segments(spool)) == 1


KILLED = """
import os, sys
from balog.delivery import Dispatcher
from balog.sinks import Batching, Retrying, SinkError
from balog.delivery.spool import SpoolConfig
from tests.stand_ins.probe_sink import probe, send
sink, config = probe(retry=Retrying(first=0.01, longest=0.02), batch=Batching(age=0.001, events=20))
real = sink.write
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def write(batch):
    real(batch)
    say("taken", *(delivery.event.payload["n"] for delivery in batch))
sink.write = write
sink.outcomes = [None, SinkError("down")] * 100_000
dispatcher = Dispatcher([config], lambda line: None, spool=SpoolConfig(path=sys.argv[1]))
start = int(sys.argv[2])
for n in range(start, start + 100_000):
    send(dispatcher, 1, start=n)
    if n % 50 == 0:
        say("durable", start + dispatcher.durable)
"""


class TestKill:
    def test_what_was_durable_survives_kill_9_and_comes_again_by_a_batch_at_most(self, said, spool):
        """Given brokers killed while they spool, then each durable event was taken or is in the spool."""
        chance = random.Random(7)
        taken: list[int] = []
        promised: set[int] = set()
        for turn in range(6):
            start = turn * 1_000_000
            with subprocess.Popen(
                [sys.executable, "-c", KILLED, spool.path, str(start)],
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[2],
            ) as process:
                lines = chance.randrange(50, 400)
                durable = start
                for _ in range(lines):
                    what, *numbers = process.stdout.readline().split()
                    if what == "durable":
                        durable = max(durable, int(numbers[0]))
                    else:
                        taken += map(int, numbers)
                process.send_signal(signal.SIGKILL)
                rest = process.stdout.read()
            for line in rest.splitlines(keepends=True):
                what, *numbers = line.split()
                if line.endswith("\n") and what == "taken":
                    taken += map(int, numbers)
            promised |= set(range(start, durable))
        sink, config = probe(batch=Batching(events=1000))
        stats = close(Dispatcher([config], said.append, spool=spool))
        assert promised
        assert promised <= set(taken) | set(sink.taken)
        assert stats.spooled == 0
        again = len(taken) + len(sink.taken) - len({*taken, *sink.taken})
        assert again <= 6 * 20
        assert segments(spool) == []


@pytest.mark.parametrize("during", ["settle", "spill"])
def test_an_end_that_does_not_wait_for_a_slow_disk_counts_each_event_once(said, spool, monkeypatch, during):
    """Given a file operation that lasts while the broker ends, then no event is both dropped and something else."""
    monkeypatch.setattr(worker, "NO_PROGRESS_SECONDS", 0.05)
    monkeypatch.setattr(worker, "DISK_SECONDS", 0.05)
    monkeypatch.setattr(worker, "GRACE", 0.05)
    sink, config = probe(retry=QUICK, batch=Batching(age=0.01, events=50))
    begun, go_on = threading.Event(), threading.Event()
    owner, name = (SinkDeadLetters, "add") if during == "settle" else (SinkSpool, "append")
    real = getattr(owner, name)

    def slow(*arguments):
        result = real(*arguments)
        begun.set()
        go_on.wait(30)
        return result

    monkeypatch.setattr(owner, name, slow)
    if during == "settle":
        sink.refuses = lambda n: SinkError("no", retryable=False) if n == 3 else None
    else:
        sink.fails = SinkError("down")
    dispatcher = started(said, 120, config, spool=spool)
    assert begun.wait(30)
    ((_, stats),) = dispatcher.close(0.1).items()
    go_on.set()
    assert balanced(stats)
    wait_for(lambda: sink.closed)
    assert balanced(dispatcher.stats()["probe it"])


@pytest.mark.parametrize("seed", range(25))
def test_every_event_is_accounted_for_whatever_happens(said, tmp_path, monkeypatch, seed):
    """Given runs of brokers with a sink that fails, refuses, hangs and takes in part, a small spool and a disk that is
    full at times, then put + adopted = filtered + delivered + spooled + dead + dropped, and the files say the same.
    """
    chance = random.Random(seed)
    monkeypatch.setattr(event_queue, "MAX_QUEUE_BYTES", chance.choice([20_000, 1 << 20]))
    monkeypatch.setattr(spooler, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(worker, "NO_PROGRESS_SECONDS", 0.1)
    monkeypatch.setattr(worker, "DISK_SECONDS", 0.1)
    spool = SpoolConfig(path=str(tmp_path / "spool"), max_bytes=chance.choice([1 << 16, 1 << 30]))
    taken: list[int] = []
    real = os.pwrite

    def pwrite(*arguments):
        if broken_disk and chance.random() < 0.2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(segment.os, "pwrite", pwrite)
    broken_disk = seed % 3 == 0

    def write(batch):
        numbers = [delivery.event.payload["n"] for delivery in batch]
        act = chance.random()
        if act < 0.3:
            raise SinkError("down")
        if act < 0.35:
            raise SinkError("bad", retryable=False)
        if act < 0.36:
            time.sleep(0.15)
        if act < 0.6:
            fates = [chance.choice("tttru") for _ in numbers]
            taken.extend(n for n, fate in zip(numbers, fates) if fate == "t")
            rejected = {index: "bad" for index, fate in enumerate(fates) if fate == "r"}
            raise SinkError(
                "partly", rejected=rejected, remaining=[index for index, fate in enumerate(fates) if fate == "u"]
            )
        taken.extend(numbers)

    delivered = dead = kept = waiting = 0
    for turn in range(4):
        sink, config = probe(retry=QUICK, batch=Batching(events=chance.choice([1, 10, 100]), age=0.001))
        sink.write = write
        dispatcher = started(said, 400, config, start=turn * 400, put_timeout=chance.choice([0, 1]), spool=spool)
        stats = close(dispatcher, chance.choice([0.0, 0.1, 0.5]))
        assert (stats.put, stats.waiting) == (400, 0)
        delivered += stats.delivered
        dead += stats.dead
        kept += stats.dead - (stats.lost - stats.dropped)
        waiting += stats.spooled - stats.adopted
    assert delivered == len(taken)
    assert kept == len(letters(spool))
    assert dead >= kept
    found = events_in(spool)
    if broken_disk or spool.max_bytes == 1 << 16:  # no room to write anew what is left of a batch
        assert waiting <= len(found) <= waiting + 4 * 100
        assert len(taken) - len(set(taken)) <= 4 * 100
    else:
        assert len(found) == waiting
        assert sorted(taken + found) == sorted({*taken, *found})
