from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reporting.query import Period, compare, length, moment
from balog.common.errors import ConfigError

NOW = datetime(2026, 11, 20, 14, 37, 12, tzinfo=timezone.utc)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-19", "2026-11-19T00:00:00"),
        ("2026-11-19T07:00", "2026-11-19T07:00:00"),
        ("2026-11-19T07:00:00Z", "2026-11-19T07:00:00"),
        ("2026-11-19t07:00:00.5z", "2026-11-19T07:00:00.500000"),
        ("2026-11-19T07:00:00.123456789+02:00", "2026-11-19T05:00:00.123456"),
        ("now", "2026-11-20T14:37:12"),
        ("24h", "2026-11-19T14:00:00"),
        ("7d", "2026-11-13T14:00:00"),
        ("2w", "2026-11-06T14:00:00"),
        ("90m", "2026-11-20T13:07:12"),
    ],
)
def test_a_moment_is_a_date_a_time_or_a_length_before_now(text: str, expected: str) -> None:
    assert moment(text, NOW, "--since") == at(expected)


@pytest.mark.parametrize("text", ["yesterday", "", "24", "h", "-1d", "2026-13-01", "0h", "9999999d", "999999w"])
def test_what_is_no_moment_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--since: .*") as refused:
        moment(text, NOW, "--since")
    assert "\n" not in str(refused.value)


@given(st.text(max_size=30))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    try:
        assert moment(text, NOW, "--since").tzinfo is timezone.utc
    except ConfigError:
        pass


def test_a_length_wants_a_unit() -> None:
    assert length(" 36H", "--compare") == 36 * HOUR
    with pytest.raises(ConfigError, match="--compare"):
        length("36", "--compare")


def test_what_was_asked_for_is_compared_with_as_long_a_time_before() -> None:
    data = Period(at("2026-11-01"), at("2026-11-20T15:00:00"))
    found = compare(data, at("2026-11-19T15:00:00"), at("2026-11-20T15:00:00"), None)
    assert found.now == Period(at("2026-11-19T15:00:00"), at("2026-11-20T15:00:00"))
    assert found.before == Period(at("2026-11-18T15:00:00"), at("2026-11-19T15:00:00"))


def test_without_a_time_the_last_day_is_compared_with_the_one_before() -> None:
    found = compare(Period(at("2026-11-01"), at("2026-11-20T15:00:00")), None, None, None)
    assert found.now == Period(at("2026-11-19T15:00:00"), at("2026-11-20T15:00:00"))
    assert found.before is not None
    assert found.before.until == found.now.since
    assert found.before.length == DAY


def test_of_less_than_two_days_the_later_half_is_now() -> None:
    found = compare(Period(at("2026-11-20T00:00:00"), at("2026-11-20T09:00:00")), None, None, None)
    assert found.now == Period(at("2026-11-20T05:00:00"), at("2026-11-20T09:00:00"))
    assert found.before == Period(at("2026-11-20T01:00:00"), at("2026-11-20T05:00:00"))


def test_one_hour_is_compared_with_nothing() -> None:
    data = Period(at("2026-11-20T08:00:00"), at("2026-11-20T09:00:00"))
    found = compare(data, None, None, None)
    assert (found.now, found.before) == (data, None)


def test_the_same_day_of_the_week_before() -> None:
    data = Period(at("2026-11-01"), at("2026-11-20T15:00:00"))
    found = compare(data, at("2026-11-20"), at("2026-11-20T15:00:00"), 7 * DAY)
    assert found.before == Period(at("2026-11-13"), at("2026-11-13T15:00:00"))


def test_no_comparison_is_wanted() -> None:
    data = Period(at("2026-11-01"), at("2026-11-20T15:00:00"))
    assert compare(data, None, None, None, none=True).before is None
    assert compare(data, at("2026-11-20"), None, None, none=True).now.since == at("2026-11-20")
