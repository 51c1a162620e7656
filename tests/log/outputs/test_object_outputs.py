import asyncio
import io
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from balog import configure, get_logger, set_level
from balog.common.errors import ConfigError
from balog.event import Event, decode
from balog.log.outputs.stdlib import find_logger
from balog.log.stdlib import EventFormatter, EventHandler, install
from tests.stand_ins.log_outputs import Lines
from tests.stand_ins.programs import run_python
from tests.waiting import run_threads


class Records(logging.Handler):
    """Keeps the records that reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """The records that reach a handler of the root logger."""
    handler = Records()
    root = logging.getLogger()
    root.addHandler(handler)
    yield handler.records
    root.removeHandler(handler)


async def coroutine(event: Event) -> None:
    """Never runs."""


def generator(event: Event) -> Iterator[Event]:
    yield event


async def async_generator(event: Event) -> AsyncIterator[Event]:
    yield event


class AsyncCall:
    async def __call__(self, event: Event) -> None:
        """Never runs."""


class TestCallable:
    @pytest.mark.parametrize("output", [coroutine, partial(coroutine), generator, async_generator, AsyncCall()])
    def test_a_function_whose_call_runs_nothing_is_refused(self, output: Any) -> None:
        """Nothing would await it."""
        with pytest.raises(ConfigError, match="pass a plain function"):
            configure(output)
        with pytest.raises(ConfigError, match="pass a plain function"):
            configure(["stderr", {"to": output, "level": "ERROR"}])

    @pytest.mark.parametrize("leaving", [KeyboardInterrupt, SystemExit])
    def test_the_end_of_the_program_leaves_the_call(self, leaving: type[BaseException]) -> None:
        """As in the standard library; other errors do not."""

        def leave(event: Event) -> None:
            raise leaving

        configure(leave)
        with pytest.raises(leaving):
            get_logger("a").info("x")

    def test_it_receives_each_event(self) -> None:
        """It is the whole event, in the thread that logs it."""
        events: list[Event] = []
        configure(events.append)
        get_logger("a").info("hello", count=1)

        (event,) = events
        assert (event.level, event.header.channel, event.payload["message"]) == ("INFO", "a", "hello")

    def test_secrets_are_redacted(self) -> None:
        """A callable sees what a file would hold."""
        events: list[Event] = []
        configure(events.append)
        get_logger("a").info("x", payload={"cls_type": "t", "password": "hunter22"})

        assert "hunter22" not in str(events[0].payload)

    def test_level_and_where_apply(self) -> None:
        """As for any other output."""
        errors: list[Event] = []
        users: list[Event] = []
        configure([{"to": errors.append, "level": "ERROR"}, {"to": users.append, "where": "channel = 'users'"}])
        get_logger("users").info("x")
        get_logger("orders").error("x")

        assert [event.header.channel for event in errors] == ["orders"]
        assert [event.header.channel for event in users] == ["users"]

    @pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError])
    def test_one_that_raises_costs_its_own_event(
        self, capsys: pytest.CaptureFixture[str], error: type[BaseException]
    ) -> None:
        """One line reports it; the other outputs go on."""
        before: list[Event] = []
        after: list[Event] = []

        def broken(event: Event) -> None:
            raise error

        configure([before.append, broken, after.append])
        for _ in range(3):
            get_logger("a").info("x")

        assert len(before) == len(after) == 3
        assert capsys.readouterr().err.count(error.__name__) == 1

    def test_events_that_it_logs_do_not_come_back(self) -> None:
        """No endless loop; other outputs get them."""
        events: list[Event] = []

        def chatty(event: Event) -> None:
            get_logger("inner").info("y")

        configure([chatty, events.append])
        get_logger("a").info("x")

        assert [event.header.channel for event in events] == ["inner", "a"]


class TestStream:
    def test_text(self) -> None:
        """One JSON line an event."""
        stream = io.StringIO()
        configure(stream)
        get_logger("a").info("é\n")
        get_logger("b").info("y")

        lines = stream.getvalue().splitlines()
        assert [decode(line).header.channel for line in lines] == ["a", "b"]
        assert decode(lines[0]).payload["message"] == "é\n"

    def test_binary(self) -> None:
        """Bytes, in memory as in a file."""
        stream = io.BytesIO()
        configure(stream)
        get_logger("a").info("é")

        assert decode(stream.getvalue()).payload["message"] == "é"

    @pytest.mark.parametrize("mode", ["w", "wb", "a", "ab"])
    def test_files_of_any_mode_stay_open(self, mode: str, tmp_path: Path) -> None:
        """Each line is flushed; the program closes its file itself."""
        with (tmp_path / "a").open(mode) as stream:
            configure(stream)
            get_logger("a").info("x")
            assert len((tmp_path / "a").read_bytes().splitlines()) == 1
            configure([])
            assert not stream.closed

    def test_an_unbuffered_file_and_a_temporary_one(self, tmp_path: Path) -> None:
        """Raw streams and wrappers of the standard library."""
        with (tmp_path / "a").open("wb", buffering=0) as raw, tempfile.NamedTemporaryFile() as temporary:
            configure([raw, {"to": temporary, "level": "ERROR"}])
            get_logger("a").info("x" * 100_000)
            get_logger("a").error("y")
            assert len((tmp_path / "a").read_bytes().splitlines()) == 2
            assert len(Path(temporary.name).read_bytes().splitlines()) == 1

    def test_an_object_with_only_write(self) -> None:
        """It receives text."""

        class Stream:
            def __init__(self) -> None:
                self.lines: list[str] = []

            def write(self, text: str) -> None:
                self.lines.append(text)

        stream = Stream()
        configure(stream)
        get_logger("a").info("x")

        assert decode(stream.lines[0]).payload["message"] == "x"

    def test_lines_of_threads_stay_whole(self) -> None:
        """Each line is one write under a lock."""
        stream = io.StringIO()
        configure(stream)

        def log() -> None:
            for number in range(200):
                get_logger("a").info("x" * number)

        run_threads(*[log] * 4)

        assert len([decode(line) for line in stream.getvalue().splitlines()]) == 800

    def test_one_that_the_program_has_closed_loses_events_only(self, capsys: pytest.CaptureFixture[str]) -> None:
        """One line reports it."""
        stream = io.StringIO()
        configure(stream)
        stream.close()
        get_logger("a").info("x")
        get_logger("a").info("x")

        assert capsys.readouterr().err.count("closed") == 1

    def test_wrong_objects_are_refused(self, tmp_path: Path) -> None:
        """A class, a closed stream and one for reading."""
        (tmp_path / "a").write_text("")
        closed = io.StringIO()
        closed.close()
        with (tmp_path / "a").open() as reading:
            for wrong in (io.StringIO, closed, reading, [io.BytesIO], {"to": closed}):
                with pytest.raises(ConfigError, match=r"configure\(output=…\): "):
                    configure(wrong)  # type: ignore[arg-type]

    @pytest.mark.parametrize("wrong", [42, [42], {"to": 42}, [None], object()])
    def test_objects_that_are_no_output_are_refused(self, wrong: Any) -> None:
        """One line."""
        with pytest.raises(ConfigError, match=r"configure\(output=…\): "):
            configure(wrong)


def test_an_output_of_the_program_s_own() -> None:
    """A ``LogOutput`` receives the encoded events."""

    kept = Lines()
    configure(kept)
    get_logger("a").warning("x")

    assert (kept.levels, kept.channels) == (["WARNING"], ["a"])


class TestLogging:
    def test_handlers_get_a_record_of_the_channel_s_logger(self, records: list[logging.LogRecord]) -> None:
        """Level, name, message, time, and fields as ``extra``."""
        configure("logging")
        get_logger("app.db").bind(job=7).warning("took {}s", 3, user="ann", name="field")

        (record,) = records
        assert (record.name, record.levelno, record.levelname) == ("app.db", 30, "WARNING")
        assert (record.getMessage(), record.args, record.exc_info) == ("took 3s", (), None)
        assert record.__dict__["user"] == "ann"
        assert record.__dict__["payload"]["fields"]["name"] == "field"
        assert record.__dict__["context"]["job"] == 7
        event = decode(record.__dict__["_balog_event"])
        assert record.created == pytest.approx(event.header.timestamp.timestamp())
        assert record.msecs == int(event.header.timestamp.microsecond / 1000)

    def test_a_record_factory_of_the_program_is_not_asked(self, records: list[logging.LogRecord]) -> None:
        before = logging.getLogRecordFactory()
        logging.setLogRecordFactory(lambda name, *rest, **named: before(name.partition(".")[0], *rest, **named))
        try:
            configure("logging")
            get_logger("app.db").warning("x")
        finally:
            logging.setLogRecordFactory(before)
        assert [record.name for record in records] == ["app.db"]

    def test_caplog_sees_events(self, caplog: pytest.LogCaptureFixture) -> None:
        """At every level that balog writes, whatever the root logger's level is."""
        configure("logging", level="DEBUG")
        get_logger("app").debug("hello")
        get_logger("app").info("done", payload={"cls_type": "sync", "rows": 3})

        assert caplog.record_tuples[0] == ("app", 10, "hello")
        assert caplog.record_tuples[1][0] == "app.done"
        assert "rows=3" in caplog.record_tuples[1][2]

    def test_a_record_has_the_callsite_of_the_event(self, records: list[logging.LogRecord]) -> None:
        """Where the program logs, also for an exception from elsewhere."""
        configure("logging", callsite=True)
        get_logger("a").info("x")
        try:
            json.loads("{")
        except ValueError:
            get_logger("a").exception("y")

        for record in records:
            assert (record.pathname, record.funcName) == (__file__, "test_a_record_has_the_callsite_of_the_event")
        assert [record.lineno for record in records] == sorted(record.lineno for record in records)
        assert records[0].lineno > 0

    def test_exc_info_is_the_exception_itself(self, records: list[logging.LogRecord]) -> None:
        """Sentry groups by the exception and its frames."""
        configure("logging")
        error = ValueError("no")
        try:
            raise error
        except ValueError:
            get_logger("a").exception("failed")
        get_logger("a").error("x", exc_info=error)
        get_logger("a").error("y")

        assert [record.exc_info and record.exc_info[1] for record in records] == [error, error, None]
        assert "ValueError: no" in logging.Formatter().format(records[0])
        assert "test_object_outputs.py" in records[0].pathname

    def test_formatters_print_the_redacted_traceback(self, records: list[logging.LogRecord]) -> None:
        """A formatter of the standard library prints the record's text of the exception, where it has one."""
        configure("logging")
        try:
            raise ValueError("password=hunter2")
        except ValueError:
            get_logger("shop").exception("failed")
        printed = logging.Formatter("%(message)s").format(records[0])
        assert "ValueError: password=[redacted]" in printed
        assert "hunter2" not in printed
        assert isinstance(records[0].exc_info[1], ValueError)  # type: ignore[index]

    def test_levels_of_handlers_and_of_channels_hold(self, records: list[logging.LogRecord]) -> None:
        """A handler filters as usual; ``set_level`` applies before it."""
        configure("logging", level="DEBUG")
        handler = next(one for one in logging.getLogger().handlers if isinstance(one, Records))
        handler.setLevel("WARNING")
        set_level("quiet", "ERROR")
        for name in ("app", "quiet"):
            get_logger(name).info("x")
            get_logger(name).warning("x")

        assert [(record.name, record.levelno) for record in records] == [("app", 30)]

    def test_balog_s_own_handler_makes_no_loop(self, records: list[logging.LogRecord]) -> None:
        """An event goes to the other handlers once; a record of the standard library becomes one event."""
        events: list[Event] = []
        configure(["logging", events.append])
        with install(replace=False):
            get_logger("ours").info("x")
            logging.getLogger("theirs").warning("y")

        assert [event.header.channel for event in events] == ["ours", "theirs"]
        assert [record.name for record in records] == ["ours", "theirs"]

    def test_a_handler_that_logs_makes_no_loop(self) -> None:
        """Neither through balog nor through the standard library."""
        events: list[Event] = []

        class Chatty(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if record.name != "lib":
                    get_logger("inner").info("x")
                    logging.getLogger("lib").error("x")

        configure(["logging", events.append])
        root, chatty, ours = logging.getLogger(), Chatty(), EventHandler()
        root.addHandler(chatty)
        root.addHandler(ours)
        try:
            get_logger("a").info("x")
        finally:
            root.removeHandler(chatty)
            root.removeHandler(ours)

        assert [event.header.channel for event in events] == ["inner", "lib", "a"]

    def test_an_event_formatter_writes_the_same_event(self) -> None:
        """The record carries its event."""
        events: list[Event] = []
        lines = io.StringIO()
        handler = logging.StreamHandler(lines)
        handler.setFormatter(EventFormatter())
        root = logging.getLogger()
        root.addHandler(handler)
        try:
            configure(["logging", events.append])
            get_logger("a").info("x", payload={"cls_type": "t", "n": 1})
        finally:
            root.removeHandler(handler)

        assert decode(lines.getvalue()) == events[0]

    def test_channels_of_ids_do_not_fill_the_memory(self) -> None:
        """The standard library keeps loggers forever; beyond a number the nearest parent's handlers are used."""
        parent = logging.getLogger("many")
        names = [f"many.channel{number}.x" for number in range(3000)]
        before = len(logging.Logger.manager.loggerDict)
        found = {find_logger(name).name for name in names}
        made = len(logging.Logger.manager.loggerDict) - before
        for name in list(logging.Logger.manager.loggerDict):
            if name.startswith("many."):
                del logging.Logger.manager.loggerDict[name]

        assert made <= 2000
        assert parent.name in found

    def test_from_a_config_file(self, tmp_path: Path, records: list[logging.LogRecord]) -> None:
        """With a level and a filter."""
        (tmp_path / "logger.json").write_text(
            '{"output": ["stderr", {"to": "logging", "level": "ERROR", "where": "channel != \'x\'"}]}'
        )
        configure(config=tmp_path / "logger.json")
        for name in ("x", "y"):
            get_logger(name).info("x")
            get_logger(name).error("x")

        assert [(record.name, record.levelno) for record in records] == [("y", 40)]


def test_importing_balog_does_not_load_the_handlers() -> None:
    """The output imports the standard library's part only when it is used."""
    code = "import sys, balog; balog.configure('stderr'); print('balog.log.outputs.stdlib' in sys.modules)"
    assert run_python(code).stdout == "False\n"
