import fnmatch
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog import configure, emit, get_logger, set_level
from balog.common.errors import ConfigError
from balog.event import LEVELS, decode
from balog.log import configuration
from balog.log.levels import ChannelLevels, parse_threshold
from balog.log.stdlib import EventHandler
from balog.testing import capture_events

COVERAGE = [
    ({"singer": 30}, "singer", 30),
    ({"singer": 30}, "singer.metrics.http", 30),
    ({"singer": 30}, "singerx", None),
    ({"singer.*": 30}, "singer", 30),
    ({"singer.*": 30}, "singer.metrics", 30),
    ({"singer.*": 30}, "singerx", None),
    ({"singer": 10, "singer.*": 30}, "singer", 10),
    ({"singer": 10, "singer.*": 30}, "singer.metrics", 30),
    ({"*": 40, "tap.*": 30, "tap.http": 10}, "tap.http.retry", 10),
    ({"*": 40, "tap.*": 30, "tap.http": 10}, "tap.db", 30),
    ({"*": 40, "tap.*": 30, "tap.http": 10}, "other", 40),
    ({"tap.http": 10, "tap.*": 30, "*": 40}, "tap.http", 10),
    ({"tap.*": 30, "tap": 10}, "tap.http", 10),
    ({"tap": 10, "tap.*": 30}, "tap.http", 30),
    ({"*.http": 10, "tap.*": 30}, "tap.http", 10),
    ({"a?": 10, "?b": 30}, "ab", 30),
    ({"tap_[ab]": 10}, "tap_b", 10),
    ({"tap_[ab]": 10}, "tap_c", None),
    ({"Tap": 10}, "tap", None),
    ({"a[b": 10}, "a[b", 10),
    ({"a.b": 10}, "axb", None),
    ({"*": 10}, "", 10),
    ({"x\ny": 10}, "x\ny", 10),
]


def logged(path: Path) -> list[tuple[str, str]]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [(str(decode(line).level), decode(line).header.channel) for line in lines]


def enabled(name: str) -> list[str]:
    return [level for level in LEVELS if get_logger(name).is_enabled_for(level)]


class TestChannelLevels:
    @pytest.mark.parametrize(("levels", "channel", "expected"), COVERAGE)
    def test_the_most_specific_pattern_wins(self, levels: dict[str, int], channel: str, expected: int | None) -> None:
        """A channel and CHANNEL.* cover what is below; the longest pattern without its wildcards wins."""
        assert ChannelLevels(levels).of(channel) == expected

    @given(st.text(st.sampled_from("ab.*?[]!-"), max_size=8), st.text(st.sampled_from("ab.*[]\n"), max_size=8))
    def test_a_single_pattern_covers_what_the_shell_s_rule_says(self, pattern: str, channel: str) -> None:
        """fnmatch is the oracle for wildcards of any form."""
        expected = fnmatch.fnmatchcase(channel, pattern) or channel == pattern
        if expected:
            assert ChannelLevels({pattern: 30}).of(channel) == 30

    def test_the_cache_of_channels_is_bounded(self) -> None:
        """A program that makes channels of ids does not fill the memory."""
        levels = ChannelLevels({"a.*": 30})
        assert {levels.of(f"a.{number}") for number in range(5000)} == {30}
        assert len(levels._known) <= 1000

    @pytest.mark.parametrize(("level", "expected"), [("warn", 30), ("off", 100), (25, 25), (1000, 100)])
    def test_thresholds_are_names_or_numbers(self, level: Any, expected: int) -> None:
        """Names in any case, OFF, and the standard library's numbers."""
        assert parse_threshold(level) == expected

    @pytest.mark.parametrize("level", ["", "loud", -1, 0, True, 1.5, None, b"INFO"])
    def test_other_levels_are_refused(self, level: Any) -> None:
        """The error lists the names."""
        with pytest.raises(ConfigError, match="there are DEBUG, INFO, WARNING, ERROR, CRITICAL, OFF"):
            parse_threshold(level)


