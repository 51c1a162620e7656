import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from balog.delivery import Dispatcher
from balog.event import Event, encode
from balog.log.outputs import open_output, queued
from balog.log.outputs.queued import QueuedOutput, flush_all
from balog.sinks import Batching, Delivery, Retrying, SinkError
from balog.topics import open_topics
from tests.forks import in_child
from tests.stand_ins.http_server import Answer, HttpStandIn
from tests.waiting import run_threads

EVENTS = [encode(Event.new("tap.done", {"n": n})) for n in range(20)]


class Memory:
    """A sink, its config and a switch: it takes nothing before ``opens`` is set."""

    name = "memory"
    where = None
    batch = Batching()
    retry = Retrying()

    def __init__(self, *, is_open: bool = True, fails: bool = False) -> None:
        self.opens = threading.Event()
        self.fails = fails
        self.taken: list[int] = []
        if is_open:
            self.opens.set()

    def build(self) -> "Memory":
        return self

    def open(self) -> None:
        pass

    def write(self, batch: Sequence[Delivery]) -> None:
        self.opens.wait(30)
        if self.fails:
            raise SinkError("refused", retryable=False)
        self.taken += [event.payload["n"] for event, _ in batch]

    def close(self) -> None:
        pass


def write_all(output: QueuedOutput, events: Sequence[bytes] = EVENTS) -> None:
    for event in events:
        output.write("INFO", event)


def published(path: Path, topic: str = "events") -> list[dict[str, Any]]:
    """Give the payloads that lie in a topic, in order."""
    home = open_topics(f"local:{path}")
    try:
        messages = []
        while batch := home.topic(topic).receive("test", 1000):
            messages += batch
            home.topic(topic).ack("test", batch)
        return [json.loads(message.body)["payload"] for message in messages]
    finally:
        home.close()


def run(code: str, path: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    begin = f"""
import os, sys, threading, time
from balog import configure, flush, get_logger
configure("local:{path}", level="DEBUG")
log = get_logger("a")
"""
    return subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, timeout=60, **options)


def test_events_come_in_order_and_flush_waits_for_them() -> None:
    sink = Memory()
    output = QueuedOutput(sink)
    write_all(output)

    assert output.flush(20) == 0
    assert sink.taken == list(range(20))
    write_all(output)
    assert output.close(20) == 0
    assert sink.taken == [*range(20), *range(20)]


def test_a_sink_that_hangs_never_holds_the_caller(capsys: pytest.CaptureFixture[str]) -> None:
    sink = Memory(is_open=False)
    output = QueuedOutput(sink)
    write_all(output)
    flusher = threading.Thread(target=output.flush, args=(30,))
    flusher.start()
    write_all(output)  # would not come back before the flush if it had to wait
    assert flusher.is_alive()
    sink.opens.set()
    flusher.join(30)

    assert output.flush(20) == 0
    assert sorted(sink.taken) == sorted([*range(20)] * 2)
    assert capsys.readouterr().err == ""


def test_what_is_not_delivered_in_time_is_counted_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    sink = Memory(is_open=False)
    output = QueuedOutput(sink)
    write_all(output)
    lost = output.flush(0.1)
    sink.opens.set()

    assert lost == 20
    slow, count = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"balog: memory: no answer for \d\.\d s", slow)
    assert count == "balog: memory: 20 events were not delivered"


def test_a_full_queue_drops_and_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("balog.delivery.event_queue.MAX_QUEUE_BYTES", 5 * len(EVENTS[0]))
    sink = Memory(is_open=False)
    output = QueuedOutput(sink)
    write_all(output)
    sink.opens.set()
    lost = output.flush(20)

    assert 0 < lost < 20
    assert len(sink.taken) == 20 - lost
    assert sink.taken == sorted(sink.taken)
    assert "memory: its queue is full, dropping events" in capsys.readouterr().err


def test_what_a_sink_refuses_is_counted_over_all_flushes(capsys: pytest.CaptureFixture[str]) -> None:
    output = QueuedOutput(Memory(fails=True))
    write_all(output)
    assert output.flush(20) == 20
    write_all(output)
    assert output.flush(20) == 40
    assert capsys.readouterr().err.count("memory: 20 events were not delivered") == 2


def test_a_flush_at_any_moment_loses_nothing() -> None:
    sink = Memory()
    output = QueuedOutput(sink)
    stop = threading.Event()

    def flush_always() -> None:
        while not stop.is_set():
            output.flush(10)

    flusher = threading.Thread(target=flush_always)
    flusher.start()
    run_threads(*[lambda: write_all(output, EVENTS * 10)] * 3)
    stop.set()
    flusher.join()

    assert output.flush(20) == 0
    assert sorted(sink.taken) == sorted([*range(20)] * 30)


