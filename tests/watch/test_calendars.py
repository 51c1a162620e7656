"""Calendars against a clock that walks minute by minute."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.watch.config.calendars import Calendar, parse_zone

BERLIN = ZoneInfo("Europe/Berlin")
NAMES = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def at(text: str, zone: object = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()  # type: ignore[arg-type]


def walk(days: set[int], begin: int, end: int, zone: ZoneInfo, when: datetime, minutes: int) -> datetime:
    """The oracle: count open minutes one by one. ``end`` may be before ``begin``, in the next day."""
    passed = 0
    while True:
        local = when.astimezone(zone)
        now = local.hour * 60 + local.minute
        today, yesterday = local.weekday() in days, (local.weekday() - 1) % 7 in days
        if begin < end:
            is_open = today and begin <= now < end
        else:
            is_open = (today and now >= begin) or (yesterday and now < end)
        if is_open:
            if passed == minutes:
                return when
            passed += 1
        elif passed == minutes and passed:
            return when  # the last open minute has just ended
        when += timedelta(minutes=1)


@settings(max_examples=40, deadline=None)
@given(
    day=st.integers(0, 400),
    minute=st.integers(0, 1439),
    minutes=st.integers(1, 900),
    days=st.sets(st.integers(0, 6), min_size=2),
    hours=st.sampled_from([(360, 1320), (0, 1440), (540, 1020), (1320, 360)]),
)
@example(day=86, minute=30, minutes=200, days={5, 6}, hours=(0, 1440))  # 2026-03-29: the clock skips an hour
@example(day=297, minute=30, minutes=200, days={5, 6}, hours=(0, 1440))  # 2026-10-25: it repeats one
def test_open_time_passes_as_a_clock_on_the_wall_shows(
    day: int, minute: int, minutes: int, days: set[int], hours: tuple[int, int]
) -> None:
    begin, end = hours
    text = f"{','.join(NAMES[one] for one in sorted(days))} {begin // 60:02}:00-{end // 60:02}:00 Europe/Berlin"
    start = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=day, minutes=minute)

    wanted = walk(days, begin, end % 1440 or 1440, BERLIN, start, minutes)

    assert Calendar(text).add(start.timestamp(), minutes * 60) == wanted.timestamp()


def test_a_deadline_on_friday_evening_moves_to_monday() -> None:
    calendar = Calendar("Mon-Fri 06:00-22:00 Europe/Berlin")
    assert calendar.add(at("2026-11-20T21:30"), 75 * 60) == at("2026-11-23T06:45")
    assert calendar.is_open(at("2026-11-20T21:59"))
    assert not calendar.is_open(at("2026-11-20T22:00"))
    assert not calendar.is_open(at("2026-11-21T12:00"))


def test_a_leap_day_is_a_day() -> None:
    assert Calendar("Tue 00:00-24:00 UTC").add(at("2028-02-28T12:00", timezone.utc), 3600) == at(
        "2028-02-29T01:00", timezone.utc
    )


@pytest.mark.parametrize("text", ["Mon-Fri", "06:00-22:00", "Europe/Berlin", "UTC", "Fri-Mon 22:00-06:00 UTC"])
def test_each_part_may_be_left_out(text: str) -> None:
    assert Calendar(text).add(0.0, 60.0) > 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a calendar"),
        ("Mon-Fri 06:00-22:00 Europe/Berln", "did you mean 'Europe/Berlin'"),
        ("Mon-Fry 06:00-22:00", "are not days"),
        ("Mon 6-22", "no time zone"),
        ("Mon 22:00-22:00", "are not hours"),
        ("Mon 06:00-24:30", "are not hours"),
        ("Mon 06:00-22:00 UTC daily", "is not a calendar"),
        ("../../etc/passwd", "no time zone"),
    ],
)
def test_a_wrong_calendar_is_one_line(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Calendar(text)


def test_utc_needs_no_database_of_zones() -> None:
    assert parse_zone("UTC") is timezone.utc


@settings(max_examples=100, deadline=None)
@given(
    day=st.integers(0, 400),
    minute=st.integers(0, 1439),
    days=st.sets(st.integers(0, 6), min_size=1),
    hours=st.sampled_from(["00:00-24:00", "09:00-17:00", "22:00-06:00", "01:30-02:30"]),
)
def test_open_hours_close_at_the_first_minute_that_is_not_open(
    day: int, minute: int, days: set[int], hours: str
) -> None:
    calendar = Calendar(f"{','.join(NAMES[one] for one in sorted(days))} {hours} Europe/Berlin")
    when = (datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=day, minutes=minute)).timestamp()

    closes = calendar.closes(when)

    assert (closes > when) == calendar.is_open(when)
    if closes:
        while when < closes:
            assert calendar.is_open(when)
            when += 60
        assert when == closes
        assert hours == "00:00-24:00" or not calendar.is_open(closes)
