import copy
import io
import json
import logging
import logging.config
import logging.handlers
import queue
import subprocess
import sys
import threading
import warnings
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import balog
from balog.common.cardinality import Cardinality
from balog.common.errors import ConfigError
from balog.common.redaction import Redactor
from balog.event import Event, decode, encode
from balog.event.payload import LogPayload, MetricPayload, read
from balog.log import stdlib as handlers
from balog.log.metrics import points
from balog.log.recorder import Recorder
from balog.log.stdlib import EventFormatter, EventHandler
from tests.stand_ins.log_outputs import Lines, recording, use_output
from tests.stand_ins.programs import run_python

EVENT = Event.new("made.elsewhere", {"cls_type": "app.job", "rows": 3}, level="ERROR", context={"application": "other"})


@pytest.fixture
def lines() -> Lines:
    made = Lines()
    use_output(made, strict=True)
    return made


@pytest.fixture
def easygoing(lines: Lines) -> Recorder:
    """What the process logs with: not strict, as in production."""
    return use_output(lines)


@pytest.fixture
def logger() -> logging.Logger:
    """A logger of its own with one ``EventHandler``."""
    made = logging.Logger("tests.log.stdlib", 1)
    made.addHandler(EventHandler())
    return made


@pytest.fixture
def untouched() -> Iterator[None]:
    """Logging, warnings and hooks as they were before."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, sys.excepthook, threading.excepthook, sys.unraisablehook
    showwarning, load = warnings.showwarning, logging.config.fileConfig
    yield
    root.handlers[:], root.level, sys.excepthook, threading.excepthook, sys.unraisablehook = before
    warnings.showwarning, logging.config.fileConfig = showwarning, load


class TestARecordBecomesAnEvent:
    def test_of_a_log_payload_on_its_logger_s_channel(self, lines: Lines, logger: logging.Logger) -> None:
        logger.warning("%d of %s", 3, "many")

        event = lines.take()
        assert (event.header.channel, event.level) == ("tests.log.stdlib", "WARNING")
        assert read(event) == LogPayload(message="3 of many", severity="WARNING", logger="tests.log.stdlib")

    def test_its_time_is_the_record_s(self, lines: Lines, logger: logging.Logger) -> None:
        record = logger.makeRecord("a", 20, "f", 1, "hi", (), None)
        record.created = 1_700_000_000.123456
        logger.handle(record)

        assert lines.take().header.timestamp == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=timezone.utc)

    @pytest.mark.parametrize("created", ["yesterday", -1.0, 1e300, float("nan"), None])
    def test_a_time_that_is_none_is_now(self, lines: Lines, logger: logging.Logger, created: Any) -> None:
        record = logger.makeRecord("a", 20, "f", 1, "hi", (), None)
        record.created = created
        logger.handle(record)

        age = datetime.now(timezone.utc) - lines.take().header.timestamp
        assert abs(age.total_seconds()) < 3600

    def test_what_is_extra_is_in_the_fields(self, lines: Lines, logger: logging.Logger) -> None:
        logger.info("hi", extra={"rows": 3, "table": {"name": "users"}, "_private": object()})

        assert lines.take().payload["fields"] == {"rows": 3, "table": {"name": "users"}}

    def test_no_standard_attribute_is_extra_whoever_formatted_the_record_before(
        self, lines: Lines, logger: logging.Logger
    ) -> None:
        record = logger.makeRecord("a", 20, "f", 1, "hi", (), None, "function")
        logging.Formatter("%(asctime)s %(message)s").format(record)
        logger.handle(record)

        assert "fields" not in lines.take().payload

    @pytest.mark.parametrize(
        ("number", "level", "severity"),
        [
            (6, "DEBUG", "Level 6"),
            (10, "DEBUG", "DEBUG"),
            (25, "INFO", "NOTICE"),
            (35, "WARNING", "Level 35"),
            (50, "CRITICAL", "CRITICAL"),
            (70, "CRITICAL", "Level 70"),
        ],
    )
    def test_a_level_in_between_counts_as_the_one_below_and_keeps_its_name(
        self, lines: Lines, logger: logging.Logger, number: int, level: str, severity: str
    ) -> None:
        logging.addLevelName(25, "NOTICE")
        logger.log(number, "hi")

        event = lines.take()
        assert (event.level, event.payload.get("severity")) == (level, severity)

    def test_its_exception_is_there_as_data_and_as_text(self, lines: Lines, logger: logging.Logger) -> None:
        try:
            raise ValueError("bad")
        except ValueError:
            logger.exception("it failed")

        payload = read(lines.take())
        assert isinstance(payload, LogPayload)
        assert payload.exception is not None
        assert (payload.exception.type, payload.exception.message) == ("ValueError", "bad")
        assert payload.exception.frames[-1].file == __file__
        assert payload.exc_text is not None
        assert payload.exc_text.endswith("ValueError: bad\n")

    def test_the_text_of_an_exception_stays_where_only_that_is_left(self, lines: Lines, logger: logging.Logger) -> None:
        record = logger.makeRecord("a", 40, "f", 1, "hi", (), None)
        record.exc_text = "Traceback …"
        logger.handle(record)

        assert lines.take().payload["exc_text"] == "Traceback …"

    def test_the_stack_that_was_asked_for_is_in_the_fields(self, lines: Lines, logger: logging.Logger) -> None:
        logger.info("hi", stack_info=True)

        assert "test_the_stack_that_was_asked_for" in lines.take().payload["fields"]["stack_info"]

    def test_of_what_is_bound_when_it_is_logged(self, lines: Lines, logger: logging.Logger) -> None:
        with balog.bound(job="nightly"):
            logger.info("hi")

        assert lines.take().header.context["job"] == "nightly"

    def test_with_the_thread_it_was_logged_in_not_the_one_that_handled_it(self, lines: Lines) -> None:
        waiting: queue.Queue[Any] = queue.Queue()
        logger = logging.Logger("queued")
        logger.addHandler(logging.handlers.QueueHandler(waiting))
        thread = threading.Thread(target=logger.info, args=("hi %s", 1), name="the worker")
        thread.start()
        thread.join()
        listener = logging.handlers.QueueListener(waiting, EventHandler())
        listener.start()
        listener.stop()

        event = lines.take()
        assert event.header.context["thread"] == "the worker"
        assert event.payload["message"] == "hi 1"

    def test_a_dict_as_message_gives_its_event_and_fields(self, lines: Lines, logger: logging.Logger) -> None:
        logger.info({"event": "done", "rows": 3})
        payload = lines.take().payload
        assert (payload["message"], payload["fields"]) == ("done", {"rows": 3})

        logger.info({"rows": 3})
        payload = lines.take().payload
        assert (payload["message"], payload["fields"]) == ("", {"rows": 3})

    def test_arguments_that_do_not_fit_are_written_beside_the_message(
        self, lines: Lines, logger: logging.Logger
    ) -> None:
        logger.info("hi %d", "x")

        assert lines.take().payload["message"] == "hi %d ('x',)"

    def test_secrets_are_taken_out(self, lines: Lines, logger: logging.Logger) -> None:
        use_output(lines, redactor=Redactor())
        logger.info("hi", extra={"password": "hunter2"})
        foreign = Event.new("a", {"cls_type": "x", "password": "hunter2"}, context={"token": "hunter2"})
        logger.info(foreign)

        assert len(lines.events) == 2
        assert all(b"hunter2" not in line for _, line in lines.written)
        assert foreign.payload["password"] == "hunter2"  # the caller's own is not touched
        assert lines.events[1].header.id == foreign.header.id


@pytest.mark.parametrize(
    ("name", "prefix", "channel"),
    [
        ("a.b", None, "a.b"),
        ("a.b", "p", "p.a.b"),
        ("p.b", "p", "p.b"),
        ("p", "p", "p"),
        ("pb", "p", "p.pb"),
        ("root", None, "app"),
        ("root", "p", "p"),
        ("", None, "app"),
    ],
)
def test_the_channel_follows_from_the_logger_s_name(lines: Lines, name: str, prefix: str | None, channel: str) -> None:
    EventHandler(prefix=prefix).handle(logging.makeLogRecord({"name": name, "levelno": 20, "msg": "hi"}))

    assert lines.take().header.channel == channel


class TestWhatIsAnEventAlreadyIsNotWrappedTwice:
    @pytest.mark.parametrize(
        "form",
        [
            lambda event: event,
            lambda event: json.loads(encode(event)),
            lambda event: encode(event).decode(),
            lambda event: encode(event).decode() + "\n",
            lambda event: json.dumps(json.loads(encode(event)), indent=2),
            lambda event: json.dumps({"type": "LOG", "level": "INFO", "value": json.loads(encode(event))}),
            lambda event: f'{{"type":"log","level":"ERROR","value":{encode(event).decode()}}}\n',
        ],
        ids=["Event", "dict", "line", "line and newline", "indented", "LOG", "log in lower case"],
    )
    def test_in_any_form(self, lines: Lines, logger: logging.Logger, form: Any) -> None:
        logger.info(form(EVENT))

        assert lines.written[0][0] == "ERROR"
        event = lines.take()
        assert event.header == EVENT.header
        assert event.payload == EVENT.payload

    def test_as_an_argument(self, lines: Lines, logger: logging.Logger) -> None:
        """As Airflow logs the lines of a command that it runs."""
        logger.info("%s", encode(EVENT).decode())

        assert lines.take().header.id == EVENT.header.id

    def test_a_log_message_of_free_json_becomes_what_the_pipe_would_make_of_it(
        self, lines: Lines, logger: logging.Logger
    ) -> None:
        logger.info('{"type": "LOG", "level": "WARNING", "value": {"message": "slow", "rows": 3}}')

        event = lines.take()
        assert (event.level, event.header.channel) == ("WARNING", "tests.log.stdlib.log")
        assert event.payload["message"] == "slow"

    @pytest.mark.parametrize(
        "text",
        [
            '{"schema": "0.1.0", "header": {}, "payload": {}}',
            '{"type": "RECORD", "stream": "a", "record": {}}',
            '{"type": "LOG"',
            "{not json}",
            '{"header": "payload"}',
            '{"type": "\ud800"}',
            '{"header": "payload \ud800"}',
        ],
    )
    def test_what_only_looks_like_one_is_a_line_like_any_other(
        self, lines: Lines, easygoing: Recorder, logger: logging.Logger, text: str
    ) -> None:
        logger.info(text)

        event = lines.take()
        assert event.cls_type == "log"
        assert event.payload["message"] == text.replace("\ud800", "?")

    def test_a_dict_that_only_looks_like_one_is_kept_in_the_fields(self, lines: Lines, logger: logging.Logger) -> None:
        data = {"schema": "0.1.0", "header": {"id": "no"}, "payload": {"cls_type": "x"}}
        logger.info(data)

        assert lines.take().payload["fields"] == data


@dataclass
class SdkPoint:
    """The form of the Meltano SDK's points."""

    value: Any

    def to_dict(self) -> dict[str, Any]:
        return {"type": "timer", "metric": "sync_duration", "value": self.value, "tags": {"stream": "users"}}


