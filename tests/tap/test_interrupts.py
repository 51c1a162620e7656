"""A tap that is ended at any moment: lines are whole, and its last STATE loses nothing.

The taps are real processes, each a fork of one that has imported everything, so that many of them are quick.
"""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fcntl import F_SETPIPE_SZ, fcntl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from balog.tap.syncing import Interrupted, Stop
from balog.tap.syncing.session import Session

TAP = '''
import json, os, sys, time

import balog
from balog.tap import Tap

TIME = {"type": "string", "format": "date-time"}
ROW = {"type": "object", "properties": {"id": {"type": "integer"}, "at": TIME, "text": {"type": "string"}}}
SETTINGS = {"key_properties": ["id"], "replication_key": "at", "schema": ROW}
tap = Tap("tap-ended", config_spec=["pause", "wait_at", "swallow", "logs"])


def rows(name, count, bookmark, config):
    """Give rows in their order, some with the same time, and now and then take as long as a source does."""
    for number in range(count):
        at = f"2026-11-20T{number // 3 // 60:02}:{number // 3 % 60:02}:00Z"
        if bookmark is None or at >= bookmark:
            if config["logs"]:
                balog.get_logger("source").info("a row that is to come", number=number)
            if number % 10 == 0 and config["pause"]:
                time.sleep(config["pause"])
            if number == config["wait_at"]:
                try:
                    time.sleep(60)
                except BaseException:
                    if not config["swallow"]:
                        raise
            yield {"id": number, "at": at, "text": name * 3}


@tap.stream("contacts", bookmark_strategy=tap.every_n(7), **SETTINGS)
def contacts(context, config):
    yield from rows("contacts", 120, context.bookmark, config)


@tap.stream("pages", **SETTINGS)
def pages(context, config):
    found = list(rows("pages", 60, context.bookmark, config))
    for start in range(0, len(found), 25):
        yield found[start : start + 25]


@tap.stream("accounts", bookmark_strategy=tap.every_n(2), **SETTINGS)
def accounts(context, config):
    yield from rows("accounts", 12, context.bookmark, config)


@accounts.substream("orders", **SETTINGS)
def orders(context, parent, config):
    for row in rows("orders", 7 - parent["id"] % 5, context.bookmark, config):
        yield {**row, "id": parent["id"] * 100 + row["id"]}


@orders.substream("lines", **SETTINGS)
def lines(context, parent, config):
    for row in rows("lines", parent["id"] % 4, context.bookmark, config):
        yield {**row, "id": parent["id"] * 10 + row["id"]}


def serve():
    """Fork a tap for each line of stdin; say its process, and its exit code when it has ended."""
    for line in sys.stdin:
        asked = json.loads(line)
        process = os.fork()
        if not process:
            for name, number in (("out", 1), ("err", 2)):
                file = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(file, number)
            code = 99
            os.environ.update(asked["environment"])
            try:
                tap.run(asked["arguments"])
            except SystemExit as error:
                code = error.code or 0
            finally:
                os._exit(code)
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    import balog.log.metrics, balog.tap.command.program, balog.tap.records.output, balog.tap.syncing.reporter
    serve()
'''


