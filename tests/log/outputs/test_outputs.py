import io
import json
import os
import pty
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from balog.event import Event, encode
from balog.log.outputs import console_line, default_output, open_output
from balog.log.outputs.console import ConsoleOutput, message_of
from balog.log.outputs.stdio import SingerOutput, StderrOutput
from balog.singer import LogMessage, parse_log
from tests.stand_ins.programs import run_python

EVENT = encode(Event.new("tap.done", {"cls_type": "log", "message": "hi"}))


class Stream(io.TextIOWrapper):
    """A text stream over bytes, as stdout is, that says whether it is a terminal."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    @property
    def bytes(self) -> bytes:
        return self.buffer.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_singer_writes_a_log_message_that_the_pipe_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = Stream()
    monkeypatch.setattr(sys, "stdout", stdout)

    SingerOutput().write("WARNING", EVENT)

    log = parse_log(stdout.bytes)
    assert isinstance(log, LogMessage)
    assert (log.level, bytes(log.value)) == ("WARNING", EVENT)
    assert stdout.bytes.endswith(b"}\n")


def test_stderr_writes_the_event_alone_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Stream()
    monkeypatch.setattr(sys, "stderr", stderr)

    StderrOutput().write("INFO", EVENT)

    assert stderr.bytes == EVENT + b"\n"


def test_what_print_still_holds_comes_before_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = Stream()
    monkeypatch.setattr(sys, "stdout", stdout)

    print("first")
    SingerOutput().write("INFO", EVENT)
    print("second", flush=True)

    assert [line[:6] for line in stdout.bytes.splitlines()] == [b"first", b'{"type', b"second"]


@pytest.mark.parametrize("name", ["singer", "stderr", "console"])
def test_a_stream_that_knows_only_text_is_written_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)

    open_output(name).write("INFO", EVENT)

    assert "tap.done" in stream.getvalue()
    assert stream.getvalue().endswith("\n")


def test_a_bare_file_that_takes_a_few_bytes_at_a_time_gets_the_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reluctant(io.RawIOBase):
        taken = b""

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.taken += bytes(data[:7])
            return min(7, len(data))

    class Unbuffered(io.StringIO):
        buffer = Reluctant()

    monkeypatch.setattr(sys, "stderr", Unbuffered())
    StderrOutput().write("INFO", EVENT)

    assert Unbuffered.buffer.taken == EVENT + b"\n"


HAMMER = """
import threading
from balog import configure, get_logger
configure("singer")
log = get_logger("hammer")
def work(number):
    for turn in range(150):
        log.info("done", payload={"thread": number, "turn": turn, "text": "x" * (turn * 97 % 9000)})
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_threads_that_hammer_one_stdout_tear_no_line(options: list[str]) -> None:
    lines = run_python(HAMMER, *options).stdout.splitlines()

    said = [json.loads(line)["value"]["payload"] for line in lines]
    assert len(said) == 8 * 150
    for number in range(8):
        assert [one["turn"] for one in said if one["thread"] == number] == list(range(150))


FORK = """
import os, threading
from balog import configure, get_logger
configure("singer")
log = get_logger("fork")
stop = threading.Event()
def work():
    while not stop.is_set():
        log.info("parent", payload={"text": "x" * 3000})
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for number in range(40):
    child = os.fork()
    if child == 0:
        log.info("child", payload={"pid": os.getpid()})
        os._exit(0)
    os.waitpid(child, 0)
stop.set()
for thread in threads: thread.join()
"""


def test_a_child_forked_while_threads_log_can_log_and_says_its_own_pid() -> None:
    events = [json.loads(line)["value"] for line in run_python(FORK).stdout.splitlines()]

    children = [event for event in events if event["header"]["channel"] == "fork.child"]
    parents = {event["header"]["context"]["process"] for event in events if event not in children}
    assert len(children) == 40
    assert all(event["header"]["context"]["process"] == event["payload"]["pid"] for event in children)
    assert len(parents) == 1
    assert len({event["header"]["id"] for event in events}) == len(events)


def test_a_signal_handler_may_write_while_its_thread_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Stream):
        was_interrupted = False

        def flush(self) -> None:
            if not self.was_interrupted:
                self.was_interrupted = True
                StderrOutput().write("INFO", b'{"inner":1}')
            super().flush()

    stderr = Interrupted()
    monkeypatch.setattr(sys, "stderr", stderr)
    worker = threading.Thread(target=StderrOutput().write, args=("INFO", EVENT), daemon=True)
    worker.start()
    worker.join(20)

    assert not worker.is_alive()
    assert stderr.bytes == b'{"inner":1}\n' + EVENT + b"\n"