SingerPoint = namedtuple("SingerPoint", ["metric_type", "metric", "value", "tags"])


class TestMetrics:
    @pytest.mark.parametrize(
        ("message", "args"),
        [
            ("METRIC: %s", ['{"type": "counter", "metric": "rows", "value": 3, "tags": {"a": 1}}']),
            ('METRIC: {"type": "counter", "metric": "rows", "value": 3, "tags": {"a": 1}}', []),
            ("METRIC: %s", [{"type": "counter", "metric": "rows", "value": 3, "tags": {"a": 1}}]),
            ("METRIC %s", [SingerPoint("counter", "rows", 3, {"a": 1})]),
        ],
        ids=["singer-python", "text", "dict", "Point"],
    )
    def test_a_metric_line_becomes_a_metric(
        self, lines: Lines, logger: logging.Logger, message: str, args: list[Any]
    ) -> None:
        logger.info(message, *args)

        event = lines.take()
        assert read(event) == MetricPayload(type="counter", metric="rows", value=3, tags={"a": 1})
        assert "message" not in event.payload

    def test_a_point_of_the_sdk_becomes_a_metric(self, lines: Lines, logger: logging.Logger) -> None:
        logger.info("METRIC: %s", SdkPoint(0.5))

        expected = MetricPayload(type="timer", metric="sync_duration", value=0.5, tags={"stream": "users"})
        assert read(lines.take()) == expected

    @pytest.mark.parametrize("name", ["metric", "metric_info"])
    def test_an_extra_metric_becomes_one_and_keeps_the_rest(
        self, lines: Lines, logger: logging.Logger, name: str
    ) -> None:
        point = {"type": "gauge", "metric": "depth", "value": 7, "tags": None}
        logger.info("queue looked at", extra={name: point, "shard": 2})

        payload = lines.take().payload
        assert (payload["cls_type"], payload["metric"], payload["value"]) == ("metric", "depth", 7)
        assert (payload["tags"], payload["message"], payload["shard"]) == ({}, "queue looked at", 2)

    def test_too_many_sets_of_tags_are_folded(
        self, lines: Lines, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(points, "_cardinality", Cardinality(10))
        for user in range(50):
            point = {"type": "counter", "metric": "logins", "value": 1, "tags": {"user": user}}
            logger.info("METRIC: %s", json.dumps(point))

        assert len({str(event.payload["tags"]) for event in lines.events}) == 11

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), "3", None, True])
    def test_without_a_number_it_stays_a_line(
        self, lines: Lines, easygoing: Recorder, logger: logging.Logger, value: Any
    ) -> None:
        logger.info("METRIC: %s", SdkPoint(value))

        assert lines.take().cls_type == "log"

    def test_an_extra_called_metric_that_is_none_stays_a_field(self, lines: Lines, logger: logging.Logger) -> None:
        logger.info("hi", extra={"metric": "rmse"})

        assert lines.take().payload["fields"] == {"metric": "rmse"}


