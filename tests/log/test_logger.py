import copy
import dataclasses
import enum
import json
import os
import pickle
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import balog
from balog.common.errors import ConfigError
from balog.event import LEVELS, Event, decode
from balog.event.payload import LogPayload, MetricPayload, read
from balog.log import configuration
from balog.log.configuration import configure
from balog.log.logger import EventLogger, get_logger
from balog.log.values.json_values import is_deeper_than
from tests.stand_ins import log_outputs
from tests.stand_ins.programs import run_python

FACILITY = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas" / "facility" / "0.1.0.json").read_bytes())
)


class Lines(log_outputs.Lines):
    """Keeps what was written in place of stderr; its events are valid ones."""

    def configure(self, **settings: Any) -> None:
        """Configure as one does, and put this in the place of stderr."""
        configure("stderr", **settings)
        configuration.state.current().routes[0].output = self

    def write(self, level: str, event: bytes) -> None:
        if threading.current_thread().name not in ("balog metrics", "balog tap"):
            super().write(level, event)  # not numbers of an earlier test, which are due while a long one runs

    @property
    def events(self) -> list[Event]:
        made = super().events
        for event, (level, line) in zip(made, self.written, strict=True):
            assert event.level == level
            FACILITY.validate(msgspec.json.decode(line))
            assert event.payload is not None
        return made


@pytest.fixture
def lines() -> Lines:
    made = Lines()
    made.configure()
    return made


class TestChannel:
    def test_with_a_payload_the_event_is_the_suffix(self, lines: Lines) -> None:
        get_logger("myproj.jobs").info("done", payload={"cls_type": "app.job", "rows": 3})
        event = lines.take()

        assert event.header.channel == "myproj.jobs.done"
        assert event.payload == {"cls_type": "app.job", "rows": 3}

    def test_without_a_payload_the_event_is_the_message(self, lines: Lines) -> None:
        get_logger("myproj.jobs").info("all is well")
        event = lines.take()

        assert event.header.channel == "myproj.jobs"
        assert read(event) == LogPayload(message="all is well", severity="INFO")

    def test_an_empty_payload_is_a_payload(self, lines: Lines) -> None:
        get_logger("a").info("done", payload={})

        event = lines.take()
        assert (event.header.channel, event.payload) == ("a.done", {})

    @pytest.mark.parametrize("payload", [None, {"x": 1}])
    def test_channel_overrides_it_whole(self, lines: Lines, payload: Any) -> None:
        get_logger("a").info("done", payload=payload, channel="other.route")

        assert lines.take().header.channel == "other.route"

    def test_a_payload_without_an_event_goes_to_the_logger_s_own_channel(self, lines: Lines) -> None:
        get_logger("a").info(payload={"x": 1})

        assert lines.take().header.channel == "a"

    def test_a_logger_without_a_name_has_the_suffix_as_channel(self, lines: Lines) -> None:
        get_logger("").info("done", payload={})
        assert lines.take().header.channel == "done"
        get_logger("").info("hi")
        assert lines.take().header.channel == "unnamed"

    @pytest.mark.parametrize("name", [5, None, "\ud800", "x" * 5000, b"bytes"])
    @pytest.mark.parametrize("where", ["name", "suffix", "channel"])
    def test_a_name_of_any_kind_becomes_a_channel(self, lines: Lines, name: Any, where: str) -> None:
        if where == "name":
            get_logger(name).info("x", payload={})
        elif where == "suffix":
            get_logger("a").info(name, payload={})
        else:
            get_logger("a").info("x", payload={}, channel=name)

        assert 1 <= len(lines.take().header.channel) <= 1000

    def test_many_different_suffixes_are_not_kept(self, lines: Lines) -> None:
        log = get_logger("a")
        for number in range(1000):
            log.info(f"message {number}", payload={})

        assert len(log._logger.known) <= 256
        assert lines.events[-1].header.channel == "a.message 999"


