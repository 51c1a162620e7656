import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from balog import configure, get_logger, set_level
from balog.event import LEVELS, Level
from balog.log import configuration
from balog.log.context import ProcessContext
from balog.log.levels import OFF
from balog.log.logger import EventLogger
from balog.log.recorder import OutputRoute, Recorder
from tests.stand_ins.log_outputs import Lines


@pytest.fixture
def output() -> Lines:
    made = Lines()
    configuration.state.swap(Recorder([OutputRoute("levels", made, 20, has_own_level=False)], ProcessContext("app")))
    return made


def log_at_all(log: Any) -> None:
    for level in LEVELS:
        getattr(log, level.lower())("done", payload={"rows": 1})


@pytest.mark.parametrize("threshold", [*LEVELS.values(), OFF])
def test_the_methods_of_enabled_levels_log_and_the_others_do_nothing(output: Lines, threshold: int) -> None:
    """Each level is a threshold once, in both directions."""
    for level in (threshold, 10, threshold, OFF, threshold):
        set_level(None, level)
        output.written.clear()
        log_at_all(get_logger("a"))
        assert output.levels == [name for name, number in LEVELS.items() if number >= level]


def test_a_method_that_the_program_keeps_follows_the_level(output: Lines) -> None:
    """``debug = log.debug``, taken while the level is off."""
    debug = get_logger("a").debug
    debug("no", payload={"a": 1})
    set_level(None, "DEBUG")
    debug("yes", payload={"a": 1})
    set_level(None, "INFO")
    debug("no", payload={"a": 1})

    assert output.levels == ["DEBUG"]


def test_a_lower_level_of_one_channel_keeps_the_method(output: Lines) -> None:
    """Other channels stay silent."""
    set_level("noisy.*", "DEBUG")
    get_logger("quiet").debug("no")
    get_logger("noisy").debug("yes")
    get_logger("noisy.child").debug("yes")
    set_level("noisy.*", None)
    get_logger("noisy").debug("no")

    assert output.levels == ["DEBUG"] * 2


def test_an_output_with_a_lower_level_keeps_the_method() -> None:
    """The lowest level of all outputs decides."""
    loud, quiet = Lines(), Lines()
    configuration.state.swap(Recorder([OutputRoute("a", loud, 10), OutputRoute("b", quiet, 40)], ProcessContext("app")))
    log_at_all(get_logger("a"))

    assert loud.levels == list(LEVELS)
    assert quiet.levels == ["ERROR", "CRITICAL"]


@pytest.mark.parametrize("level", ["DEBUG", "ERROR"])
def test_without_a_recorder_the_next_call_configures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, level: Level
) -> None:
    """Every method works before the configuration, also after one that turned it off."""
    configure("stderr", level="OFF")
    configuration.state.swap(None)
    monkeypatch.setenv("BALOG_LEVEL", level)
    monkeypatch.setenv("BALOG_OUTPUT", f"file:{tmp_path}/app.jsonl")
    for name in ("debug", "error"):
        getattr(get_logger("a"), name)("done")
    configuration.flush()

    assert len((tmp_path / "app.jsonl").read_bytes().splitlines()) == (2 if level == "DEBUG" else 1)


@pytest.mark.parametrize("call", [lambda log: log.adebug("no", rows=1), lambda log: log.alog("DEBUG", "no")])
def test_async_methods_of_disabled_levels_do_nothing(output: Lines, call: Callable[[Any], Any]) -> None:
    """They stay coroutines, and follow the level."""
    asyncio.run(call(get_logger("a")))
    set_level(None, "DEBUG")
    asyncio.run(call(get_logger("a")))

    assert output.levels == ["DEBUG"]


def test_methods_of_a_subclass_and_aliases_follow(output: Lines) -> None:
    """``warn`` is ``warning``; a subclass calls ``super()``."""

    class Mine(EventLogger):
        def warning(self, event: Any = "", /, *args: Any, **fields: Any) -> None:
            super().warning(event, *args, **fields)

    log = get_logger("a")
    mine = Mine(log._logger, log._processors, {})
    for level in ("ERROR", "WARNING"):
        set_level(None, level)
        log.warn("x")
        mine.warning("x", rows=1)

    assert output.levels == ["WARNING"] * 2


def test_a_disabled_method_takes_what_an_enabled_one_takes(output: Lines) -> None:
    """No call of an enabled method raises when the level is off."""
    set_level(None, "OFF")
    for name in LEVELS:
        method = getattr(get_logger("a"), name.lower())
        assert method() is None
        assert method("%d", 1, 2, payload={}, channel="c", self=1, event=2, exc_info=True) is None
        inspect.signature(method).bind("x", 1, payload={}, fields={}, args=())

    assert output.levels == []