class TestPayload:
    def test_an_extra_payload_is_the_payload(self, lines: Lines, logger: logging.Logger) -> None:
        logger.info("job done", extra={"payload": {"cls_type": "app.job", "rows": 3}, "shard": 2})

        event = lines.take()
        assert event.header.channel == "tests.log.stdlib"
        assert event.payload == {"message": "job done", "shard": 2, "cls_type": "app.job", "rows": 3}

    def test_what_the_payload_says_itself_is_not_hidden(self, lines: Lines, logger: logging.Logger) -> None:
        logger.info("outer", extra={"payload": {"cls_type": "x", "message": "inner"}})

        assert lines.take().payload == {"cls_type": "x", "message": "inner"}

    def test_an_exception_goes_beside_it(self, lines: Lines, logger: logging.Logger) -> None:
        logger.error("failed", exc_info=ValueError("bad"), extra={"payload": {"cls_type": "app.job"}})

        assert lines.take().payload["exception"] == {"type": "ValueError", "message": "bad"}

    @pytest.mark.parametrize("value", ["text", b"bytes", [1], 3, None])
    def test_an_extra_called_payload_that_is_no_object_stays_a_field(
        self, lines: Lines, easygoing: Recorder, logger: logging.Logger, value: Any
    ) -> None:
        logger.info("hi", extra={"payload": value})

        payload = lines.take().payload
        assert payload["message"] == "hi"
        assert "payload" in payload["fields"]


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class TestNeverInTheWay:
    @pytest.mark.parametrize(
        "message", [Hostile(), b"bytes", None, "", "%", "{}", {1: Hostile()}, "\ud800", float("nan"), "x" * 5_000_000]
    )
    @pytest.mark.parametrize("args", [(), (Hostile(),), (1, 2), ({},), ({"a": Hostile()},)])
    def test_any_message_gives_a_valid_event(
        self, lines: Lines, easygoing: Recorder, logger: logging.Logger, message: Any, args: Any
    ) -> None:
        logger.info(message, *args)

        assert lines.take().cls_type == "log"

    @given(
        st.dictionaries(
            st.text(max_size=20),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats()
                | st.text(st.characters())
                | st.binary()
                | st.builds(Hostile)
                | st.builds(object),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
                max_leaves=8,
            ),
            max_size=5,
        )
    )
    def test_any_attributes_give_a_valid_event(self, attributes: dict[str, Any]) -> None:
        made = Lines()
        with recording(made):
            record = logging.LogRecord("a", 20, "f", 1, "hi %s", ("x",), None)
            record.__dict__.update({key: value for key, value in attributes.items() if key not in record.__dict__})
            EventHandler().handle(record)
            EventFormatter().format(record)
        assert made.take().payload["message"] is not None

    def test_a_failing_output_does_not_reach_the_application(
        self, lines: Lines, easygoing: Recorder, logger: logging.Logger
    ) -> None:
        def fail() -> None:
            raise OSError("disk full")

        lines.act = fail
        logger.info("hi")

        assert easygoing.lost == 1

    def test_a_record_that_cannot_be_read_is_written_as_well_as_it_can_be_and_counted(
        self, lines: Lines, easygoing: Recorder, logger: logging.Logger
    ) -> None:
        record = logging.makeLogRecord({"levelno": 20, "msg": "hi"})
        record.name = Hostile()  # type: ignore[assignment]
        record.__dict__[3] = "no name"  # type: ignore[index]
        logger.handle(record)

        assert easygoing.lost == 0
        assert easygoing.problems == 1
        payload = lines.take().payload
        assert payload["message"] == "hi"
        assert "its record raised" in payload["problem"]
        assert "its record raised" in json.loads(EventFormatter().format(record))["payload"]["problem"]

    def test_strict_raises(self, lines: Lines, logger: logging.Logger) -> None:
        with pytest.raises(TypeError, match="object"):
            logger.info("hi", extra={"what": object()})

    def test_below_the_threshold_nothing_is_put_together(self, lines: Lines, logger: logging.Logger) -> None:
        use_output(lines, 40, strict=True)
        logger.info("%s", Hostile())

        assert lines.written == []

    def test_a_filter_is_asked(self, lines: Lines, logger: logging.Logger) -> None:
        logger.handlers[0].addFilter(lambda record: record.getMessage() != "no")
        logger.info("no")
        logger.info("yes")

        assert lines.take().payload["message"] == "yes"


