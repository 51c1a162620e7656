"""The logger's methods beside those of structlog's loggers and of the standard library's, called alike."""

import asyncio
import inspect
import io
import logging
import threading
from importlib.metadata import version
from typing import Any

import pytest
import structlog
from semantic_version import Version

import balog
from balog import configure, get_logger
from balog.common.errors import ConfigError
from balog.event import Event
from balog.log import configuration
from balog.log.outputs import LogOutput
from balog.testing import Events

FILTERING = structlog.make_filtering_bound_logger(logging.NOTSET)
OWN = ("bind", "unbind", "try_unbind", "new")
LOGGING = [
    name
    for name in dir(FILTERING)
    if not name.startswith("_")
    and name not in (*OWN, "is_enabled_for", "get_effective_level", "log", "alog", "notset")
    and name != "anotset"
]


class Threads(LogOutput):
    """Remembers which thread wrote."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def write(self, level: str, event: bytes) -> None:
        self.threads.append(threading.get_ident())


@pytest.mark.parametrize("peer", [FILTERING, structlog.stdlib.BoundLogger])
def test_every_public_method_of_structlog_s_loggers_is_there(peer: type) -> None:
    """structlog's own classes are the list."""
    log = balog.get_logger("a")
    names = [name for name in dir(peer) if not name.startswith("_") and name not in ("notset", "anotset")]

    assert [name for name in names if not hasattr(log, name)] == []


@pytest.mark.parametrize("name", LOGGING)
def test_the_methods_log_at_the_level_that_structlog_gives(events: Events, name: str) -> None:
    """structlog's JSON line is the oracle for level, message and fields."""
    if name in ("fatal", "afatal") and Version(version("structlog")) < Version("25.1.0"):
        pytest.skip("this structlog writes fatal as error")
    out = io.StringIO()
    peer = structlog.wrap_logger(
        structlog.WriteLogger(out),
        wrapper_class=FILTERING,
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer(sort_keys=True)],
    )
    for log in (peer, balog.get_logger("a")):
        done = getattr(log, name)("%d rows", 3, stream="users", exc_info=None)
        if inspect.isawaitable(done):
            asyncio.run(_wait(done))

    event = events.one(channel="a")
    written = structlog.processors.JSONRenderer(sort_keys=True)(
        None, "", {"event": event.payload["message"], "level": str(event.level).lower(), **event.payload["fields"]}
    )
    expected = out.getvalue().strip()
    if "exc_info" in expected:
        expected = expected.replace('"exc_info": null, ', "")
    assert written == expected


async def _wait(done: Any) -> None:
    await done


@pytest.mark.parametrize("call", [{"level": 40, "event": "hi"}, {"level": "error", "event": "hi"}])
def test_log_takes_its_arguments_as_keywords_too(events: Events, call: dict[str, Any]) -> None:
    """structlog names them ``level`` and ``event``."""
    balog.get_logger("a").log(**call)
    asyncio.run(balog.get_logger("a").alog(**call))

    assert [(event.level, event.payload["message"]) for event in events] == [("ERROR", "hi")] * 2


class TestAsync:
    def test_the_event_is_made_at_the_call_and_written_in_another_thread(self) -> None:
        """A slow output does not hold the loop, and the context is the caller's."""
        balog.configure("stderr")
        output = configuration.state.current().routes[0].output = Threads()
        asyncio.run(balog.get_logger("a").ainfo("hi"))

        assert output.threads != [threading.get_ident()]
        assert len(output.threads) == 1

    def test_context_thread_and_exception_are_those_of_the_caller(self, events: Events) -> None:
        """As if the call were not async."""

        async def act() -> None:
            with balog.bound(request="r1"):
                try:
                    raise KeyError("k")
                except KeyError:
                    later = balog.get_logger("a").aexception("failed")
            await later

        asyncio.run(act())
        event = events.one(level="ERROR", context={"request": "r1", "thread": threading.current_thread().name})
        assert event.payload["exception"]["type"] == "KeyError"

    def test_events_stay_in_order(self, events: Events) -> None:
        """``await`` returns after the write."""

        async def act() -> None:
            log = balog.get_logger("a")
            for number in range(20):
                await log.ainfo(f"m{number}")
                log.info("between")

        asyncio.run(act())
        assert [event.payload["message"] for event in events][::2] == [f"m{number}" for number in range(20)]

    def test_a_level_that_is_off_costs_no_thread(self) -> None:
        """Nothing is made and nothing is written."""
        balog.configure("stderr", level="ERROR")
        output = configuration.state.current().routes[0].output = Threads()
        asyncio.run(balog.get_logger("a").ainfo("hi"))

        assert output.threads == []

    def test_outside_of_asyncio_the_write_is_immediate(self, events: Events) -> None:
        """Other event loops, such as trio's, run the coroutine by themselves."""
        done = balog.get_logger("a").ainfo("hi")
        with pytest.raises(StopIteration):
            done.send(None)

        assert events.one().payload["message"] == "hi"