class TestMessage:
    def test_fields_go_beside_the_message(self, lines: Lines) -> None:
        get_logger("a").info("hi", rows=3, self="me", event="launch", name="n")

        assert read(lines.take()) == LogPayload(
            message="hi", severity="INFO", fields={"rows": 3, "self": "me", "event": "launch", "name": "n"}
        )

    def test_the_event_may_be_named(self, lines: Lines) -> None:
        get_logger("a").info(event="hi", rows=1)

        assert read(lines.take()) == LogPayload(message="hi", severity="INFO", fields={"rows": 1})

    def test_fields_beside_a_payload_join_it_and_never_hide_what_it_says(self, lines: Lines) -> None:
        get_logger("a").info("done", payload={"rows": 3}, rows=4, more=5)

        assert lines.take().payload == {"rows": 3, "more": 5}

    def test_the_payload_given_is_not_changed(self, lines: Lines) -> None:
        payload = {"rows": 3}
        get_logger("a").info("done", payload=payload, more=5)

        assert payload == {"rows": 3}


class TestHeader:
    def test_it_says_who_when_and_which(self, lines: Lines) -> None:
        before = datetime.now(timezone.utc)
        lines.configure(application="tap-x")
        get_logger("a").warning("hi")
        header = lines.take().header

        assert header.level == "WARNING"
        assert header.composition is False
        assert (
            before <= header.timestamp.replace(microsecond=header.timestamp.microsecond) <= datetime.now(timezone.utc)
        )
        assert header.context == {
            "fqdn": os.uname().nodename,
            "application": "tap-x",
            "process": os.getpid(),
            "run_id": os.environ["BALOG_RUN_ID"],
            "thread": "MainThread",
        }

    @pytest.mark.parametrize(
        ("argv", "application"),
        [
            (["/usr/bin/tap-x", "--config"], "tap-x"),
            (["/site/tap_x/__main__.py"], "tap_x"),
            (["-c"], "python"),
            ([""], "python"),
            ([], "python"),
            (["tap-\udcff"], "tap-?"),
        ],
    )
    def test_the_application_is_the_program_unless_it_is_said(
        self, lines: Lines, monkeypatch: pytest.MonkeyPatch, argv: list[str], application: str
    ) -> None:
        monkeypatch.setattr(sys, "argv", argv)
        lines.configure()
        get_logger("a").info("hi")

        assert lines.take().header.context["application"] == application

    def test_what_is_bound_goes_to_the_context_and_to_nobody_else(self, lines: Lines) -> None:
        base = get_logger("a")
        bound = base.bind(trace_id="t1", stream="users", event="e", payload="p", level="l")
        bound.info("hi", rows=1)
        event = lines.take()

        added = {"trace_id": "t1", "stream": "users", "event": "e", "payload": "p", "level": "l"}
        assert added.items() <= event.header.context.items()
        assert event.payload["fields"] == {"rows": 1}
        base.info("hi")
        assert not added.keys() & lines.take().header.context.keys()

    def test_unbind_and_new_take_it_away(self, lines: Lines) -> None:
        log = get_logger("a").bind(one=1, two=2)
        log.unbind("one").info("hi")
        assert lines.take().header.context.keys() & {"one", "two"} == {"two"}
        log.new(three=3).info("hi")
        assert lines.take().header.context.keys() & {"one", "two", "three"} == {"three"}
        log.info("hi")
        assert lines.take().header.context.keys() & {"one", "two", "three"} == {"one", "two"}

    def test_what_is_bound_may_replace_what_the_process_says(self, lines: Lines) -> None:
        get_logger("a").bind(application="other", process="p-1").info("hi")

        event = lines.take()
        assert (event.header.context["application"], event.header.context["process"]) == ("other", "p-1")
        assert lines.written == []

    def test_what_cannot_be_encoded_is_bound_as_well_as_it_can_be(self, lines: Lines) -> None:
        get_logger("a").bind(thing=object(), text="\ud800").info("hi")

        context = lines.take().header.context
        assert context["thing"].startswith("<object")
        assert context["text"] == "?"
        assert context["process"] == os.getpid()

    def test_a_logger_can_be_copied_and_pickled(self, lines: Lines) -> None:
        log = get_logger("a").bind(one=1)
        log.info("hi")
        lines.take()
        for twin in (copy.copy(log), copy.deepcopy(log), pickle.loads(pickle.dumps(log))):
            twin.info("done", payload={})
            event = lines.take()
            assert (event.header.channel, event.header.context["one"]) == ("a.done", 1)


