"""Crashes of programs that are not Python, as their runtimes print them, and lines that only look so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.log_lines import LineAssembler
from balog.log_lines.dialects import read_line
from tests.log_lines.test_stderr import events_of, gist

JAVA = """\
Exception in thread "main" java.lang.RuntimeException: sync failed
	at Boom.main(Boom.java:6)
Caused by: java.lang.IllegalStateException: no answer
	at Boom.f(Boom.java:1)
	... 1 more"""
JAVA_OF_LINES = """\
Exception in thread "main" org.apache.spark.SparkException: Job aborted
Driver stacktrace:
	at org.apache.spark.Foo.bar(Foo.scala:1)"""
GO = """\
panic: first
	panic: second

goroutine 1 [running]:
main.(*T).f(0xc000012345)
	/a.go:7 +0x25
panic({0x4ac5a0?, 0x4d25c0?})
	/usr/local/go/src/runtime/panic.go:860 +0x13a
created by main.main in goroutine 7
	/a.go:7 +0x1ca
exit status 2"""
GO_DEADLOCK = """\
fatal error: all goroutines are asleep - deadlock!

goroutine 1 [chan receive]:
main.main()
	/a.go:5 +0xf1"""
RUST = """\
thread 'main' (11572) panicked at r.rs:3:237:
one
two
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"""
RUST_ASSERT = """\
thread 'main' panicked at src/main.rs:3:29:
assertion `left == right` failed: differs
  left: 1
 right: 2
stack backtrace:
   0: __rustc::rust_begin_unwind
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace."""
RUST_OLD = "thread 'main' panicked at 'boom', src/main.rs:2:5"
NODE = """\
file:///app/tap.mjs:12
const e = new Error('outer')
          ^

Error: Cannot find module './nope'
Require stack:
- /app/tap.js
    at file:///app/tap.mjs:1:11 {
  code: 'E1'
}

Node.js v20.20.2"""
NODE_TEXT = """\
/app/n2.js:1
throw 'abc'
^
abc
(Use `node --trace-uncaught ...` to show where the exception was thrown)

Node.js v20.20.2"""
CPP = """\
terminate called after throwing an instance of 'std::runtime_error'
  what():  boom
Aborted"""
DOTNET = """\
Unhandled exception. System.InvalidOperationException: boom
 ---> System.Exception: inner
   --- End of inner exception stack trace ---
   at Program.<Main>$(String[] args) in /app/Program.cs:line 1"""
RUBY = """\
tap.rb:3:in `sync': no answer (RuntimeError)
	from tap.rb:7:in `<main>'"""
PHP = """\
PHP Fatal error:  Uncaught RuntimeException: boom in /app/tap.php:3
Stack trace:
#0 {main}
  thrown in /app/tap.php on line 3"""