class Ended(NamedTuple):
    """What a tap that has ended left: its exit code, stdout, stderr."""

    code: int
    out: bytes
    err: str

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All whole lines. One that was killed may leave the last unfinished."""
        *whole, rest = self.out.split(b"\n")
        assert rest == b"" or self.code == -signal.SIGKILL
        return [json.loads(line) for line in whole]

    @property
    def state(self) -> dict[str, Any]:
        """The value of the last STATE."""
        return next((m["value"] for m in reversed(self.messages) if m["type"] == "STATE"), {})

    def rows(self, *, before_state: bool = False) -> set[tuple[str, int]]:
        """The stream and id of each record; of those before the last STATE alone."""
        messages = self.messages
        while before_state and messages and messages[-1]["type"] != "STATE":
            messages.pop()
        return {(m["stream"], m["record"]["id"]) for m in messages if m["type"] == "RECORD"}


class Taps:
    """Starts taps, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        script = folder / "tap_ended.py"
        script.write_text(TAP)
        self._server = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._stdin: Any = self._server.stdin
        self._stdout: Any = self._server.stdout
        self._fifo = folder / "out"
        os.mkfifo(self._fifo)

    def close(self) -> None:
        with suppress(ProcessLookupError):  # what a test that failed left
            os.kill(self._process, signal.SIGKILL)
        self._stdin.close()
        self._server.wait(10)
        self._stdout.close()

    def start(self, state: dict[str, Any] | None = None, **config: Any) -> tuple[int, int]:
        """Start a tap; give its process and what its stdout is read from, a pipe that holds little."""
        arguments = []
        for name, value in (
            ("config", {"pause": 0.0, "wait_at": -1, "swallow": False, "logs": False, **config}),
            ("state", state),
        ):
            if value is not None:
                (self._folder / f"{name}.json").write_text(json.dumps(value))
                arguments += [f"--{name}", str(self._folder / f"{name}.json")]
        asked: dict[str, Any] = {"out": str(self._fifo), "err": str(self._folder / "err"), "arguments": arguments}
        asked["environment"] = {"BALOG_OUTPUT": "singer"} if config.get("logs") else {}
        self._stdin.write(json.dumps(asked) + "\n")
        self._stdin.flush()
        self._process = process = int(self._stdout.readline())
        reader = os.open(self._fifo, os.O_RDONLY)
        fcntl(reader, F_SETPIPE_SZ, 4096)
        return process, reader

    def end(self, reader: int, out: bytes = b"") -> Ended:
        """Read what is left until the tap has ended."""
        with os.fdopen(reader, "rb") as file:
            out += file.read()
        return Ended(int(self._stdout.readline()), out, (self._folder / "err").read_text())

    def run(self, state: dict[str, Any] | None = None, **config: Any) -> Ended:
        """Run a tap to its end."""
        return self.end(self.start(state, **config)[1])


def end_within(process: int, reader: int, size: int, piece: Callable[[], int], number: int) -> bytes:
    """Read so many bytes, in pieces, and send a signal; return what was read."""
    out = b""
    while len(out) < size and (found := os.read(reader, piece())):
        out += found
    with suppress(ProcessLookupError):
        os.kill(process, number)
    return out


def read_until(reader: int, wanted: bytes) -> bytes:
    out = b""
    while wanted not in out:
        piece = os.read(reader, 65536)
        assert piece, f"the tap has ended before {wanted!r}"
        out += piece
    return out


