"""One stdout, many writers: threads, forks and asyncio, balog beside ``print`` and what Singer libraries do."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from typing import Any

import pytest

BEGIN = """
import asyncio, json, os, sys, threading, time
from balog import configure, get_logger
configure("singer")
log = get_logger("hammer")
def event(who, turn, size=0):
    log.info("said", payload={"who": f"{who}", "turn": turn, "text": "x" * size})
"""


def lines_of(code: str, *options: str, **environment: str) -> list[dict[str, Any]]:
    """Run a program whose stdout is a pipe, read slowly in odd pieces, and decode each of its lines."""
    process = subprocess.Popen(
        [sys.executable, *options, "-c", BEGIN + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        bufsize=0,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    pieces = iter(lambda: os.read(process.stdout.fileno(), 7919), b"")  # type: ignore[union-attr]
    data = b"".join(pieces)
    complaints = process.stderr.read().decode()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 0, complaints
    assert complaints == ""
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def turns(messages: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Give each writer's turns in the order in which they came, whichever way they were written."""
    found = defaultdict(list)
    for message in messages:
        said = message["value"]["payload"] if message["type"] == "LOG" else message["record"]
        found[said["who"]].append(said["turn"])
    return dict(found)


WAYS = {
    "singer-python": 'sys.stdout.write(record + "\\n"); sys.stdout.flush()',
    "singer-python without a flush": 'sys.stdout.write(record + "\\n")',
    "singer-sdk": 'sys.stdout.buffer.write(record.encode() + b"\\n"); sys.stdout.buffer.flush()',
    "print": "print(record)",
}


@pytest.mark.parametrize("way", WAYS)
def test_lines_stand_whole_and_in_order_beside_those_of_another_thread(way: str) -> None:
    code = f"""
def tap():
    for turn in range(1500):
        record = json.dumps({{"type": "RECORD", "record": {{"who": "tap", "turn": turn, "text": "y" * (turn % 700)}}}})
        {WAYS[way]}
def logs(number):
    for turn in range(500):
        event(number, turn, turn * 31 % 900)
threads = [threading.Thread(target=tap), *(threading.Thread(target=logs, args=(n,)) for n in range(3))]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    assert turns(lines_of(code)) == {"tap": list(range(1500)), **{str(n): list(range(500)) for n in range(3)}}


@pytest.mark.parametrize("way", WAYS)
def test_in_one_thread_the_order_is_that_of_the_calls(way: str) -> None:
    code = f"""
for turn in range(0, 400, 2):
    record = json.dumps({{"type": "RECORD", "record": {{"who": "all", "turn": turn}}}})
    {WAYS[way]}
    event("all", turn + 1, turn * 97 % 20000)
"""
    if way == "singer-sdk":  # what print() holds is not before what goes past it
        code = code.replace("buffer.flush()", "flush()")
    assert turns(lines_of(code)) == {"all": list(range(400))}


@pytest.mark.parametrize("size", [100, 30_000], ids=["short", "longer than PIPE_BUF"])
@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_threads_forks_and_asyncio_hammer_one_pipe(size: int, options: list[str]) -> None:
    code = f"""
SIZE, TURNS = {size}, {300 if size < 1000 else 60}
def work(who):
    for turn in range(TURNS):
        event(who, turn, turn * 7919 % SIZE)
async def task(who):
    for turn in range(TURNS):
        event(who, turn, turn * 7919 % SIZE)
        await asyncio.sleep(0)
async def tasks(who):
    thread = asyncio.to_thread(work, f"{{who}} to_thread")
    await asyncio.gather(*(task(f"{{who}} task {{n}}") for n in range(3)), thread)
def all_of_it(who):
    threads = [threading.Thread(target=work, args=(f"{{who}} thread {{n}}",)) for n in range(3)]
    for thread in threads: thread.start()
    asyncio.run(tasks(who))
    for thread in threads: thread.join()
threads = [threading.Thread(target=work, args=(f"early {{n}}",)) for n in range(2)]
for thread in threads: thread.start()
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        all_of_it(f"child {{number}}")
        os._exit(0)
    children.append(child)
