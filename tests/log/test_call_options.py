"""Keywords of a logging call that are not fields: ``lazy``, ``stack_info``, ``extra``, ``stacklevel``."""

import inspect
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

import balog
from balog.log.stdlib import install
from balog.testing import Events, capture_events


class TestLazy:
    def test_callables_become_fields(self, events: Events) -> None:
        """A dict of callables, of which some may be plain values, or one callable that returns a dict."""
        log = balog.get_logger("a")
        log.info("hi", lazy={"rows": lambda: 3, "plain": 4}, stream="users")
        log.info("hi", lazy=lambda: {"rows": 3, "plain": 4}, stream="users")

        assert [event.payload["fields"] for event in events] == [{"stream": "users", "rows": 3, "plain": 4}] * 2

    def test_they_join_a_payload(self, events: Events) -> None:
        """As other fields do; the payload's own keys win."""
        balog.get_logger("a").info("done", payload={"rows": 1}, lazy={"rows": lambda: 2, "more": lambda: 3})

        assert events.one().payload == {"rows": 1, "more": 3}

    def test_they_are_called_only_for_an_event_that_is_written(self) -> None:
        """Not when the level is off, for all channels or for one."""
        calls: list[str] = []
        lazy = {"rows": lambda: calls.append("called")}
        balog.configure("stderr", levels={"quiet": "ERROR"})
        balog.get_logger("a").debug("hi", lazy=lazy)
        balog.get_logger("quiet").info("hi", lazy=lazy)
        assert calls == []
        balog.get_logger("a").info("hi", lazy=lazy)
        assert calls == ["called"]

    def test_one_that_raises_costs_itself_only(self) -> None:
        """The event names it."""

        def fail() -> Any:
            raise KeyError("k")

        with capture_events(strict=False) as events:
            balog.get_logger("a").info("hi", lazy={"bad": fail, "good": lambda: 1})
            balog.get_logger("a").info("hi", lazy=fail, more=2)
            balog.get_logger("a").info("hi", lazy=lambda: 5, more=2)

        assert [event.payload["fields"] for event in events] == [{"good": 1}, {"more": 2}, {"more": 2}]
        assert events[0].payload["problem"] == "lazy bad raised KeyError: 'k'"
        assert all("lazy raised" in event.payload["problem"] for event in events[1:])

    def test_strict_raises(self, events: Events) -> None:
        """For tests of the program."""
        with pytest.raises(ZeroDivisionError):
            balog.get_logger("a").info("hi", lazy={"bad": lambda: 1 / 0})

    def test_any_other_value_is_a_field(self, events: Events) -> None:
        """A program may have a field of that name."""
        balog.get_logger("a").info("hi", lazy=True)

        assert events.one().payload["fields"] == {"lazy": True}


class TestStack:
    def test_it_is_the_caller_s_as_structlog_and_logging_write_it(self, events: Events) -> None:
        """structlog's processor, called in the same place, is the oracle."""
        expected = structlog.processors.StackInfoRenderer()(None, "", {"stack_info": True})["stack"]
        balog.get_logger("a").info("hi", stack_info=True)
        found = events.one().payload["fields"]["stack_info"]

        assert found.splitlines()[:-2] == expected.splitlines()[-len(found.splitlines()) :][:-2] or (
            found.splitlines()[-2].split(",")[0] == expected.splitlines()[-2].split(",")[0]
        )
        assert found.endswith('balog.get_logger("a").info("hi", stack_info=True)')
        assert found.startswith("Stack (most recent call last):\n")

    @pytest.mark.parametrize("nothing", [False, None, 0])
    def test_false_is_no_field(self, events: Events, nothing: Any) -> None:
        """As in the standard library."""
        balog.get_logger("a").info("hi", stack_info=nothing)

        assert "fields" not in events.one().payload

    def test_a_deep_stack_keeps_its_innermost_frames(self, events: Events) -> None:
        """A recursion does not fill the event."""

        def deeper(left: int) -> None:
            if left:
                deeper(left - 1)
            else:
                balog.get_logger("a").info("hi", stack_info=True)

        deeper(400)
        assert events.one().payload["fields"]["stack_info"].count("File ") <= 100


class TestExtra:
    def test_its_keys_are_fields_and_the_call_s_own_win(self, events: Events) -> None:
        """As the standard library's record has them."""
        balog.get_logger("a").info("hi", extra={"rows": 1, "stream": "users", 5: "five"}, rows=2)

        assert events.one().payload["fields"] == {"rows": 2, "stream": "users", "5": "five"}

    def test_a_payload_in_it_is_the_payload_as_through_the_standard_library(self, events: Events) -> None:
        """The same call on both loggers makes the same event."""
        extra = {"payload": {"cls_type": "job", "rows": 3}, "stream": "users"}
        with install(replace=False):
            logging.getLogger("a").info("done %d", 1, extra=extra)
        balog.get_logger("a").info("done %d", 1, extra=extra)

        first, second = events
        assert first.payload == second.payload == {"cls_type": "job", "rows": 3, "stream": "users", "message": "done 1"}
        assert first.header.channel == second.header.channel == "a"

    def test_beside_a_payload_it_is_fields(self, events: Events) -> None:
        """The call's own payload wins."""
        balog.get_logger("a").info("done", payload={"rows": 1}, extra={"stream": "users", "payload": {"x": 1}})

        assert events.one(channel="a.done").payload == {"rows": 1, "stream": "users", "payload": {"x": 1}}

    def test_any_other_value_is_a_field(self, events: Events) -> None:
        """Nothing is lost."""
        balog.get_logger("a").info("hi", extra=5)

        assert events.one().payload["fields"] == {"extra": 5}