class TestLoops:
    def test_what_an_output_logs_while_it_writes_is_left_out_and_counted(
        self, lines: Lines, logger: logging.Logger
    ) -> None:
        lines.act = lambda: logger.warning("the library of an output")
        logger.info("hi")

        (handler,) = logger.handlers
        assert isinstance(handler, EventHandler)
        assert handler.looped == 1
        assert lines.take().payload["message"] == "hi"

    def test_an_event_of_a_balog_logger_ends_too(self, lines: Lines, logger: logging.Logger) -> None:
        lines.act = lambda: logger.warning("the library of an output")
        balog.get_logger("a").info("hi")

        assert [event.payload["message"] for event in lines.events] == ["the library of an output", "hi"]

    def test_what_a_sink_s_own_thread_logs_is_left_out(self, lines: Lines, logger: logging.Logger) -> None:
        thread = threading.Thread(target=logger.info, args=("POST 200",), name="balog sink webhook")
        thread.start()
        thread.join()

        assert lines.written == []

    def test_other_threads_log_while_one_is_writing(self, lines: Lines, logger: logging.Logger) -> None:
        def from_another_thread() -> None:
            lines.act = None
            thread = threading.Thread(target=logger.info, args=("other",))
            thread.start()
            thread.join(10)
            assert not thread.is_alive()

        lines.act = from_another_thread
        logger.info("one")

        assert [event.payload["message"] for event in lines.events] == ["other", "one"]


