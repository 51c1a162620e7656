from datetime import datetime, timezone

import pytest

from balog.analytics.reporting.query import parse_query
from balog.common.errors import ConfigError

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


def test_times_are_extended_to_whole_hours() -> None:
    """Events are counted by hours, so a part of an hour means all of it."""
    for asked in (parse_query("2026-11-20T07:10Z", "2026-11-20T08:00:01Z"), parse_query("460m", "330m", now=NOW)):
        assert asked.since == datetime(2026, 11, 20, 6 if asked.made == NOW else 7, tzinfo=timezone.utc)
        assert asked.until == datetime(2026, 11, 20, 10 if asked.made == NOW else 9, tzinfo=timezone.utc)


def test_a_condition_is_asked_of_events() -> None:
    assert not parse_query(where="level = 'ERROR'", now=NOW).of_rollups


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
    assert parse_query(where="level = 'ERROR'", now=NOW).conditions == ["where level = 'ERROR'"]
