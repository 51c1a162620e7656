import re
from datetime import datetime, timezone
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reporting.query import channel_pattern, parse_query
from balog.errors import ConfigError

NOW = datetime(2026, 11, 20, 14, 37, tzinfo=timezone.utc)


def test_a_length_of_time_means_up_to_now_with_the_hour_that_runs() -> None:
    question = parse_query(since="24h", now=NOW)
    assert question.since == datetime(2026, 11, 19, 14, tzinfo=timezone.utc)
    assert question.until == datetime(2026, 11, 20, 15, tzinfo=timezone.utc)
    assert question.of_rollups


def test_the_time_before_is_read_too() -> None:
    assert parse_query(since="24h", now=NOW).earliest == datetime(2026, 11, 18, 13, tzinfo=timezone.utc)
    assert parse_query(since="24h", compare="7d", now=NOW).earliest == datetime(2026, 11, 12, 14, tzinfo=timezone.utc)
    assert parse_query(since="24h", compare="none", now=NOW).earliest == datetime(2026, 11, 19, 14, tzinfo=timezone.utc)
    assert parse_query(now=NOW).earliest is None


def test_without_an_end_as_much_is_read_before_as_there_can_be_until_now() -> None:
    asked = parse_query(since="2026-11-20", now=NOW)
    assert asked.earliest is not None
    assert asked.earliest <= datetime(2026, 11, 19, 9, 23, tzinfo=timezone.utc)
    assert asked.earliest >= datetime(2026, 11, 18, tzinfo=timezone.utc)


@pytest.mark.parametrize("asked", [{"since": "90m"}, {"channel": "tap_*"}, {"where": "level = 'ERROR'"}])
def test_what_rollups_of_hours_cannot_answer_is_asked_of_events(asked: dict[str, str]) -> None:
    assert not parse_query(**asked, now=NOW).of_rollups


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"since": "soon"}, "--since: 'soon' is not a time"),
        ({"since": "2026-11-20", "until": "2026-11-19"}, "--until: .* is not after"),
        ({"compare": "last week"}, "--compare: .* is not a duration"),
        ({"compare": "90m"}, "--compare: .* whole hours"),
        ({"where": "levl = 'ERROR'"}, "--where: .*levl"),
        ({"where": "level = "}, "--where: "),
    ],
)
def test_what_cannot_be_understood_is_refused_before_spark_starts(asked: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        parse_query(**asked, now=NOW)
    assert "\n" not in str(refused.value)


def test_conditions_are_told() -> None:
    asked = parse_query(channel="tap_*", where="level = 'ERROR'", now=NOW)
    assert asked.conditions == ["channel tap_*", "where level = 'ERROR'"]


@given(st.text("ab.*?_-é", max_size=12), st.text("ab._-é\n", max_size=12))
def test_a_glob_over_channels_takes_what_a_shell_would(glob: str, channel: str) -> None:
    if "\n" not in channel:
        assert bool(re.match(channel_pattern(glob), channel)) == fnmatchcase(channel, glob)
