import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from hypothesis import example, given
from hypothesis import strategies as st

from balog import get_logger
from balog.common.redaction import Redactor
from balog.event import Event, encode
from balog.log import configuration, metrics
from balog.log.context import ProcessContext
from balog.log.logger import emit
from balog.log.metrics import Counter
from balog.log.outputs import LogOutput
from balog.log.recorder import OutputRoute, Recorder
from balog.log.stdlib import EventHandler
from tests.stand_ins.log_outputs import Lines, recording, use_output
from tests.waiting import run_threads


class Broken(LogOutput):
    def write(self, level: str, event: bytes) -> None:
        raise OSError("the disk is full")


@pytest.fixture
def kept() -> Lines:
    """The one output of the process."""
    made = Lines()
    use_output(made)
    return made


def record(*routes: OutputRoute, **options: Any) -> Recorder:
    made = Recorder(routes, ProcessContext("test"), **options)
    configuration.state.swap(made)
    return made


class HostileList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no items")

    __len__ = __iter__


class HostileTuple(tuple[Any, ...]):
    __slots__ = ()

    def __iter__(self) -> Any:
        raise RuntimeError("no items")

    __len__ = __iter__


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items")

    def get(self, *_: Any) -> Any:
        raise RuntimeError("no items")

    __getitem__ = __len__ = __contains__ = items


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (HostileList([1, "password=geheim"]), [1, "password=[redacted]"]),
        (HostileTuple([1, "password=geheim"]), [1, "password=[redacted]"]),
        (HostileDict(rows=1, password="geheim"), {"rows": 1, "password": "[redacted]"}),
        (HostileDict(name="password", value="geheim"), {"name": "password", "value": "[redacted]"}),
        ([HostileList(["password", "geheim"])], [["password", "[redacted]"]]),
        ({"rows": [HostileDict(a=1)]}, {"rows": [{"a": 1}]}),
    ],
    ids=["list", "tuple", "dict", "name and value", "pair", "inside"],
)
def test_a_container_whose_methods_raise_loses_no_event_and_no_secret(value: Any, written: Any) -> None:
    kept = Lines()
    made = use_output(kept, redactor=Redactor())

    get_logger("tap").info("state", payload={"cls_type": "state", "value": value})
    get_logger("tap").info("state", value=value)
    get_logger("tap").bind(value=value).info("state")

    assert [event.payload.get("value") for event in kept.events[:1]] == [written]
    assert kept.events[1].payload["fields"] == {"value": written}
    assert kept.events[2].header.context["value"] == written
    assert made.lost == 0


SECRET = "hunter2-and-more"
URL = f"https://user:{SECRET}@host/path"


class TestSecretsInChannels:
    @pytest.fixture(autouse=True)
    def redacted(self, kept: Lines) -> None:
        configuration.state.current().redact_with(Redactor())

    def test_they_are_taken_out_whoever_chose_the_name(self, kept: Lines) -> None:
        get_logger(f"password={SECRET}").info("x")
        get_logger("a").info(URL, payload={"cls_type": "x"})
        get_logger("a").info("x", channel=URL)
        emit("INFO", URL, {"cls_type": "x"})
        Counter("rows", channel=URL).increment(0.5)
        metrics.flush()
        event = Event.new(URL, {"cls_type": "x"})
        logger = logging.Logger(f"token={SECRET}")
        logger.addHandler(EventHandler())
        logger.warning("x")
        logger.warning("%s", encode(event).decode())

        assert len(kept.events) == 7
        assert all("[redacted]" in name and SECRET not in name for name in kept.channels)

    def test_a_long_name_is_still_one_that_a_header_takes(self, kept: Lines) -> None:
        emit("INFO", "token=abcdef " * 90, {"cls_type": "x"})

        assert len(kept.channels[0]) == 1000
        assert "abcdef" not in kept.channels[0]

    def test_they_are_taken_out_where_a_processor_put_them(self, kept: Lines) -> None:
        processors = [lambda logger, method, data: {**data, "channel": URL}]
        use_output(kept, redactor=Redactor(), processors=processors)
        get_logger("a").info("x")

        assert kept.channels == ["https://[redacted]@host/path"]

    def test_they_are_taken_out_of_a_thread_s_name(self, kept: Lines) -> None:
        thread = threading.Thread(target=get_logger("a").info, args=("x",), name=f"sync {URL}")
        thread.start()
        thread.join()

        assert kept.events[0].header.context["thread"] == "sync https://[redacted]@host/path"