class TestEventFormatter:
    def formatted(self, formatter: logging.Formatter) -> str:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        logger = logging.Logger("a.b")
        logger.addHandler(handler)
        logger.warning("hi %s", 1, extra={"rows": 3})
        (line,) = stream.getvalue().splitlines()
        return line

    def test_gives_the_event_in_one_line(self, lines: Lines) -> None:
        event = decode(self.formatted(EventFormatter()))

        assert (event.header.channel, event.level) == ("a.b", "WARNING")
        assert read(event) == LogPayload(message="hi 1", severity="WARNING", logger="a.b", fields={"rows": 3})
        assert lines.written == []

    def test_gives_a_log_message_if_asked(self, lines: Lines) -> None:
        message = json.loads(self.formatted(EventFormatter("singer", prefix="tap")))

        assert (message["type"], message["level"]) == ("LOG", "WARNING")
        assert message["value"]["header"]["channel"] == "tap.a.b"

    def test_says_the_same_as_the_handler(self, lines: Lines) -> None:
        record = logging.makeLogRecord({"name": "a", "levelno": 30, "msg": "hi", "rows": 3, "created": 1e9})
        EventHandler().handle(copy.copy(record))
        written, formatted = json.loads(lines.written[0][1]), json.loads(EventFormatter().format(record))
        written["header"].pop("id"), formatted["header"].pop("id")

        assert formatted == written

    def test_gives_an_event_as_it_is(self, lines: Lines) -> None:
        record = logging.makeLogRecord({"name": "a", "levelno": 20, "msg": encode(EVENT).decode()})

        assert EventFormatter().format(record) == encode(EVENT).decode()

    def test_refuses_another_format_in_one_line(self) -> None:
        with pytest.raises(ConfigError, match=r"no format '%\(message\)s'; there are json, singer"):
            EventFormatter("%(message)s")