class TestCallsite:
    @pytest.fixture
    def events(self) -> Iterator[Events]:
        with capture_events() as caught:
            balog.configure(callsite=True)
            yield caught

    def test_it_is_off_unless_configured(self) -> None:
        """It costs time."""
        with capture_events() as caught:
            balog.get_logger("a").info("hi")
        assert "callsite" not in caught.one().header.context

    def test_it_is_the_caller_s(self, events: Events) -> None:
        """For every way to call a logger: methods, bound loggers, exceptions, options, coroutines."""
        log = balog.get_logger("a")
        bound = log.bind(one=1).new(two=2)
        calls = [
            lambda: log.info("hi"),
            lambda: bound.warning("hi"),
            lambda: log.exception("hi"),
            lambda: log.log(20, "hi"),
            lambda: log.msg("hi", payload={}, lazy={"x": int}),
            lambda: log.getChild("b").fatal("hi", stack_info=True),
        ]
        for call in calls:
            call()
            assert events[-1].header.context["callsite"] == {
                "file": __file__,
                "line": call.__code__.co_firstlineno,
                "func": "<lambda>",
            }

    def test_it_is_that_of_the_await(self, events: Events) -> None:
        """The frame that waits for the coroutine."""
        import asyncio

        async def act() -> int:
            await balog.get_logger("a").ainfo("hi")
            frame = inspect.currentframe()
            assert frame is not None
            return frame.f_lineno - 3

        line = asyncio.run(act())
        assert events.one().header.context["callsite"] == {"file": __file__, "line": line, "func": "act"}

    def test_the_standard_library_s_records_have_theirs(self, events: Events) -> None:
        """Through the handler."""
        with install(replace=False):
            logging.getLogger("a").info("hi")

        site = events.one().header.context["callsite"]
        assert (site["file"], site["func"]) == (__file__, "test_the_standard_library_s_records_have_theirs")

    def test_stacklevel_skips_frames_of_a_wrapper(self, events: Events) -> None:
        """As in the standard library."""

        def wrapper() -> None:
            balog.get_logger("a").info("hi", stacklevel=2)

        wrapper()
        assert events.one().header.context["callsite"]["func"] == "test_stacklevel_skips_frames_of_a_wrapper"
        assert "fields" not in events.one().payload

    def test_what_the_program_bound_under_that_name_stays(self, events: Events) -> None:
        """Of two, the one nearer to the call wins."""
        balog.get_logger("a").bind(callsite="mine").info("hi")
        with balog.bound(callsite="mine"):
            balog.get_logger("a").info("hi")

        assert [event.header.context["callsite"] for event in events] == ["mine", "mine"]

    def test_bound_values_that_hide_the_process_s_leave_it(self, events: Events) -> None:
        """The joined context has both."""
        balog.get_logger("a").bind(application="other").info("hi")

        context = events.one().header.context
        assert (context["application"], context["callsite"]["file"]) == ("other", __file__)

    def test_processors_see_it(self, events: Events) -> None:
        """In the context that they may change; structlog's own processor finds the same place."""
        seen: list[Any] = []

        def look(logger: Any, method: str, data: dict[str, Any]) -> dict[str, Any]:
            seen.append(data["context"]["callsite"])
            return data

        adder = structlog.processors.CallsiteParameterAdder(
            {structlog.processors.CallsiteParameter.PATHNAME, structlog.processors.CallsiteParameter.LINENO}
        )
        balog.configure(callsite=True, processors=[look, adder])
        balog.get_logger("a").info("hi")

        event = events.one()
        assert seen == [event.header.context["callsite"]]
        assert event.payload["fields"] == {"pathname": seen[0]["file"], "lineno": seen[0]["line"]}


class TestProcessors:
    def set_level(self, level: Any) -> None:
        balog.configure("stderr", level="INFO", processors=[lambda logger, method, data: {**data, "level": level}])

    @pytest.mark.parametrize("level", ["error", "ERROR", 40, "exception"])
    def test_they_change_the_level(self, events: Events, level: Any) -> None:
        """By any name of it, or by its number; the log payload's severity follows."""
        self.set_level(level)
        balog.get_logger("a").info("hi")

        assert (events.one().level, events.one().payload["severity"]) == ("ERROR", "ERROR")

    def test_an_event_whose_new_level_is_off_is_not_written(self, capfd: pytest.CaptureFixture[str]) -> None:
        """The threshold is asked again, and that of the channel."""
        self.set_level("debug")
        balog.get_logger("a").error("hi")
        assert capfd.readouterr().err == ""

    def test_a_call_below_the_threshold_never_reaches_them(self) -> None:
        """They cannot raise what was not made."""
        balog.configure("stderr", level="INFO", processors=[lambda *_: pytest.fail("called")])  # type: ignore[list-item]
        balog.get_logger("a").debug("hi")

    def test_no_level_at_all_leaves_the_call_s(self) -> None:
        """And is reported."""
        with capture_events(strict=False) as events:
            self.set_level("loud")
            balog.get_logger("a").warning("hi")

        assert (events.one().level, events.one().payload["problem"]) == (
            "WARNING",
            "a processor set no level but 'loud'",
        )