@pytest.mark.parametrize("channel", [b"bytes", 7, ["a"], None])
def test_a_channel_that_is_no_text_is_written_as_one(kept: Lines, channel: Any) -> None:
    emit("INFO", channel, {"cls_type": "x"})

    assert kept.channels == [str(channel)]


class TestLanes:
    @pytest.mark.parametrize("position", [0, 1])
    def test_one_that_fails_keeps_nothing_from_the_others(
        self, position: int, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kept = Lines()
        routes = [OutputRoute("kept", kept)]
        routes.insert(position, OutputRoute("broken", Broken()))
        recorder = record(*routes)
        for _ in range(3):
            get_logger("a").info("x")

        assert kept.channels == ["a"] * 3
        assert recorder.lost == 3
        assert recorder.flush() == 3
        assert capsys.readouterr().err == (
            "balog: output broken: OSError: the disk is full; rejected events are counted\n"
        )

    def test_a_filter_that_raises_keeps_nothing_from_the_others(self) -> None:
        def refuse(event: Event) -> bool:
            raise RuntimeError("no")

        kept = Lines()
        recorder = record(OutputRoute("odd", Lines(), 0, refuse), OutputRoute("kept", kept))
        get_logger("a").info("x")

        assert kept.channels == ["a"]
        assert recorder.lost == 1

    @pytest.mark.parametrize("also", [[], [OutputRoute("kept", Lines())]])
    def test_strict_raises_what_an_output_raises(self, also: list[OutputRoute]) -> None:
        record(OutputRoute("broken", Broken()), *also, strict=True)
        with pytest.raises(OSError, match="the disk is full"):
            get_logger("a").info("x")

    def test_without_outputs_nothing_is_made(self) -> None:
        record()
        assert not get_logger("a").is_enabled_for("CRITICAL")
        get_logger("a").critical("x", payload={"x": pytest})

    def test_threads_count_exactly(self) -> None:
        recorder = record(OutputRoute("broken", Broken()))
        run_threads(*[lambda: [get_logger("a").info("x") for _ in range(500)]] * 4)

        assert recorder.lost == 2000


def test_what_had_to_be_changed_is_counted(kept: Lines) -> None:
    recorder = configuration.state.current()
    get_logger("a").info("x", payload={"x": object()})
    get_logger("a").info("x", payload={"x": float("nan")})
    get_logger("a").info("x", payload={"x": 1})

    assert (recorder.problems, recorder.lost) == (2, 0)
    assert [bool(event.payload.get("problem")) for event in kept.events] == [True, True, False]


class TestProcessors:
    def logged(self, *processors: Callable[..., Any], strict: bool = False) -> Lines:
        kept = Lines()
        use_output(kept, processors=processors, strict=strict)
        get_logger("a").bind(bound=1).info("hi", rows=3)
        get_logger("a").info("done", payload={"rows": 3})
        return kept

    def test_they_see_the_call_as_one_dict_and_may_change_all_of_it(self) -> None:
        seen = []

        def change(logger: Any, method: str, data: dict[str, Any]) -> dict[str, Any]:
            seen.append((method, data["event"], data["channel"], data["level"], data["payload"], data["context"]))
            return {**data, "channel": "b", "context": {**data["context"], "more": 2}, "field": 7}

        first, second = self.logged(change).events

        assert seen == [
            ("info", "hi", "a", "INFO", None, {"bound": 1}),
            ("info", "done", "a.done", "INFO", {"rows": 3}, {}),
        ]
        assert first.header.channel == "b"
        assert first.header.context.items() >= {"bound": 1, "more": 2}.items()
        assert first.payload["fields"] == {"rows": 3, "field": 7}
        assert second.payload == {"rows": 3, "field": 7}

    def test_drop_event_drops_it(self) -> None:
        def drop(*_: Any) -> Any:
            raise structlog.DropEvent

        assert self.logged(drop).events == []

    def test_one_that_raises_is_passed_over_and_the_event_says_so(self) -> None:
        def refuse(*_: Any) -> Any:
            raise RuntimeError("no")

        first, second = self.logged(refuse, lambda logger, method, data: {**data, "after": 1}).events

        assert first.payload["problem"] == second.payload["problem"] == "a processor raised RuntimeError: no"
        assert configuration.state.current().problems == 2
        assert first.payload["fields"] == {"rows": 3, "after": 1}
        assert second.payload["rows"] == 3

    def test_strict_raises_what_one_raises(self) -> None:
        def refuse(*_: Any) -> Any:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError):
            self.logged(refuse, strict=True)

    def test_one_that_spoils_the_dict_and_then_raises_spoils_nothing_else(self) -> None:
        def spoil(logger: Any, method: str, data: dict[str, Any]) -> Any:
            data.clear()
            raise RuntimeError("no")

        first, _ = self.logged(spoil).events
        assert first.payload["message"] == "hi"

    def test_structlog_s_own_can_be_used(self) -> None:
        first, _ = self.logged(structlog.processors.CallsiteParameterAdder(), structlog.stdlib.add_log_level).events
        assert first.level == "INFO"
        assert first.payload["fields"].keys() >= {"rows", "lineno", "func_name"}