def test_a_relative_path_is_where_it_was_when_the_output_was_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    outputs = [
        open_output("local:topics?topic=a"),
        open_output({"type": "topic", "url": "local:other?retention=30d", "topic": "a"}),
        open_output("store:archive?topic=a"),
        open_output("http://127.0.0.1:1?spool=waiting&sync=0"),
    ]
    monkeypatch.chdir(elsewhere)

    for output in outputs:
        output.write("INFO", encode(Event.new("a", {"n": 1})))
        output.close(1.0)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "elsewhere", "other", "topics", "waiting"]
    assert list(elsewhere.iterdir()) == []
    with open_topics("local:../topics") as home:
        assert len(home.topic("a").receive("group", limit=10, lease=30)) == 1


def test_what_is_written_after_close_is_delivered_by_flush_all() -> None:
    sink = Memory()
    output = QueuedOutput(sink)
    output.close(1)
    write_all(output)
    flush_all(20)

    assert sink.taken == list(range(20))
    assert output not in queued._running


def test_at_the_end_when_no_thread_can_begin_the_event_is_delivered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Dispatcher:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("balog.delivery.Dispatcher", refuse)
    sink = Memory()
    output = QueuedOutput(sink)
    with pytest.raises(RuntimeError):
        write_all(output)
    monkeypatch.setattr(threading.main_thread(), "is_alive", lambda: False)
    write_all(output)

    assert sink.taken == list(range(20))


class TestTheEnd:
    def test_what_is_queued_is_delivered_when_the_program_ends(self, tmp_path: Path) -> None:
        done = run("for n in range(5000): log.info('x', payload={'n': n})", tmp_path)

        assert (done.returncode, done.stderr) == (0, "")
        assert [payload["n"] for payload in published(tmp_path)] == list(range(5000))

    @pytest.mark.parametrize("way", ["raise ValueError", "sys.exit(3)"])
    def test_also_when_it_fails(self, tmp_path: Path, way: str) -> None:
        done = run(f"log.info('x', payload={{'n': 1}}); {way}", tmp_path)

        assert done.returncode
        assert published(tmp_path) == [{"n": 1}]

    @pytest.mark.parametrize("what", ["time.sleep(60)", "threading.Event().wait(60)", "while True: log.debug('y')"])
    def test_sigterm_delivers_what_is_queued_and_ends_the_program_by_it(self, tmp_path: Path, what: str) -> None:
        code = f"""
for n in range(2000): log.info('x', payload={{'n': n}})
threading.Timer(0.05, os.kill, (os.getpid(), {int(signal.SIGTERM)})).start()
{what}
"""
        done = run(code, tmp_path)

        assert done.returncode == -signal.SIGTERM
        assert [payload["n"] for payload in published(tmp_path) if "n" in payload] == list(range(2000))

    def test_a_handler_that_the_application_set_before_is_left_alone(self, tmp_path: Path) -> None:
        code = f"""
import signal
def stop(*_): print("mine"); sys.exit(4)
signal.signal(signal.SIGTERM, stop)
configure("local:{tmp_path}")
log.info('x', payload={{'n': 1}})
os.kill(os.getpid(), signal.SIGTERM)
"""
        done = run(code, tmp_path)

        assert (done.returncode, done.stdout) == (4, "mine\n")
        assert published(tmp_path) == [{"n": 1}]

    def test_configuring_again_delivers_what_was_queued_before(self, tmp_path: Path) -> None:
        code = f"""
for n in range(500): log.info('x', payload={{'n': n}})
configure("local:{tmp_path}/other")
log.info('x', payload={{'n': 500}})
os._exit(0 if flush(20) == 0 else 1)
"""
        assert run(code, tmp_path).returncode == 0
        assert [payload["n"] for payload in published(tmp_path)] == list(range(500))
        assert published(tmp_path / "other") == [{"n": 500}]


FORK = """
for n in range(3000): log.info('x', payload={'parent': n})
child = os.fork()
if child == 0:
    for n in range(200): log.info('x', payload={'child': n})
    END
os.waitpid(child, 0)
for n in range(3000, 3200): log.info('x', payload={'parent': n})
"""