@pytest.mark.usefixtures("untouched")
class TestConfigs:
    def test_dict_config_with_classes(self, lines: Lines, tmp_path: Path) -> None:
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "formatters": {"events": {"class": "balog.log.stdlib.EventFormatter", "format": "singer"}},
                "handlers": {
                    "events": {"class": "balog.log.stdlib.EventHandler", "level": "WARNING", "prefix": "tap"},
                    "file": {
                        "class": "logging.FileHandler",
                        "filename": str(tmp_path / "a.log"),
                        "formatter": "events",
                    },
                },
                "loggers": {"configured": {"handlers": ["events", "file"], "level": "INFO", "propagate": False}},
            }
        )
        logger = logging.getLogger("configured.one")
        logger.info("to the file")
        logger.warning("to both")
        for handler in logging.getLogger("configured").handlers[:]:
            handler.close()
            logging.getLogger("configured").removeHandler(handler)

        assert lines.take().header.channel == "tap.configured.one"
        messages = [json.loads(line) for line in (tmp_path / "a.log").read_text().splitlines()]
        assert [message["value"]["payload"]["message"] for message in messages] == ["to the file", "to both"]

    def test_dict_config_with_factories(self, lines: Lines) -> None:
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "formatters": {"events": {"()": "balog.log.stdlib.EventFormatter", "fmt": "json"}},
                "handlers": {"events": {"()": "balog.log.stdlib.EventHandler"}},
                "loggers": {"configured": {"handlers": ["events"], "level": "INFO", "propagate": False}},
            }
        )
        logging.getLogger("configured").info("hi")
        logging.getLogger("configured").handlers.clear()

        assert lines.take().header.channel == "configured"

    def test_file_config(self, lines: Lines, tmp_path: Path) -> None:
        path = tmp_path / "logging.conf"
        path.write_text(
            "[loggers]\nkeys=root\n[handlers]\nkeys=events,text\n[formatters]\nkeys=events\n"
            "[logger_root]\nlevel=INFO\nhandlers=events,text\n"
            "[handler_events]\nclass=balog.log.stdlib.EventHandler\nargs=()\nkwargs={'prefix': 'tap'}\n"
            f"[handler_text]\nclass=FileHandler\nformatter=events\nargs=({str(tmp_path / 'a.log')!r},)\n"
            "[formatter_events]\nclass=balog.log.stdlib.EventFormatter\nformat=singer\n"
        )
        logging.config.fileConfig(path, disable_existing_loggers=False)
        logging.getLogger("a").info("hi")
        logging.getLogger().handlers[1].close()

        assert lines.take().header.channel == "tap.a"
        assert json.loads((tmp_path / "a.log").read_text())["type"] == "LOG"