PYTHON = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f68447eab80 (most recent call first):
  File "<string>", line 1 in <module>"""
POSTGRES = 'psycopg2.errors.UndefinedTable: relation "x" does not exist'
NODE_MEMORY = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"

# a report; its level, type, reason and language
REPORTS = [
    (JAVA, "ERROR", "java.lang.RuntimeException", "sync failed", "java"),
    (JAVA_OF_LINES, "ERROR", "org.apache.spark.SparkException", "Job aborted\nDriver stacktrace:", "java"),
    (
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
        "CRITICAL",
        "java.lang.OutOfMemoryError",
        "Java heap space",
        "java",
    ),
    (GO, "CRITICAL", "panic", "first", "go"),
    (GO_DEADLOCK, "CRITICAL", "fatal error", "all goroutines are asleep - deadlock!", "go"),
    ("panic: boom", "ERROR", "panic", "boom", None),
    (RUST, "CRITICAL", "panic", "one\ntwo", "rust"),
    (RUST_ASSERT, "CRITICAL", "panic", "assertion `left == right` failed: differs\n  left: 1\n right: 2", "rust"),
    (RUST_OLD, "CRITICAL", "panic", "boom", "rust"),
    (NODE, "ERROR", "Error", "Cannot find module './nope'\nRequire stack:\n- /app/tap.js", "javascript"),
    (NODE_TEXT, "ERROR", "abc", "abc", "javascript"),
    (NODE_MEMORY, "CRITICAL", "crash", NODE_MEMORY.partition(": ")[2], "javascript"),
    ("Uncaught TypeError: x is undefined\n    at f (a.js:1:2)", "ERROR", "TypeError", "x is undefined", "javascript"),
    (CPP, "CRITICAL", "std::runtime_error", "boom", "c++"),
    ("free(): double free detected in tcache 2\nAborted", "CRITICAL", "crash", None, "c"),
    (
        "tap: tap.c:5: main: Assertion `c==0' failed.\nAborted (core dumped)",
        "CRITICAL",
        "crash",
        "Assertion `c==0' failed.",
        "c",
    ),
    (DOTNET, "ERROR", "System.InvalidOperationException", "boom", "c#"),
    (RUBY, "ERROR", "RuntimeError", "no answer", "ruby"),
    (PHP, "ERROR", "RuntimeException", "boom in /app/tap.php:3", "php"),
    (PYTHON, "CRITICAL", "crash", "Segmentation fault", "python"),
    ("Segmentation fault", "CRITICAL", "SIGSEGV", "Segmentation fault", None),
    ("Segmentation fault (core dumped)", "CRITICAL", "SIGSEGV", "Segmentation fault", None),
    ("Killed", "CRITICAL", "SIGKILL", "Killed", None),
    ("Aborted", "CRITICAL", "SIGABRT", "Aborted", None),
    ("k.sh: line 1: 11697 Killed                  sh -c x", "CRITICAL", "SIGKILL", "Killed", None),
    ("bash: 11669 Aborted                 ./c t", "CRITICAL", "SIGABRT", "Aborted", None),
    (POSTGRES, "ERROR", "psycopg2.errors.UndefinedTable", 'relation "x" does not exist', None),
    ("Caused by: java.net.ConnectException: refused", "ERROR", "java.net.ConnectException", "refused", None),
    ("KeyError: 'id'", "ERROR", "KeyError", "'id'", None),
    ("MemoryError: 8 GiB", "CRITICAL", "MemoryError", "8 GiB", None),
]
BEFORE = [
    "INFO Starting sync",
    "WARNING retrying",
    "INFO:tap-x:Starting sync",
    "2026-11-20 08:18:50,473 | WARNING  | tap-x | retrying",
    "2026-11-20 08:18:50,473 | INFO     | tap-x | Starting sync",
    '{"level":"warning","msg":"retrying"}',
    "time=2026-11-20 08:18:50 name=tap level=WARNING message=retrying",
    "Starting sync",
    "WARNING retrying\nTraceback (most recent call last):\n  File a\nError: x",
]
"""What singer-python, logging, the SDK as text and JSON, PipelineWise and a plain program printed before."""


class TestAReport:
    @pytest.mark.parametrize("before", BEFORE)
    @pytest.mark.parametrize(("report", "level", "kind", "reason", "language"), REPORTS)
    def test_it_is_an_event_of_its_own_after_a_line_of_any_dialect(
        self, before: str, report: str, level: str, kind: str, reason: str | None, language: str | None
    ) -> None:
        (first, event, last) = events_of(f"{before}\n{report}\nDone, as far as possible\n".encode())
        assert (first.level, last.level) == (events_of(before.encode())[0].level, "INFO")
        assert last.payload["message"] == "Done, as far as possible"
        exception = {"type": kind, "message": reason or report.partition("\n")[0]}
        assert event.payload["exception"] == (exception | {"language": language} if language else exception)
        assert (event.level, event.payload.get("exc_text", report)) == (level, report)

    @pytest.mark.parametrize("head", ["ERROR failed", "ERROR:tap-x:failed", '{"level":"error","msg":"failed"}'])
    def test_an_exception_below_an_error_is_what_it_logged(self, head: str) -> None:
        """Given a logger that writes the exception below its record, then both are one event."""
        trace = "java.io.IOException: reset\n\tat A.b(A.java:1)\nCaused by: java.net.X: y\n\t... 1 more"
        (event, other) = events_of(f"{head}\n{trace}\nDone\n".encode())
        assert (gist(event), event.payload["exc_text"]) == (("ERROR", "failed"), trace)
        assert event.payload["exception"]["type"] == "java.io.IOException"
        assert gist(other) == ("INFO", "Done")

    @pytest.mark.parametrize(("head", "level"), [("WARN Foo: retrying", "WARNING"), ("INFO sync", "ERROR")])
    def test_one_with_frames_belongs_to_a_warning_and_to_nothing_below(self, head: str, level: str) -> None:
        events = events_of(f"{head}\njava.io.IOException: reset\n\tat A.b(A.java:1)\nDone\n".encode())
        exception = {"type": "java.io.IOException", "message": "reset", "language": "java"}
        assert (events[-2].level, events[-2].payload["exception"]) == (level, exception)
        assert len(events) == 2 + (level == "ERROR")

    def test_the_message_names_the_reason(self) -> None:
        assert [gist(events_of(report.encode())[0])[1] for report in (JAVA, RUST, NODE)] == [
            'Exception in thread "main" java.lang.RuntimeException: sync failed',
            "thread 'main' (11572) panicked at r.rs:3:237: one\ntwo",
            "Error: Cannot find module './nope'",
        ]

    def test_memory_that_runs_out_in_python_is_critical(self) -> None:
        (_, event) = events_of(b"INFO sync\nTraceback (most recent call last):\n  File a\nMemoryError\n")
        assert (event.level, event.payload["exception"]["type"]) == ("CRITICAL", "MemoryError")

    def test_endless_lines_do_not_grow_one_event_for_ever(self) -> None:
        events = events_of(b"panic: x\n\ngoroutine 1 [running]:\n" + b"main.main()\n" * 5000)
        assert max(event.payload.get("exc_text", "").count("main.main") for event in events) <= 2000


LOOKALIKES = [
    "Killed 3 jobs",
    "jobs: 3 Killed by the user",
    "Aborted the transaction, and tried again",
    "Aborted!",
    "The words panic: button pressed",
    "Don't panic: all is well",
    "Segmentation fault tolerance is on",
    "thread 'main' is idle",
    "Caused by: a slow network",
    "Uncaught fish: 3",
    "orders.error: 3",
    "http.timeout: 30",
    "tap.streams.Orders: 5 rows",
    "Errors: 0",
    "Exceptions: none",
    "Exception handling is on",
    "https://example.com:443",
    "localhost:8080",
    "app.js:12",
    "terminate called by the operator",
    "Unhandled exceptions are reported",
    "goroutine 1 [running]:",
    "DeprecationWarning: old",
    "    panic: boom",
    "  Killed",
    '{"text": "panic: boom"}',
]


class TestALineThatOnlyLooksLikeOne:
    @pytest.mark.parametrize("line", LOOKALIKES)
    def test_it_is_plain_text(self, line: str) -> None:
        for after in ("", "\nnext", "\nnext\nlast"):
            event = events_of(f"{line}{after}\n".encode())[0]
            assert (gist(event), "exception" in event.payload) == (("INFO", line), False)

    @pytest.mark.parametrize("line", LOOKALIKES)
    def test_below_a_record_it_continues_its_message(self, line: str) -> None:
        (event,) = events_of(f"WARNING odd\n{line}\n".encode())
        assert gist(event) == ("WARNING", f"odd\n{line}")

    @pytest.mark.parametrize("report", [report for report, *_ in REPORTS])
    def test_the_words_of_a_record_are_its_message(self, report: str) -> None:
        first = report.partition("\n")[0]
        (text, data) = events_of(f'INFO {first}\n{{"level":"info","msg":"x","detail":"{first[:5]}"}}\n'.encode())
        assert (gist(text), data.level) == (("INFO", first), "INFO")


_PIECES = [line for report, *_ in REPORTS for line in report.split("\n")] + BEFORE + LOOKALIKES


@given(st.lists(st.sampled_from(_PIECES), max_size=30), st.integers(1, 50))
def test_no_line_is_lost_in_any_mixture(lines: list[str], size: int) -> None:
    """Given lines of reports and of others in any order, then each is in an event, whatever the chunks are."""
    data = "\n".join(lines).encode()
    events = events_of(data)
    assembler = LineAssembler("tap-x", {"process": 7})
    chunks = [event for at in range(0, len(data), size) for event in assembler.feed(data[at : at + size])]
    assert [event.payload for event in chunks + assembler.close()] == [event.payload for event in events]
    seen = "\n".join(f"{event.payload['message']}\n{event.payload.get('exc_text', '')}" for event in events)
    for line in "\n".join(lines).split("\n"):
        assert line.strip() in seen or read_line(line) is not None