def counted(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for payload in published(path):
        ((who, turn),) = payload.items()
        found.setdefault(who, []).append(turn)
    return found


class TestForks:
    @pytest.mark.parametrize("end", ["sys.exit(0)", "flush(); os._exit(0)"])
    def test_what_was_queued_at_a_fork_is_neither_lost_nor_repeated(self, tmp_path: Path, end: str) -> None:
        done = run(FORK.replace("END", end), tmp_path)

        assert (done.returncode, done.stderr) == (0, "")
        assert counted(tmp_path) == {"parent": list(range(3200)), "child": list(range(200))}

    def test_a_fork_in_the_middle_of_threads_that_log(self, tmp_path: Path) -> None:
        code = """
def work(who):
    for n in range(600): log.info('x', payload={who: n})
threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(3)]
for thread in threads: thread.start()
for number in range(5):
    child = os.fork()
    if child == 0:
        work(f"child {number}")
        os._exit(flush(20))
    assert os.waitpid(child, 0)[1] == 0
for thread in threads: thread.join()
"""
        done = run(code, tmp_path)

        assert (done.returncode, done.stderr) == (0, "")
        expected = {f"thread {n}" for n in range(3)} | {f"child {n}" for n in range(5)}
        assert counted(tmp_path) == {who: list(range(600)) for who in expected}

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_children_of_multiprocessing_deliver_what_they_queued(self, tmp_path: Path, method: str) -> None:
        program = tmp_path / "program.py"
        program.write_text(f"""
import multiprocessing
from balog import configure, get_logger
configure("local:{tmp_path}/topics")
log = get_logger("a")
def work(who):
    for n in range(300): log.info('x', payload={{who: n}})
if __name__ == "__main__":
    work("parent")
    context = multiprocessing.get_context({method!r})
    children = [context.Process(target=work, args=(f"child {{n}}",)) for n in range(3)]
    for child in children: child.start()
    for child in children: child.join()
    with context.Pool(2) as pool:
        pool.map(work, ["pool 0", "pool 1"])
        pool.close()
        pool.join()
""")
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)

        assert (done.returncode, done.stderr) == (0, "")
        expected = {"parent", *(f"child {n}" for n in range(3)), *(f"pool {n}" for n in range(2))}
        assert counted(tmp_path / "topics") == {who: list(range(300)) for who in expected}

    def test_workers_of_a_pool_that_is_terminated_deliver_what_they_queued(self, tmp_path: Path) -> None:
        program = tmp_path / "program.py"
        program.write_text(f"""
import multiprocessing
from balog import configure, get_logger
configure("local:{tmp_path}/topics")
log = get_logger("a")
def work(who):
    for n in range(50): log.info('x', payload={{who: n}})
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, ["a", "b", "c", "d"])
""")
        subprocess.run([sys.executable, str(program)], check=True, timeout=120)

        assert counted(tmp_path / "topics") == {who: list(range(50)) for who in "abcd"}


def test_a_sink_s_own_thread_may_log_through_the_output_it_serves() -> None:
    seen: list[Callable[[], None]] = []

    class Talking(Memory):
        def write(self, batch: Sequence[Delivery]) -> None:
            super().write(batch)
            if len(seen) < 3:
                seen.append(lambda: None)
                output.write("INFO", EVENTS[0])
                time.sleep(0.01)

    sink = Talking()
    output = QueuedOutput(sink)
    output.write("INFO", EVENTS[1])
    while len(sink.taken) < 4:
        time.sleep(0.01)

    assert output.flush(20) == 0
    assert sink.taken == [1, 0, 0, 0]


def test_the_parent_s_connection_is_left_alone_in_a_child() -> None:
    output = QueuedOutput(Memory())
    write_all(output)
    dispatcher = output._dispatcher

    def check() -> None:
        assert (queued._inherited, output._dispatcher) == ([dispatcher], None)

    assert in_child(check) == 0
    assert output.flush(20) == 0


@pytest.mark.parametrize("sync", [0, 0.3])
def test_with_a_spool_a_logged_event_survives_kill_9(tmp_path: Path, sync: float) -> None:
    """Given a service that hangs, then the event is on disk when the call returns (0), or soon."""
    code = f"""
import sys, time, balog
balog.configure(output="http://127.0.0.1:" + sys.argv[1] + "?spool={tmp_path}/spool&sync={sync}")
balog.get_logger("a.b").info("hello from the past")
print("logged", flush=True)
time.sleep(60)
"""
    with HttpStandIn(lambda request: Answer(trouble="hang")) as server:
        command = [sys.executable, "-c", code, str(server.port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"logged\n"

            def spooled() -> bytes:
                return b"".join(path.read_bytes() for path in (tmp_path / "spool").rglob("*.jsonl"))

            until = time.monotonic() + (0 if sync == 0 else 60)
            while b"hello" not in spooled() and time.monotonic() < until:
                time.sleep(0.01)
            process.kill()
        assert b"hello from the past" in spooled()