@pytest.mark.usefixtures("untouched")
class TestInstall:
    def test_takes_every_library_s_lines_and_warnings_until_it_is_undone(self, lines: Lines) -> None:
        root = logging.getLogger()
        before = root.handlers[:], root.level, sys.excepthook, warnings.showwarning
        with handlers.install("DEBUG"):
            logging.getLogger("library").debug("hi")
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn("careful", stacklevel=1)
            assert [type(handler) for handler in root.handlers] == [EventHandler]

        assert [event.payload["message"] for event in lines.events] == ["hi", "careful"]
        assert (sorted(root.handlers, key=id), root.level) == (sorted(before[0], key=id), before[1])
        assert (sys.excepthook, warnings.showwarning) == before[2:]

    def test_twice_is_once(self, lines: Lines) -> None:
        with handlers.install(), handlers.install():
            logging.getLogger("library").info("hi")
            warnings.showwarning("careful", UserWarning, "f", 1)

        assert [event.payload["message"] for event in lines.events] == ["hi", "careful"]

    def test_the_inner_one_undone_leaves_the_outer_one(self, lines: Lines) -> None:
        with handlers.install():
            with handlers.install():
                pass
            logging.getLogger("library").info("hi")
            warnings.showwarning("careful", UserWarning, "f", 1)

        assert len(lines.events) == 2

    def test_other_handlers_stay_if_asked(self, lines: Lines) -> None:
        other = logging.StreamHandler(io.StringIO())
        logging.getLogger().addHandler(other)
        with handlers.install(replace=False):
            assert other in logging.getLogger().handlers

    def test_singer_python_s_own_config_leaves_it_there(self, lines: Lines, tmp_path: Path) -> None:
        (tmp_path / "singer").mkdir()
        own, mine = tmp_path / "singer" / "logging.conf", tmp_path / "mine.conf"
        for path in (own, mine):
            path.write_text(
                "[loggers]\nkeys=root\n[handlers]\nkeys=\n[formatters]\nkeys=\n[logger_root]\nlevel=INFO\nhandlers=\n"
            )
        with handlers.install():
            logging.config.fileConfig(str(own), disable_existing_loggers=False)
            assert [type(handler) for handler in logging.getLogger().handlers] == [EventHandler]
            logging.config.fileConfig(mine, disable_existing_loggers=False)
            assert logging.getLogger().handlers == []


@pytest.mark.usefixtures("untouched")
class TestWarnings:
    def test_a_warning_is_an_event_with_its_place(self, lines: Lines) -> None:
        with handlers.capture_warnings():
            warnings.showwarning(DeprecationWarning("old"), DeprecationWarning, "a.py", 3)

        event = lines.take()
        assert (event.header.channel, event.level) == ("py.warnings", "WARNING")
        assert event.payload["message"] == "old"
        assert event.payload["fields"] == {"category": "DeprecationWarning", "file": "a.py", "line": 3}

    def test_a_hook_of_somebody_else_runs_afterwards(self, lines: Lines) -> None:
        seen = []
        warnings.showwarning = lambda *args: seen.append(args[0])  # type: ignore[assignment]
        with handlers.capture_warnings():
            warnings.showwarning("careful", UserWarning, "a.py", 3)

        assert (len(lines.events), seen) == (1, ["careful"])

    def test_one_for_a_file_is_written_there(self, lines: Lines) -> None:
        seen: list[Any] = []
        warnings.showwarning = lambda *args: seen.append(args[4])  # type: ignore[assignment]
        stream = io.StringIO()
        with handlers.capture_warnings():
            warnings.showwarning("careful", UserWarning, "a.py", 3, stream)

        assert seen == [stream]
        assert lines.written == []

    def test_a_warning_while_one_is_written_does_not_come_back(self, lines: Lines) -> None:
        lines.act = lambda: warnings.showwarning("again", UserWarning, "a.py", 3)
        warnings.showwarning = lambda *args: None  # type: ignore[assignment]
        with handlers.capture_warnings():
            warnings.showwarning("careful", UserWarning, "a.py", 3)

        assert len(lines.events) == 1

    def test_a_hook_put_over_it_goes_on_when_it_is_undone(self, lines: Lines) -> None:
        seen = []
        warnings.showwarning = lambda *args: seen.append(args[0])  # type: ignore[assignment]
        captured = handlers.capture_warnings()
        ours = warnings.showwarning
        warnings.showwarning = lambda *args: ours(*args)  # type: ignore[assignment]
        captured.close()
        warnings.showwarning("careful", UserWarning, "a.py", 3)

        assert (lines.written, seen) == ([], ["careful"])