@pytest.fixture(scope="module")
def taps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Taps]:
    started = Taps(tmp_path_factory.mktemp("ended"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def whole(taps: Taps) -> Ended:
    ended = taps.run()
    assert ended.code == 0, ended.err
    assert len(ended.rows()) > 250
    return ended


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("seed", range(4))
def test_at_any_moment_the_last_state_loses_nothing(
    taps: Taps, whole: Ended, seed: int, number: signal.Signals
) -> None:
    """Until a run comes to its end, each goes on from the last STATE that the reader got of the one before."""
    moments = random.Random(f"{seed} {number}")
    state, rows, codes = None, set[tuple[str, int]](), []
    for _ in range(5):
        process, reader = taps.start(state, pause=0.0005)
        size = moments.randrange(1, len(whole.out))
        out = end_within(process, reader, size, lambda: moments.choice([200, 4096]), number)
        ended = taps.end(reader, out)
        codes.append(ended.code)
        rows |= ended.rows(before_state=True)
        state = ended.state or state
        if ended.code == 0:
            break
        assert ended.code in ({-9} if number == signal.SIGKILL else {128 + number}), ended.err
        assert "Traceback" not in ended.err
    last = taps.run(state)
    assert last.code == 0
    assert rows | last.rows() == whole.rows()
    assert last.state == whole.state


def test_lines_that_a_source_logs_are_whole_too(taps: Taps, whole: Ended) -> None:
    """LOG messages go out between the records, where the source's code is what may be interrupted."""
    moments = random.Random(8)
    for _ in range(8):
        process, reader = taps.start(logs=True)
        size = moments.randrange(1, 2 * len(whole.out))
        ended = taps.end(reader, end_within(process, reader, size, lambda: 300, signal.SIGTERM))
        logs = [message["value"] for message in ended.messages if message["type"] == "LOG"]
        has_reported = logs[-1]["payload"]["cls_type"] == "run"  # then the process only has to exit
        assert ended.code in ((0, 143, -signal.SIGTERM) if has_reported else (0, 143))
        assert len(logs) > 3
        if ended.code:
            assert ended.rows() == ended.rows(before_state=True)


@pytest.mark.parametrize("swallow", [False, True])
def test_a_source_that_waits_is_interrupted_or_ends_at_its_next_record(taps: Taps, swallow: bool) -> None:
    """Given a source that swallows the interruption, then it ends at its next record."""
    process, reader = taps.start(wait_at=30, swallow=swallow)
    out = read_until(reader, b'"id":27')  # the last that is handed on: 28 are a multiple of seven
    end_while_it_sleeps(process)
    ended = taps.end(reader, out)
    assert ended.code == 143
    assert max(row for _, row in ended.rows(before_state=True)) == (30 if swallow else 29)
    if not swallow:
        bookmarks = {"contacts": {"at": "2026-11-20T00:09:00Z"}}
        assert ended.state == {"bookmarks": bookmarks, "currently_syncing": "contacts"}


def test_what_waits_for_a_slow_reader_is_finished(taps: Taps) -> None:
    """The signal comes while the pipe is full."""
    process, reader = taps.start()
    os.read(reader, 1)
    end_while_it_sleeps(process)
    assert select.select([], [], [], 0.05) == ([], [], [])
    ended = taps.end(reader, b"{")
    assert ended.code == 143
    assert ended.messages[-1]["type"] == "STATE"


def test_the_second_signal_ends_it_at_once(taps: Taps) -> None:
    process, reader = taps.start()
    os.read(reader, 1)
    end_while_it_sleeps(process)
    end_while_it_sleeps(process)
    assert int(taps._stdout.readline()) == 143  # with nobody who has read on
    os.close(reader)


def test_a_reader_that_goes_ends_it_in_one_line(taps: Taps) -> None:
    _, reader = taps.start()
    os.read(reader, 1)
    os.close(reader)
    assert int(taps._stdout.readline()) == 1
    said = (taps._folder / "err").read_text()
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("tap-ended: stdout: its reader has closed it")


def end_while_it_sleeps(process: int) -> None:
    """Send SIGTERM when the process waits in a system call, many times in a row."""
    seen = 0
    while seen < 20:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        seen = seen + 1 if state == "S" else 0
        select.select([], [], [], 0.005)
    os.kill(process, signal.SIGTERM)


def _log_and_wait(stop: Stop, write: Callable[[], int]) -> None:
    stop.in_source = True
    assert write() == 499500
    time.sleep(5)


@pytest.mark.parametrize(
    "module", ["balog.log.outputs.none", "balog.log.logger", "balog.log.metrics.x", "balog.log.guard"]
)
def test_a_signal_waits_until_the_source_has_logged(module: str) -> None:
    """The logger suppresses exceptions. What asks again after it is no alarm: a timer of the source is left to it."""
    logging: dict[str, Any] = {"__name__": module, "os": os, "signal": signal}
    code = (
        "def write():\n try: os.kill(os.getpid(), signal.SIGTERM); return 499500\n except BaseException: return 499500"
    )
    exec(code, logging)
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with Stop() as stop, pytest.raises(Interrupted):
            _log_and_wait(stop, logging["write"])
    finally:
        left = signal.setitimer(signal.ITIMER_REAL, 0)[0]
    assert left > 900


@pytest.mark.parametrize("count", range(1, 5))
def test_no_signal_is_raised_outside_of_the_source_after_one_in_its_call(count: int) -> None:
    session: Any = SimpleNamespace(stop=Stop(), is_calling=False)
    stream: Any = SimpleNamespace(call=lambda providers: [])
    returns = 0

    def interrupt(frame: Any, event: str, argument: Any) -> None:
        nonlocal returns
        if event == "return" and session.stop.in_source:
            returns += 1
            if returns == count:
                raise Interrupted(signal.SIGTERM)

    sys.setprofile(interrupt)
    try:
        with suppress(Interrupted):
            Session.call(session, stream, {})
    finally:
        sys.setprofile(None)
    assert returns > 0
    assert not session.stop.in_source
    assert not session.is_calling