all_of_it("parent")
for thread in threads: thread.join()
for child in children: assert os.waitpid(child, 0)[1] == 0
"""
    number = 300 if size < 1000 else 60
    messages = lines_of(code, *options)

    writers = [f"early {n}" for n in range(2)]
    for process in ("parent", "child 0", "child 1", "child 2"):
        writers += [f"{process} thread {n}" for n in range(3)] + [f"{process} task {n}" for n in range(3)]
        writers.append(f"{process} to_thread")
    assert turns(messages) == {who: list(range(number)) for who in writers}
    ids = {message["value"]["header"]["id"] for message in messages}
    assert len(ids) == len(messages)


@pytest.mark.parametrize("way", ["print", "singer-python"])
def test_forks_that_print_beside_long_lines_tear_none(way: str) -> None:
    code = f"""
def work(who):
    for turn in range(200):
        event(who + " logs", turn, 9000 if turn % 10 == 0 else 10)
        record = json.dumps({{"type": "RECORD", "record": {{"who": who, "turn": turn}}}})
        {WAYS[way]}
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        work(f"child {{number}}")
        sys.stdout.flush()
        os._exit(0)
    children.append(child)
work("parent")
for child in children: assert os.waitpid(child, 0)[1] == 0
"""
    writers = [f"{who}{what}" for who in ("parent", *(f"child {n}" for n in range(4))) for what in ("", " logs")]
    assert turns(lines_of(code)) == {who: list(range(200)) for who in writers}


def test_a_fork_does_not_write_again_what_print_still_held() -> None:
    code = """
print(json.dumps({"type": "RECORD", "record": {"who": "tap", "turn": 0}}))
event("parent", 0)
print(json.dumps({"type": "RECORD", "record": {"who": "tap", "turn": 1}}))
child = os.fork()
if child == 0:
    event("child", 0)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
event("parent", 1)
"""
    assert turns(lines_of(code)) == {"tap": [0, 1], "parent": [0, 1], "child": [0]}


@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_a_pipe_that_somebody_made_non_blocking_takes_whole_lines(options: list[str]) -> None:
    code = """
os.set_blocking(1, False)
for turn in range(40):
    event("a", turn, turn * 7919 % 100_000)
"""
    assert turns(lines_of(code, *options)) == {"a": list(range(40))}


def test_a_signal_handler_that_logs_neither_stops_nor_tears_a_line() -> None:
    code = """
import signal
seen = []
def handle(number, frame):
    seen.append(number)
    event("handler", len(seen) - 1, 50)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for turn in range(3000):
    event("main", turn, 50)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    found = turns(lines_of(code))

    assert found["main"] == list(range(3000))
    assert sorted(found["handler"]) == list(range(len(found["handler"])))  # one may interrupt another


def test_a_long_line_waits_until_another_process_has_finished_its_own() -> None:
    code = """
import fcntl
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    fcntl.lockf(1, fcntl.LOCK_EX)
    os.write(1, b'{"type": "RECORD", "record": {"who": "child", "turn": 0, "text": "' + b"y" * 5000)
    os.write(ready[1], b"!")
    os.read(go[0], 1)
    os.write(1, b'"}}' + bytes([10]))
    os._exit(0)
os.read(ready[0], 1)
writer = threading.Thread(target=event, args=("parent", 0, 5000))
writer.start()
writer.join(0.3)
assert writer.is_alive()
os.write(go[1], b"!")
writer.join()
assert os.waitpid(child, 0)[1] == 0
"""
    assert list(turns(lines_of(code))) == ["child", "parent"]


def test_text_without_a_newline_comes_out_when_it_is_flushed_or_the_program_ends() -> None:
    code = BEGIN + "print('a', end='', flush=True); print('b', end=''); sys.stdout.writelines(['c', chr(10), 'd'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert done.stdout == b"abc\nd"


def test_what_is_written_in_many_small_pieces_is_one_line() -> None:
    code = """
def logs():
    for turn in range(300): event("logs", turn)
thread = threading.Thread(target=logs)
thread.start()
for turn in range(60):
    json.dump({"type": "RECORD", "record": {"who": "tap", "turn": turn, "rest": list(range(300))}}, sys.stdout)
    print()
thread.join()
"""
    assert turns(lines_of(code)) == {"tap": list(range(60)), "logs": list(range(300))}


def test_a_reader_that_has_gone_away_is_no_reason_to_stop() -> None:
    code = BEGIN + "event('a', 0); sys.stdin.read(); event('a', 1); event('a', 2); os._exit(7)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdin.close()
    complaint = process.stderr.read().decode()
    process.stderr.close()

    assert process.wait(60) == 7
    assert complaint == ("balog: output singer: BrokenPipeError: [Errno 32] Broken pipe; rejected events are counted\n")