UNCAUGHT = """
import sys, threading
import balog
from balog.log.stdlib import install
balog.configure(output={output!r}, redact=False, application="app")
install()
{code}
"""


class TestUncaught:
    def ran(self, code: str, output: str = "stderr") -> "subprocess.CompletedProcess[str]":
        return run_python(UNCAUGHT.format(output=output, code=code), check=False)

    def events(self, done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
        return [json.loads(line) for line in done.stderr.splitlines()]

    def test_each_is_one_event_and_no_traceback_besides(self) -> None:
        code = (
            "class D:\n    def __del__(self): raise KeyError('k')\nD()\n"
            "t = threading.Thread(target=lambda: 1 / 0, name='w'); t.start(); t.join()\nraise ValueError('bad')"
        )
        done = self.ran(code)

        assert done.returncode == 1
        ignored, thread, event = self.events(done)
        assert (ignored["header"]["level"], ignored["payload"]["fields"]["where"]) == ("ERROR", "unraisable")
        assert (thread["header"]["context"]["thread"], thread["payload"]["fields"]["where"]) == ("w", "thread")
        assert (event["header"]["channel"], event["header"]["level"]) == ("app.uncaught", "CRITICAL")
        assert event["payload"]["message"] == "uncaught ValueError: bad"
        assert event["payload"]["exception"]["type"] == "ValueError"
        assert event["payload"]["exc_text"].startswith("Traceback")

    def test_in_asyncio_through_the_root_logger(self) -> None:
        code = (
            "import asyncio, gc\n"
            "async def fail(): raise ValueError('bad')\n"
            "async def main():\n    t = asyncio.create_task(fail())\n"
            "    await asyncio.sleep(0)\n    del t\n    gc.collect()\n"
            "asyncio.run(main())"
        )
        (event,) = self.events(self.ran(code))

        assert event["header"]["channel"] == "asyncio"
        assert event["payload"]["exception"]["message"] == "bad"

    def test_when_only_a_file_has_it_python_prints_it_as_ever(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        done = self.ran("raise ValueError('bad')", f"file:{path}")

        assert done.stderr.endswith("ValueError: bad\n")
        assert json.loads(path.read_text())["payload"]["message"] == "uncaught ValueError: bad"

    def test_ctrl_c_and_an_exit_in_a_thread_are_no_events(self) -> None:
        code = "t = threading.Thread(target=sys.exit); t.start(); t.join(); raise KeyboardInterrupt"
        done = self.ran(code)

        assert done.stderr.startswith("Traceback")
        assert done.stderr.rstrip().endswith("KeyboardInterrupt")
        assert "{" not in done.stderr

    def test_a_hook_of_somebody_else_runs_afterwards(self) -> None:
        code = (
            "from balog.log.stdlib import capture_uncaught\n"
            "sys.excepthook = lambda *args: print('other hook', args[1])\ncapture_uncaught()\nraise ValueError('bad')"
        )
        done = run_python(UNCAUGHT.format(output="stderr", code=code).replace("install()", ""), check=False)

        assert done.stdout == "other hook bad\n"
        assert len(self.events(done)) == 1

    def test_a_process_without_a_stderr_does_not_mind(self) -> None:
        done = self.ran("sys.stderr = None\nraise ValueError('bad')")

        assert done.returncode == 1

    @pytest.mark.usefixtures("untouched")
    def test_it_is_undone_with_the_hooks_that_were_there(self) -> None:
        before = sys.excepthook, threading.excepthook, sys.unraisablehook
        handlers.capture_uncaught().close()

        assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == before


@pytest.mark.parametrize("make", [EventHandler, EventFormatter])
def test_a_prefix_that_is_no_text_is_refused(make: Any) -> None:
    """The first record would be too late."""
    with pytest.raises(ConfigError, match="prefix is int; expected a text"):
        make(prefix=5)