class TestDefaultOutput:
    @pytest.mark.parametrize(
        ("stream", "name"),
        [
            (lambda: Stream(is_terminal=True), "console"),
            (Stream, "stderr"),
            (lambda: None, "stderr"),
            (object, "stderr"),
        ],
    )
    def test_lines_for_people_only_on_a_terminal(
        self, stream: Callable[[], Any], name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stderr", stream())

        assert default_output() == name

    def test_a_closed_stderr_is_no_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stderr = Stream()
        stderr.close()
        monkeypatch.setattr(sys, "stderr", stderr)

        assert default_output() == "stderr"

    def test_on_a_real_terminal_the_line_is_in_colour_and_readable(self) -> None:
        ours, theirs = pty.openpty()
        try:
            code = "from balog import get_logger; get_logger('tap').warning('hello', rows=3)"
            environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
            subprocess.run([sys.executable, "-c", code], stderr=theirs, check=True, env=environment)
            seen = os.read(ours, 10_000).decode()
        finally:
            os.close(ours)
            os.close(theirs)

        assert "\x1b[33mWARNING \x1b[0m tap  hello  rows=3" in seen


class TestConsoleLine:
    def line(self, payload: dict[str, Any], **header: Any) -> str:
        head = {"channel": "tap.log", "timestamp": "2026-11-20T07:46:12.500000Z", "level": "ERROR", **header}
        return console_line({"header": head, "payload": payload}, in_colour=False)

    def test_it_says_time_level_channel_message_and_fields(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TZ", "UTC")
        line = self.line({"cls_type": "log", "message": "m", "fields": {"rows": 3}})

        assert line[:11] in ("2026-11-19 ", "2026-11-20 ", "2026-11-21 ")
        assert line[13] == line[16] == ":"
        assert line[19:] == ".500 ERROR    tap.log  m  rows=3\n"

    def test_what_is_bound_is_shown_and_what_every_event_has_is_not(self) -> None:
        context = {"fqdn": "h", "application": "a", "process": 1, "run_id": "r", "thread": "t", "invoice": 17}
        line = self.line({"cls_type": "log", "message": "m", "fields": {"rows": 3}}, context=context)

        assert line.endswith("tap.log  m  rows=3  invoice=17\n")

    def test_the_traceback_follows_on_its_own_lines(self) -> None:
        line = self.line({"cls_type": "log", "message": "m", "exc_text": "Traceback:\n  x\nE: y\n"})

        assert line.endswith("tap.log  m\n  | Traceback:\n  |   x\n  | E: y\n")

    def test_an_event_is_one_line_and_its_values_are_quoted(self) -> None:
        """Whatever a value holds, it can be told from the next key."""
        fields = {
            "a": "b c=d",
            "e": 'x"y',
            "k y": "",
            "n": None,
            "t": True,
            "l": [1, "2 3"],
            "p": "a/b:c.d-1",
            "w": "1\n2",
        }
        line = self.line({"cls_type": "log", "message": "one\ntwo", "fields": fields}, context={"q": "r s"})

        assert line.count("\n") == 1
        assert line.endswith(
            r'one\ntwo  a="b c=d" e="x\"y" "k y"="" n=null t=true l=[1,"2 3"] p=a/b:c.d-1 w="1\n2"  q="r s"' + "\n"
        )

    def test_invisible_characters_are_escaped(self) -> None:
        """Except the joiners of words and emoji. Unicode also counts visible signs of some scripts as invisible."""
        joiners, visible = {0x200C, 0x200D}, {0x6DD, 0x70F, 0x8E2, 0x110BD, 0x110CD}
        visible |= {*range(0x600, 0x606), 0x890, 0x891, *range(0x13430, 0x13440)}
        codes = {code for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp")}
        for code in codes - joiners - visible - {ord("\t")}:
            shown = self.line({"cls_type": "log", "message": f"a{chr(code)}b"})
            assert chr(code) not in shown[:-1], hex(code)

    def test_nothing_in_an_event_steers_the_terminal(self) -> None:
        evil = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202eabc\x00"
        line = self.line(
            {"cls_type": "log", "message": evil, "fields": {evil: evil}, "exc_text": evil}, channel=evil, level="INFO"
        )

        assert not set(line) & set("\x1b\x07\r\x9b\u202e\x00")
        assert "\\x1b]0;title" in line

    def test_text_of_other_languages_is_left_as_it_is(self) -> None:
        assert "été 数据 😀" in self.line({"message": "été 数据 😀"})


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (
            {"cls_type": "metric", "type": "counter", "metric": "rows", "value": 3, "tags": {"stream": "a"}},
            "rows = 3 stream=a",
        ),
        ({"cls_type": "metric", "type": "timer", "metric": "t", "value": 0.5}, "t = 0.5s"),
        ({"cls_type": "metric", "metric": "t", "value": 1, "tags": [1]}, "t = 1 [1]"),
        ({"cls_type": "metric", "type": "timer", "metric": "t", "value": 0.13709066600131337}, "t = 0.1371s"),
        ({"cls_type": "metric", "metric": "t", "value": 123456.789}, "t = 123457"),
        ({"cls_type": "metric", "metric": "t", "value": 12345678901234567}, "t = 12345678901234567"),
        ({"cls_type": "metric", "metric": "t", "value": 1.23456e300}, "t = 1.235e+300"),
        ({"cls_type": "log", "message": "m", "severity": "s", "logger": "l", "version": "1.0.0"}, "m"),
        ({"cls_type": "log", "message": "m", "fields": {"a": 1}, "b": 2}, "m  b=2 a=1"),
        ({"cls_type": "log", "message": "m", "fields": "odd"}, "m  fields=odd"),
        ({"cls_type": "app.order", "number": 7}, "app.order  number=7"),
        (
            {"cls_type": "run", "outcome": "failed", "exit_code": 1, "streams": [{"stream": "a"}], "started": "now"},
            "run  outcome=failed exit_code=1",
        ),
        ({"number": 7}, "number=7"),
        ({}, ""),
    ],
)
def test_a_payload_of_any_type_is_said_in_words(payload: dict[str, Any], said: str) -> None:
    assert message_of(payload) == said


def test_colour_is_left_out_where_nobody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Stream(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("NO_COLOR", "1")
    ConsoleOutput().write("INFO", EVENT)
    assert b"\x1b" not in stderr.bytes

    monkeypatch.delenv("NO_COLOR")
    ConsoleOutput().write("INFO", EVENT)
    assert b"\x1b[32mINFO" in stderr.bytes
