"""Formats of log lines that users describe."""

from datetime import datetime, timezone
from typing import Any

import pytest

from balog.common.errors import ConfigError
from balog.log_lines import LineAssembler
from balog.log_lines.dialects import read_line
from balog.log_lines.patterns import LogPattern, compile_patterns


def read(line: str, format: str, **more: Any) -> Any:
    return read_line(line, timezone.utc, compile_patterns([LogPattern(format=format, **more)], "$.log_patterns"))


def test_parts_become_level_logger_time_message_and_fields() -> None:
    found = read(
        "<WARN > 2026-01-01T00:00:00Z (client) page 3 [orders]", "<{level}> {time} ({logger}) {message} [{stream}]"
    )
    assert (found.level, found.logger, found.message) == ("WARNING", "client", "page 3")
    assert found.timestamp == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert found.fields == {"stream": "orders"}


def test_levels_and_times_are_as_the_pattern_says() -> None:
    found = read(
        "01.02.2026 03:04:05 HELP   boom",
        "{time} {clock} {level} {message}",
        levels={"HELP": "CRITICAL"},
        time_format="%d.%m.%Y",
    )
    assert (found.level, found.message, found.fields) == ("CRITICAL", "boom", {"clock": "03:04:05"})
    assert found.timestamp == datetime(2026, 2, 1, tzinfo=timezone.utc)


def test_a_pattern_wins_over_what_balog_knows() -> None:
    assert read("ERROR: 0 of 3", "{level}: {message} of {all}").fields == {"all": "3"}


@pytest.mark.parametrize("line", ["WARN: x", "<LOUD> x", "<ERROR>x", f"<{'E' * 400}> x", "", "<ERROR"])
def test_a_line_that_does_not_fit_is_read_without_it(line: str) -> None:
    found = read(line, "<{level}> {message}")
    assert found is None or found.message == "x"
    assert found is None or line == "WARN: x"


def test_a_metric_is_one_under_any_prefix() -> None:
    line = '<INFO> METRIC: {"type": "counter", "metric": "rows", "value": 3, "tags": {}}'
    assert read(line, "<{level}> {message}").metric["value"] == 3


def test_a_line_is_read_in_one_pass() -> None:
    """Given a line of a million characters that nearly fits everywhere, then the assembler reads it all the same."""
    patterns = compile_patterns([LogPattern(format="{a}-{b}-{c}-{level}={message}")], "$")
    (event,) = LineAssembler("tap-x", patterns=patterns).feed(b"-" * 250_000 + b"\n" + b"INFO next\n")
    assert event.payload["message"] == "-" * 250_000


@pytest.mark.parametrize(
    ("format", "said"),
    [
        ("{message}", "{level} is missing"),
        ("{level}", "{message} is missing"),
        ("{level}{message}", "there is no text between {level} and {message}"),
        ("{level} {x} {x} {message}", "{x} is there twice"),
        ("{level} {} {message}", "{} is not a name"),
        ("{level!r} {message}", "{level} is not a name"),
        ("{level.x} {message}", "{level.x} is not a name"),
        ("{level {message}", "the braces do not fit"),
    ],
)
def test_a_format_that_cannot_be_read_is_refused_with_its_place(format: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        compile_patterns([LogPattern(format="{level} {message}"), LogPattern(format=format)], "$.log_patterns")
    assert said in str(error.value)
    assert "$.log_patterns[1].format" in str(error.value)