class TestConfigure:
    def test_events_below_a_channel_s_level_are_not_written(self, tmp_path: Path) -> None:
        """A pattern may raise and lower the general level."""
        configure(f"file:{tmp_path}/a", levels={"singer.*": "WARNING", "tap.http": "DEBUG", "noise": "OFF"})
        for name in ("singer", "tap.http", "other", "noise"):
            log = get_logger(name)
            log.debug("x")
            log.info("x")
            log.warning("x")
            log.critical("x")

        assert logged(tmp_path / "a") == [
            ("WARNING", "singer"),
            ("CRITICAL", "singer"),
            *((level, "tap.http") for level in ("DEBUG", "INFO", "WARNING", "CRITICAL")),
            *((level, "other") for level in ("INFO", "WARNING", "CRITICAL")),
        ]

    def test_the_whole_channel_decides(self, tmp_path: Path) -> None:
        """That of a payload's suffix, and that of ``channel=``."""
        configure(f"file:{tmp_path}/a", levels={"app.db": "ERROR", "other": "DEBUG"})
        log = get_logger("app")
        log.info("db", payload={"a": 1})
        log.info("web", payload={"a": 1})
        log.debug("x", channel="other")
        log.debug("x")

        assert logged(tmp_path / "a") == [("INFO", "app.web"), ("DEBUG", "other")]

    def test_is_enabled_for_knows_the_levels(self, tmp_path: Path) -> None:
        """It answers for the logger's own channel."""
        configure(f"file:{tmp_path}/a", levels={"singer.*": "WARNING", "tap": "DEBUG", "noise": "off"})

        assert enabled("singer.metrics") == ["WARNING", "ERROR", "CRITICAL"]
        assert enabled("tap") == list(LEVELS)
        assert enabled("other") == ["INFO", "WARNING", "ERROR", "CRITICAL"]
        assert enabled("noise") == []

    def test_emit_and_the_standard_library_follow(self, tmp_path: Path) -> None:
        """A level holds for a channel, whatever writes to it; a record that is an event, too."""
        configure(f"file:{tmp_path}/a", levels={"quiet.*": "ERROR", "verbose": "DEBUG"})
        emit("INFO", "quiet.metric", {"a": 1})
        emit("ERROR", "quiet.metric", {"a": 1})
        emit("DEBUG", "verbose", {"a": 1})
        root = logging.Logger("root")
        root.addHandler(EventHandler())
        for name in ("quiet.lib", "verbose", "rest"):
            logger = logging.Logger(name)
            logger.parent = root
            logger.debug("x")
            logger.error("x")
        with capture_events() as events:
            get_logger("quiet").warning("x")
        event = logging.Logger("any")
        event.parent = root
        event.error(events[0])

        assert logged(tmp_path / "a") == [
            ("ERROR", "quiet.metric"),
            ("DEBUG", "verbose"),
            ("ERROR", "quiet.lib"),
            ("DEBUG", "verbose"),
            ("ERROR", "verbose"),
            ("ERROR", "rest"),
        ]

    def test_an_output_s_own_level_applies_in_addition(self, tmp_path: Path) -> None:
        """A channel's level replaces the general one only."""
        configure(
            [f"file:{tmp_path}/a", {"to": f"file:{tmp_path}/b", "level": "ERROR"}],
            level="CRITICAL",
            levels={"loud": "DEBUG", "quiet": "WARNING"},
        )
        for name in ("loud", "quiet", "rest"):
            for level in LEVELS:
                get_logger(name).log(level, "x")

        assert logged(tmp_path / "a") == [
            *((level, "loud") for level in LEVELS),
            *((level, "quiet") for level in ("WARNING", "ERROR", "CRITICAL")),
            ("CRITICAL", "rest"),
        ]
        assert logged(tmp_path / "b") == [
            (level, name) for name in ("loud", "quiet", "rest") for level in ("ERROR", "CRITICAL")
        ]

    @pytest.mark.parametrize(
        ("levels", "reason"),
        [
            ({"a": "loud"}, "configure(levels=…): no level 'loud'; there are DEBUG"),
            ({"": "INFO"}, "configure(levels=…): "),
            ({"a": 7}, "configure(levels=…): "),
            ({7: "INFO"}, "configure(levels=…): "),
            (["a"], "configure(levels=…): "),
        ],
    )
    def test_wrong_levels_are_one_line(self, levels: Any, reason: str) -> None:
        """The earlier configuration stays."""
        configure([])
        before = configuration.state.current()
        with pytest.raises(ConfigError) as refused:
            configure(levels=levels)

        assert str(refused.value).startswith(reason)
        assert "\n" not in str(refused.value)
        assert configuration.state.current() is before