class TestExceptions:
    def test_exception_writes_the_one_being_handled(self, lines: Lines) -> None:
        try:
            raise ValueError("no rows")
        except ValueError:
            get_logger("a").exception("sync failed", stream="users")
        event = lines.take()

        payload = read(event)
        assert isinstance(payload, LogPayload)
        assert event.level == "ERROR"
        assert payload.exception is not None
        assert (payload.exception.type, payload.exception.message) == ("ValueError", "no rows")
        assert str(payload.exc_text).startswith("Traceback (most recent call last):")
        assert str(payload.exc_text).endswith("ValueError: no rows\n")
        assert payload.fields == {"stream": "users"}

    def test_with_a_payload_the_exception_joins_it(self, lines: Lines) -> None:
        try:
            raise ConfigError("bad")
        except ConfigError:
            get_logger("a").exception("failed", payload={"cls_type": "app.job"})
        event = lines.take()

        assert event.header.channel == "a.failed"
        assert event.cls_type == "app.job"
        exception = event.payload["exception"]
        (frame,) = exception.pop("frames")
        assert exception == {"type": "balog.common.errors.ConfigError", "message": "bad"}
        assert (frame["file"], frame["function"]) == (__file__, "test_with_a_payload_the_exception_joins_it")

    @pytest.mark.parametrize("as_tuple", [False, True])
    def test_exc_info_takes_an_exception_or_a_tuple_at_any_level(self, lines: Lines, as_tuple: bool) -> None:
        error = KeyError("k")
        get_logger("a").info("hi", exc_info=(KeyError, error, None) if as_tuple else error)

        assert lines.take().payload["exception"]["type"] == "KeyError"

    @pytest.mark.parametrize("nothing", [True, False, None, 0, "", "text", (), (None, None, None), ("a", "b"), ("a",)])
    def test_no_exception_is_no_part_of_the_payload(self, lines: Lines, nothing: Any) -> None:
        get_logger("a").error("hi", exc_info=nothing)

        assert read(lines.take()) == LogPayload(message="hi", severity="ERROR")

    def test_exception_outside_of_an_except_block_is_an_error_without_one(self, lines: Lines) -> None:
        get_logger("a").exception("hi")

        event = lines.take()
        assert (event.level, read(event)) == ("ERROR", LogPayload(message="hi", severity="ERROR"))

    def test_an_exception_that_is_false_or_cannot_be_written_is_still_told(self, lines: Lines) -> None:
        class Odd(Exception):
            def __bool__(self) -> bool:
                return False

            def __str__(self) -> str:
                raise RuntimeError("no")

        get_logger("a").error("hi", exc_info=Odd())

        payload = lines.take().payload
        assert payload["exception"]["message"] == "<Odd, whose str raised RuntimeError>"
        assert payload["exc_text"]