class TestStdlib:
    def test_the_levels_agree_with_the_standard_library(self) -> None:
        """The same level set on both, then asked for every level."""
        balog.configure("stderr")
        log, peer = balog.get_logger("surface.levels"), logging.getLogger("surface.levels")
        for level in (logging.DEBUG, logging.WARNING, "ERROR", 50):
            log.setLevel(level)
            peer.setLevel(level)
            assert log.getEffectiveLevel() == log.level == log.get_effective_level() == peer.getEffectiveLevel()
            for asked in (10, 20, 30, 40, 50):
                assert log.isEnabledFor(asked) is log.is_enabled_for(asked) is peer.isEnabledFor(asked)
        log.setLevel(0)
        assert log.getEffectiveLevel() == 20

    def test_names_and_handlers_are_those_of_the_standard_library_s_logger(self) -> None:
        """So a program that asks its logger for them goes on."""
        log, peer = balog.get_logger("surface.peer"), logging.getLogger("surface.peer")
        handler = logging.NullHandler()
        log.addHandler(handler)
        try:
            assert (log.name, log.handlers, log.parent, log.propagate, log.disabled, log.hasHandlers()) == (
                peer.name,
                peer.handlers,
                peer.parent,
                peer.propagate,
                False,
                True,
            )
            record = log.makeRecord("a", 20, "f", 1, "m", (), None)
            log.handle(record)
            log.callHandlers(record)
        finally:
            log.removeHandler(handler)
        assert peer.handlers == []

    def test_a_child_has_the_channel_below_and_the_same_values(self, events: Events) -> None:
        """As ``logging.Logger.getChild``."""
        balog.get_logger("a").bind(one=1).getChild("b.c").info("hi")

        assert events.one(channel="a.b.c").header.context["one"] == 1

    def test_the_caller_is_found(self) -> None:
        """As ``logging.Logger.findCaller`` would find it."""
        frame = inspect.currentframe()
        assert frame is not None
        found = balog.get_logger("a").findCaller(stack_info=True)

        assert found[:3] == (__file__, frame.f_lineno - 2, "test_the_caller_is_found")
        assert str(found[3]).startswith("Stack (most recent call last):\n")

    def test_what_users_of_singer_s_logger_call_works(self, events: Events) -> None:
        """The calls that taps and targets make."""
        log = balog.get_logger("singer")
        log.info("Syncing %s", "users")
        log.warn("%s of %d", "a", 3)
        log.critical("stop")
        log.error("failed", exc_info=ValueError("no"))
        log.log(logging.INFO, "by number")
        log.info("with", extra={"stream": "users"})
        log.info("point", extra={"payload": {"cls_type": "metric"}, "stream": "users"})
        log.debug("state %(n)s", {"n": 1})

        assert [event.level for event in events] == [
            "INFO", "WARNING", "CRITICAL", "ERROR", "INFO", "INFO", "INFO", "DEBUG",
        ]  # fmt: skip
        assert events[5].payload["fields"] == {"stream": "users"}


class TestUnknownLevel:
    @pytest.mark.parametrize("level", ["nope", "OFF", None, object(), [], "🤷"])
    def test_its_event_is_written_at_info_with_a_problem(self, level: Any) -> None:
        """An event is never lost because of its level."""
        events: list[Event] = []
        configure(events.append)
        log = get_logger("a")
        log.log(level, "message", n=1)
        log.log(level, "done", payload={"cls_type": "x"})
        asyncio.run(log.alog(level, "later"))

        assert [event.header.level for event in events] == ["INFO"] * 3
        assert all("no level" in event.payload.get("fields", event.payload)["problem"] for event in events)

    def test_it_raises_if_strict(self) -> None:
        """Before anything is written."""
        configure("stderr", strict=True)
        with pytest.raises(ConfigError, match="no level 'nope'"):
            get_logger("a").log("nope", "x")

    def test_it_counts_as_info(self) -> None:
        """``is_enabled_for`` answers for the level at which the event is written."""
        configure("stderr", level="INFO")
        assert get_logger("a").is_enabled_for("nope")
        configure("stderr", level="WARNING")
        assert not get_logger("a").is_enabled_for("nope")