class TestSetLevel:
    def test_existing_loggers_follow_at_once(self, tmp_path: Path) -> None:
        """None restores the configured level."""
        configure(f"file:{tmp_path}/a", levels={"app": "WARNING"})
        log = get_logger("app")
        log.info("1")
        set_level("app", "DEBUG")
        log.debug("2")
        set_level("app.*", logging.ERROR)
        get_logger("app.x").warning("3")
        set_level("app.*", 0)
        set_level("app", None)
        log.info("4")
        log.warning("5")

        assert [decode(line).payload["message"] for line in (tmp_path / "a").read_bytes().splitlines()] == ["2", "5"]

    @pytest.mark.parametrize("name", [None, ""])
    def test_without_a_name_it_sets_the_general_level(self, name: str | None, tmp_path: Path) -> None:
        """Channels with a pattern and outputs with their own level keep theirs."""
        configure([f"file:{tmp_path}/a", {"to": f"file:{tmp_path}/b", "level": "ERROR"}], levels={"b": "ERROR"})
        set_level(name, "DEBUG")
        assert (enabled("a")[0], enabled("b")[0]) == ("DEBUG", "ERROR")
        get_logger("a").debug("x")
        set_level(name, None)
        get_logger("a").debug("x")

        assert logged(tmp_path / "a") == [("DEBUG", "a")]
        assert logged(tmp_path / "b") == []

    def test_the_last_declaration_of_a_pattern_holds(self) -> None:
        """A level that was set before ``configure`` stays, unless the configuration declares it."""
        set_level("a", "DEBUG")
        set_level("b", "DEBUG")
        set_level(None, "ERROR")
        configure([], levels={"b": "ERROR"})
        configure("stderr", levels={"b": "ERROR"})
        assert [enabled(name)[0] for name in "abc"] == ["DEBUG", "ERROR", "ERROR"]
        configure("stderr", level="INFO")
        assert [enabled(name)[0] for name in "abc"] == ["DEBUG", "INFO", "INFO"]

    @pytest.mark.parametrize(("name", "level"), [("a", "loud"), ("a", -5), ("a", True), (7, "INFO"), ("a", 1.5)])
    def test_wrong_arguments_change_nothing(self, name: Any, level: Any) -> None:
        """One line names the function."""
        configure("stderr")
        with pytest.raises(ConfigError, match=r"^set_level\(…\): ") as refused:
            set_level(name, level)
        assert "\n" not in str(refused.value)
        assert enabled("a")[0] == "INFO"

    def test_captured_events_have_every_level(self) -> None:
        """The block's own ``set_level`` ends with the block."""
        configure("stderr", levels={"a": "ERROR"})
        set_level("b", "ERROR")
        with capture_events() as events:
            set_level("c", "OFF")
            for name in "abc":
                get_logger(name).debug("x")
        assert events.channels == ["a", "b", "c"]
        assert [enabled(name)[0] for name in "abc"] == ["ERROR", "ERROR", "INFO"]


class TestThreshold:
    def test_each_change_changes_the_threshold_of_the_process(self) -> None:
        """It follows ``configure``, ``set_level`` and ``swap``; it is 0 until the next event configures the process."""
        state, thresholds = configuration.state, []
        for change in (
            lambda: configure("stderr", level="ERROR"),
            lambda: set_level("a", "DEBUG"),
            lambda: set_level("a", None),
            lambda: state.swap(state.recorder),
            lambda: state.swap(None),
        ):
            change()
            thresholds.append(state.recorder.threshold if state.recorder is not None else 0)

        assert thresholds == [40, 10, 40, 40, 0]