class TestConfigure:
    def test_loggers_that_exist_follow(self, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        log = get_logger("a").bind(one=1)
        configure("stderr", level="ERROR")
        log.info("unseen")
        configure("singer", level="DEBUG", application="later")
        log.debug("seen")
        out, err = capsysbinary.readouterr()

        assert err == b""
        message = json.loads(out)
        assert (message["type"], message["level"]) == ("LOG", "DEBUG")
        assert message["value"]["header"]["context"]["application"] == "later"

    def test_a_wrong_variable_is_refused_by_its_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BALOG_OUTPUT", "paper")
        with pytest.raises(ConfigError, match=r"^BALOG_OUTPUT: no output 'paper'"):
            configure()
        configure("stderr")


class TestEnvironment:
    def test_without_it_json_lines_go_to_a_stderr_that_is_no_terminal(self) -> None:
        done = run_python("from balog import get_logger; get_logger('a').info('hi')")

        assert decode(done.stderr.strip()).payload["message"] == "hi"
        assert done.stdout == ""

    def test_a_wrong_variable_costs_one_line_and_nothing_else(self) -> None:
        code = "from balog import get_logger; log = get_logger('a'); log.info('hi'); log.error('bye'); print('done')"
        done = run_python(code, BALOG_OUTPUT="pa\nper", BALOG_LEVEL="error")
        complaint, *events = done.stderr.splitlines()

        assert complaint == (
            r"balog: BALOG_OUTPUT: no output 'pa\nper'; there are console, singer, stderr, logging, "
            "file:PATH, local:PATH?topic=NAME, sqs:REGION?topic=NAME, "
            "kafka:HOST:PORT?topic=NAME, store:PATH?topic=NAME, "
            "https://SERVICE?token_env=NAME&spool=PATH&sync=SECONDS, or a sink's config as an object;"
            " going on with stderr"
        )
        assert [json.loads(line)["payload"]["message"] for line in events] == ["bye"]
        assert done.stdout == "done\n"

    def test_a_wrong_level_leaves_the_output_as_it_was_asked(self) -> None:
        done = run_python(
            "from balog import get_logger; get_logger('a').info('hi')", BALOG_OUTPUT="singer", BALOG_LEVEL="x"
        )

        assert done.stderr.startswith("balog: BALOG_LEVEL: no level 'x'; there are DEBUG, INFO")
        assert json.loads(done.stdout)["type"] == "LOG"

    def test_singer_messages_stand_in_order_with_what_the_tap_prints(self) -> None:
        code = (
            "import sys; from balog import get_logger; log = get_logger('a')\n"
            "for n in range(50):\n"
            '    print(\'{"type": "RECORD", "stream": "s", "record": {"n": %d}}\' % n)\n'
            "    log.info('row', payload={'n': n})\n"
        )
        messages = [json.loads(line) for line in run_python(code, BALOG_OUTPUT="singer").stdout.splitlines()]

        assert [message["type"] for message in messages] == ["RECORD", "LOG"] * 50
        assert [message["record"]["n"] for message in messages[::2]] == list(range(50))
        assert [message["value"]["payload"]["n"] for message in messages[1::2]] == list(range(50))

    @pytest.mark.parametrize(
        "spoil",
        [
            "sys.stdout = sys.stderr = None",
            "sys.stdout.close(); sys.stderr.close()",
            "os.close(1); os.close(2)",
            "sys.stdout = sys.stderr = object()",
            "del sys.stdout, sys.stderr",
            "os.dup2(os.open('/dev/full', os.O_WRONLY), 1); os.dup2(1, 2)",
        ],
    )
    @pytest.mark.parametrize("output", ["singer", "stderr", "console", "nonsense"])
    def test_no_stream_to_write_to_is_no_reason_to_stop(self, tmp_path: Path, spoil: str, output: str) -> None:
        came_through = tmp_path / "came_through"
        code = (
            f"import os, sys, balog.log.logger; {spoil}; log = balog.get_logger('a'); log.info('one')\n"
            f"log.error('two', payload={{}}); open({str(came_through)!r}, 'w').close(); os._exit(0)"
        )
        run_python(code, BALOG_OUTPUT=output)

        assert came_through.exists()

    def test_a_process_without_streams_can_import_and_log(self, tmp_path: Path) -> None:
        came_through = tmp_path / "came_through"
        run_python(
            "import sys; sys.stdout = sys.stderr = None; import balog; balog.get_logger('a').info('x')\n"
            f"open({str(came_through)!r}, 'w').close()"
        )

        assert came_through.exists()


class TestStrict:
    @pytest.fixture(autouse=True)
    def strict(self, lines: Lines) -> None:
        lines.configure(strict=True)

    @pytest.mark.parametrize(
        "payload", [{"x": object()}, [1], "text", {"x": "\ud800"}, object(), msgspec.Raw(b"{oops"), {"x": "y" * 2**22}]
    )
    @pytest.mark.parametrize("fields", [{}, {"more": 1}])
    def test_what_does_not_encode_is_raised(self, lines: Lines, payload: Any, fields: dict[str, Any]) -> None:
        with pytest.raises((TypeError, ValueError)):
            get_logger("a").info("x", payload=payload, **fields)
        assert lines.written == []

    def test_what_is_bound_and_does_not_encode_is_raised(self, lines: Lines) -> None:
        with pytest.raises(TypeError):
            get_logger("a").bind(thing=object()).info("x")

    def test_a_good_event_is_written_as_ever(self, lines: Lines) -> None:
        get_logger("a").info("done", payload={"rows": 1}, more=2)

        assert lines.take().payload == {"rows": 1, "more": 2}


class Colour(enum.Enum):
    RED = "red"


class Job(msgspec.Struct):
    rows: int
    rest: Any = None


class Pair(msgspec.Struct, array_like=True):
    one: int
    two: int


@dataclasses.dataclass
class Order:
    number: int
    rest: Any = None


class Hostile:
    """Raises in whatever one asks it."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __hash__ = __bool__ = __len__ = __repr__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what hypothesis asks for
            raise AttributeError(name)
        raise RuntimeError("no")


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Any:
        raise RuntimeError("no")

    keys = __iter__


def cyclic() -> dict[str, Any]:
    loop: dict[str, Any] = {"n": 1}
    loop["loop"] = loop
    return loop


def deep(levels: int) -> dict[str, Any]:
    value: Any = {}
    for _ in range(levels):
        value = {"d": value}
    return {"deep": value}


NO_NUMBER = "a number that is nan or infinite, null is written"


class TestAnyPayload:
    @pytest.mark.parametrize(
        ("payload", "written"),
        [
            (Job(3), {"rows": 3, "rest": None}),
            (Order(7), {"number": 7, "rest": None}),
            (MetricPayload(type="gauge", metric="m", value=1.5), None),
            (
                {"when": datetime(2026, 1, 2, tzinfo=timezone.utc), "c": Colour.RED},
                {"when": "2026-01-02T00:00:00Z", "c": "red"},
            ),
            ({1: "a", 2.5: "b"}, {"1": "a", "2.5": "b"}),
            ({"b": b"ab", "n": None, "i": 10**40}, {"b": "YWI=", "n": None, "i": 10**40}),
            (msgspec.Raw(b'{"n":1.0}'), {"n": 1.0}),
            (msgspec.Raw(b'{"n":\n1}'), {"n": 1}),
            ({"part": msgspec.Raw(b"[1,\n2]")}, {"part": [1, 2]}),
        ],
    )
    def test_what_has_a_json_form_is_written_in_it(self, lines: Lines, payload: Any, written: Any) -> None:
        get_logger("a").info("x", payload=payload)

        found = lines.take().payload
        assert "problem" not in found
        assert found == (written or msgspec.to_builtins(payload))

    def test_a_pydantic_model_is_written_as_its_data(self, lines: Lines) -> None:
        pydantic = pytest.importorskip("pydantic")
        model = pydantic.create_model("Order", number=(int, ...), when=(datetime, ...), more=(Any, None))
        order = model(number=7, when=datetime(2026, 1, 2, tzinfo=timezone.utc))
        written = {"number": 7, "when": "2026-01-02T00:00:00Z", "more": None}

        get_logger("a").info("x", payload=order)
        assert lines.take().payload == written
        get_logger("a").info("x", payload={"order": order}, extra=1)
        assert lines.take().payload == {"order": written, "extra": 1}
        get_logger("a").info("x", payload=model(number=7, when=order.when, more=object()))
        found = lines.take().payload
        assert found["problem"]
        assert found["number"] == 7

    @pytest.mark.parametrize(
        ("payload", "written", "problem"),
        [
            ([1, 2], {"value": [1, 2]}, "a payload is an object; this one was not"),
            ("text", {"value": "text"}, "a payload is an object; this one was not"),
            (0, {"value": 0}, "a payload is an object; this one was not"),
            (Pair(1, 2), {"value": [1, 2]}, "a payload is an object; this one was not"),
            ({"x": 1j, "y": 1}, {"x": "1j", "y": 1}, "complex has no JSON form, its repr is written, at $.x"),
            (Job(1, 1j), {"rows": 1, "rest": "1j"}, "complex has no JSON form, its repr is written, at $.rest"),
            (Order(1, 1j), {"number": 1, "rest": "1j"}, "complex has no JSON form, its repr is written, at $.rest"),
            ({"n": float("nan"), "b": b"ab"}, {"n": None, "b": "YWI="}, f"{NO_NUMBER}, at $.n"),
            ({"n": [1, {"m": float("-inf")}]}, {"n": [1, {"m": None}]}, f"{NO_NUMBER}, at $.n[1].m"),
            (Order(1, float("inf")), {"number": 1, "rest": None}, f"{NO_NUMBER}, at $.rest"),
            ({None: 1}, {"None": 1}, "a key without a JSON form, its repr is written, at $"),
            ({"x": "\ud800"}, {"x": "?"}, "text with lone surrogates, a question mark is written for each, at $.x"),
            (msgspec.Raw(b"{oops"), {"value": "{oops"}, "Raw that is not JSON, at $"),
            ({"x": msgspec.Raw(b"\n}")}, {"x": "\n}"}, "Raw that is not JSON, at $.x"),
        ],
    )
    @pytest.mark.parametrize("fields", [{}, {"more": 5}])
    def test_what_has_none_is_written_as_well_as_it_can_be_and_says_so(
        self, lines: Lines, payload: Any, written: dict[str, Any], problem: str, fields: dict[str, Any]
    ) -> None:
        get_logger("a").info("x", payload=payload, **fields)

        found = lines.take().payload
        assert found.items() >= (written | fields).items()
        assert found["problem"]
        if not fields:
            assert found["problem"] == problem

    @pytest.mark.parametrize("levels", [190, 250, 400, 900, 100_000])
    @pytest.mark.parametrize("where", ["payload", "field", "bound", "raw"])
    def test_depth_beyond_what_readers_take_is_cut_off(self, lines: Lines, levels: int, where: str) -> None:
        log = get_logger("a")
        if where == "payload":
            log.info("x", payload=deep(levels))
        elif where == "field":
            log.info("x", rest=deep(levels))
        elif where == "bound":
            log.bind(rest=deep(levels)).info("x")
        else:
            log.info("x", payload=msgspec.Raw(b'{"a":' + b"[" * levels + b"]" * levels + b"}"))
        ((_, line),) = lines.written

        assert not is_deeper_than(line, 210)
        assert lines.take().header.channel in ("a", "a.x")

    @pytest.mark.parametrize(
        "payload",
        [
            {"text": "x" * 2**24},
            {"text": "\x00" * 2**22},
            {"many": ["y" * 10_000] * 2000},
            {"k" * 2**23: 1},
            {"rows": list(range(10**6))},
        ],
    )
    def test_size_beyond_what_a_broker_reads_is_cut_off(self, lines: Lines, payload: dict[str, Any]) -> None:
        get_logger("a").bind(big=payload).info("x", payload=payload)
        ((_, line),) = lines.written

        assert len(line) < 8 * 2**20
        event = lines.take()
        assert "left out" in event.payload["problem"]
        assert "left out" in event.header.context["problem"]

    def test_keys_that_are_written_the_same_stay_two_in_payload_and_context(self, lines: Lines) -> None:
        get_logger("a").bind(rows={1: "a", "1": "b"}).info("x", payload={"rows": {1: "a", "1": "b"}})
        event = lines.take()
        assert event.payload["rows"] == event.header.context["rows"] == {"1": "a", "1 2": "b"}
        assert "two keys that are written the same" in event.payload["problem"]
        assert "two keys that are written the same" in event.header.context["problem"]

    def test_a_million_characters_are_written_whole(self, lines: Lines) -> None:
        get_logger("a").info("x", payload={"text": "y" * 10**6})

        assert lines.take().payload == {"text": "y" * 10**6}


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Ll"]))
    | st.binary()
    | st.complex_numbers()
    | st.datetimes()
    | st.timedeltas()
    | st.uuids()
    | st.decimals()
    | st.builds(Hostile)
    | st.builds(HostileDict, a=st.integers())
    | st.sampled_from([Colour.RED, Pair(1, 2), object(), cyclic(), int, ...]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.text() | st.integers() | st.none() | st.floats() | st.tuples(st.integers()), inner, max_size=4
        )
        | st.builds(Job, rows=inner, rest=inner)
        | st.builds(Order, number=inner, rest=inner)
    ),
    max_leaves=12,
)
names = st.text(max_size=8).filter(lambda name: name not in ("payload", "channel", "exc_info"))


@settings(max_examples=500)
@given(
    level=st.sampled_from([name.lower() for name in LEVELS] + ["exception"]),
    event=anything,
    args=st.lists(anything, max_size=2),
    payload=st.none() | anything,
    channel=st.none() | anything,
    exc_info=st.none() | anything | st.just(ValueError("\ud800")),
    fields=st.dictionaries(names, anything, max_size=3),
    bound=st.dictionaries(st.text(max_size=8), anything, max_size=3),
)
def test_whatever_is_passed_gives_one_valid_line_and_never_raises(
    level: str,
    event: Any,
    args: list[Any],
    payload: Any,
    channel: Any,
    exc_info: Any,
    fields: dict[str, Any],
    bound: dict[str, Any],
) -> None:
    lines = Lines()
    lines.configure(level="DEBUG")

    log = get_logger("a").bind(**bound)
    getattr(log, level)(event, *args, payload=payload, channel=channel, exc_info=exc_info, **fields)

    event_written = lines.take()
    assert event_written.level == ("ERROR" if level == "exception" else level.upper())


class TestImport:
    def test_importing_the_package_alone_imports_no_other(self) -> None:
        code = "import sys; before = set(sys.modules); import balog; print(*sys.modules.keys() - before)"
        brought = {name.partition(".")[0] for name in run_python(code).stdout.split()}

        assert brought - set(sys.stdlib_module_names) == {"balog"}
        assert not brought & {"asyncio", "logging", "threading"}

    def test_the_logger_brings_structlog_and_msgspec_and_the_ground_floor(self) -> None:
        code = (
            "import sys, structlog, msgspec; before = set(sys.modules)\n"
            "from balog import Event, configure, get_logger\n"
            "print(*sys.modules.keys() - before)"
        )
        brought = set(run_python(code).stdout.split())

        rooms = {"singer", "broker", "sinks", "topics", "consumers", "analytics", "cli"}
        assert {name.partition(".")[0] for name in brought} == {"balog"}
        assert not {f"balog.{room}" for room in rooms} & brought

    def test_the_broker_starts_without_the_logger(self) -> None:
        done = run_python(
            "import sys, balog.cli.broker; print('structlog' in sys.modules, 'balog.log.logger' in sys.modules)"
        )

        assert done.stdout.split() == ["False", "False"]

    def test_it_leaves_out_what_most_taps_never_use(self) -> None:
        heavy = ["boto3", "pyspark", "pyarrow", "duckdb", "pandas", "jsonschema", "click", "venusian", "sqlite3"]
        heavy += ["sqlglot", "urllib.request", "http", "email", "multiprocessing", "importlib.metadata"]
        heavy += ["opentelemetry", "pydantic", "yaml", "requests"]
        done = run_python(
            f"import sys; from balog import get_logger; print(*[name for name in {heavy!r} if name in sys.modules])"
        )

        assert done.stdout.strip() == ""

    def test_it_hands_out_its_names(self) -> None:
        assert balog.get_logger is get_logger
        assert balog.configure is configure
        assert balog.Event is Event
        assert isinstance(balog.get_logger("a"), EventLogger)
        assert balog.__version__.count(".") == 2
        assert set(balog.__all__) <= set(dir(balog))
        with pytest.raises(AttributeError, match="nothing_here"):
            _ = balog.nothing_here