junk = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.binary() | st.builds(object) | st.just(len),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["event", "channel", "level", "payload", "context", "more", "exc_info"]


@given(steps=st.lists(st.tuples(st.sampled_from(["set", "drop", "give", "raise"]), st.sampled_from(KEYS), junk)))
@example(steps=[("set", "level", False)])
def test_whatever_processors_do_one_valid_event_comes_out(steps: list[tuple[str, str, Any]]) -> None:
    def processor(step: tuple[str, str, Any]) -> Callable[..., Any]:
        kind, key, value = step

        def process(logger: Any, method: str, data: dict[str, Any]) -> Any:
            if kind == "set":
                data[key] = value
            elif kind == "drop":
                data.pop(key, None)
            elif kind == "give":
                return value
            else:
                raise ValueError(value)
            return data

        return process

    kept = Lines()
    with recording(kept, processors=[processor(step) for step in steps]) as recorder:
        get_logger("a").info("hi", rows=3)

    assert recorder.lost == 0
    (event,) = kept.events
    assert event.level == "INFO"
    assert event.payload is not None


class TestEmit:
    def test_it_writes_one_event_at_the_time_that_is_said(self, kept: Lines) -> None:
        emit("WARNING", "metrics.rows", {"n": 1}, context={"stream": "users"}, nanoseconds=1_700_000_000_123_456_789)
        (event,) = kept.events

        assert (event.level, event.header.channel, event.payload) == ("WARNING", "metrics.rows", {"n": 1})
        assert event.header.timestamp.isoformat() == "2023-11-14T22:13:20.123456+00:00"
        assert event.header.context["stream"] == "users"

    def test_a_dict_that_changes_between_two_calls_is_written_as_it_is_then(self, kept: Lines) -> None:
        context = {"run_id": "one"}
        emit("INFO", "a", {}, context=context)
        context["run_id"] = "two"
        emit("INFO", "a", {}, context=context)

        assert [event.header.context["run_id"] for event in kept.events] == ["one", "two"]

    def test_below_the_level_nothing_is_made(self) -> None:
        record(OutputRoute("kept", Lines(), 30), strict=True)
        emit("INFO", "a", {"x": object()})

    def test_what_cannot_be_encoded_is_written_as_well_as_it_can_be(self, kept: Lines) -> None:
        emit("INFO", "a", object(), context={"x": object()})

        assert kept.events[0].payload["problem"]


@pytest.mark.parametrize(("level", "written"), [("error", "ERROR"), (35, "WARNING"), (None, "INFO"), ([], "INFO")])
def test_a_level_in_any_form_is_no_reason_to_raise(kept: Lines, level: Any, written: str) -> None:
    emit(level, "a", {"cls_type": "x"})
    get_logger("a").log(level, "x")

    assert [event.level for event in kept.events] == [written, written]
