from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reporting.query import Comparison, Period, compare, length, moment
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


@pytest.mark.parametrize(
    ("data", "asked", "options", "now", "before"),
    [
        # what was asked for is compared with as long a time before
        ("01 20T15", "19T15 20T15", {}, "19T15 20T15", "18T15 19T15"),
        # without a time, the last day is compared with the one before
        ("01 20T15", None, {}, "19T15 20T15", "18T15 19T15"),
        # of less than two days, the later half is now; one hour is compared with nothing
        ("20T00 20T09", None, {}, "20T05 20T09", "20T01 20T05"),
        ("20T08 20T09", None, {}, "20T08 20T09", None),
        # the same day of the week before
        ("01 20T15", "20 20T15", {"back": 7 * DAY}, "20 20T15", "13 13T15"),
        # no comparison is wanted
        ("01 20T15", None, {"none": True}, "01 20T15", None),
        ("01 20T15", "20 20T15", {"none": True}, "20 20T15", None),
    ],
)
def test_a_time_is_compared_with_one_before(
    data: str, asked: str | None, options: dict[str, Any], now: str, before: str | None
) -> None:
    def period(text: str) -> Period:
        return Period(*(at(f"2026-11-{end}" + (":00" if "T" in end else "")) for end in text.split()))

    since, until = (period(asked).since, period(asked).until) if asked else (None, None)
    found = compare(period(data), since, until, **{"back": None, **options})
    assert found == Comparison(period(now), period(before) if before else None)
