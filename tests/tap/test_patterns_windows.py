import zoneinfo
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap.errors import SourceError, TapError
from balog.tap.patterns import Window, bisected, date_windows

UTC = timezone.utc
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DAY = timedelta(days=1)


def texts(windows: Any) -> list[str]:
    return [str(window) for window in windows]


def test_windows_of_months_keep_the_day_where_there_is_one() -> None:
    found = date_windows(date(2027, 10, 31), date(2028, 4, 1), months=1)
    assert [window.start.isoformat() for window in found] == [
        *("2027-10-31", "2027-11-30", "2027-12-31", "2028-01-31", "2028-02-29", "2028-03-31")
    ]


def test_days_begin_at_midnight_also_where_clocks_are_changed() -> None:
    found = list(date_windows("2026-10-24T00:00:00", "2026-10-27T00:00:00", days=1, zone=BERLIN))
    assert [window.start.isoformat() for window in found] == [
        *("2026-10-24T00:00:00+02:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00")
    ]
    hours = [(end.astimezone(UTC) - start.astimezone(UTC)) / timedelta(hours=1) for start, end in found]
    assert hours == [24, 25, 24]


def test_a_day_that_a_zone_left_out_is_no_window() -> None:
    apia = zoneinfo.ZoneInfo("Pacific/Apia")
    found = list(date_windows("2011-12-29", datetime(2012, 1, 1, tzinfo=apia), days=1, zone=apia))
    assert [window.start.date().isoformat() for window in found] == ["2011-12-29", "2011-12-31"]


def test_windows_overlap_for_what_arrives_late() -> None:
    found = date_windows("2026-11-20", "2026-11-23", days=1, overlap=DAY)
    assert texts(found) == ["2026-11-20/2026-11-21", "2026-11-20/2026-11-22", "2026-11-21/2026-11-23"]


@pytest.mark.parametrize("end", ["2026-11-20", "2026-11-19"])
def test_there_is_no_window_where_the_end_is_not_after_the_start(end: str) -> None:
    assert list(date_windows("2026-11-20", end, days=1)) == []
    assert list(date_windows("2026-11-20T00:00:00Z", end, days=1)) == []


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-20T01:00:00+01:00", "2026-11-20T00:00:00Z"),
        ("2026-11-20 01:00+0100", "2026-11-20T00:00:00Z"),
        ("2026-11-19T19:00:00-05", "2026-11-20T00:00:00Z"),
        ("2026-11-20T00:00:00.1234567Z", "2026-11-20T00:00:00.123456Z"),
        ("2026-11-20T00:00:00", "2026-11-20T00:00:00Z"),
    ],
)
def test_texts_in_the_forms_of_sources(text: str, instant: str) -> None:
    (window,) = date_windows(text, "2026-11-20T12:00:00Z", days=1)
    assert str(window) == f"{instant}/2026-11-20T12:00:00Z"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"days": 1, "months": 1},
        {"days": -1},
        {"step": timedelta(0)},
        {"days": 1, "overlap": -DAY},
        {"step": timedelta(hours=1)},
        {"days": 1, "overlap": timedelta(hours=1)},
    ],
)
def test_lengths_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TapError, match="date_windows"):
        date_windows("2026-11-20", "2026-11-21", **options)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "2026-11-20T25:00:00Z", "２026-11-20", None, 5])
def test_what_is_no_time_is_refused(text: Any) -> None:
    with pytest.raises(TapError, match="date_windows"):
        date_windows(text, "2026-11-21", days=1)


zones = st.sampled_from(sorted(zoneinfo.available_timezones())).map(zoneinfo.ZoneInfo)
instants = st.datetimes(datetime(1900, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))
lengths = st.one_of(
    st.integers(1, 400).map(lambda days: {"days": days}),
    st.integers(1, 24).map(lambda months: {"months": months}),
    st.timedeltas(timedelta(hours=5), timedelta(days=400)).map(lambda step: {"step": step}),
)


@given(instants, st.timedeltas(timedelta(0), timedelta(days=300)), lengths, zones)
def test_windows_cover_all_without_gap_or_overlap(
    start: datetime, span: timedelta, length: dict[str, Any], zone: zoneinfo.ZoneInfo
) -> None:
    end = start + span
    found = list(date_windows(start, end, zone=zone, **length))
    instants = [(window.start.astimezone(UTC), window.end.astimezone(UTC)) for window in found]
    at = start
    for first, last in instants:
        assert first == at
        assert last > first
        at = last
    assert at == (end if span else start)
    assert all(window.start.tzinfo is zone for window in found)


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.integers(0, 500), st.integers(1, 30), st.booleans())
def test_windows_of_dates_cover_all_days(start: date, span: int, length: int, is_months: bool) -> None:
    end = date.fromordinal(min(start.toordinal() + span, date.max.toordinal()))
    found = list(date_windows(start, end, **{"months" if is_months else "days": length}))
    days = [day for window in found for day in range(window.start.toordinal(), window.end.toordinal())]
    assert days == list(range(start.toordinal(), end.toordinal()))


def test_a_window_with_too_many_is_halved() -> None:
    asked = []

    def fetch(window: Window) -> list[int]:
        asked.append(str(window))
        return [day for day in range(1, 9) if window.start.day <= day < window.end.day][:4]

    (window,) = date_windows("2026-11-01", "2026-11-09", days=8)
    found = list(bisected(window, fetch, lambda answer: len(answer) == 4))
    assert [day for _, answer in found for day in answer] == list(range(1, 9))
    assert asked[:3] == ["2026-11-01/2026-11-09", "2026-11-01/2026-11-05", "2026-11-01/2026-11-03"]


def test_a_smallest_window_with_too_many_is_told() -> None:
    (window,) = date_windows("2026-11-01T00:00:00Z", "2026-11-01T00:00:10Z", days=1)
    with pytest.raises(SourceError, match="too many records in 2026-11-01T00:00:00Z/2026-11-01T00:00:01Z"):
        list(bisected(window, lambda window: "all", lambda answer: True))


@given(st.lists(st.integers(0, 7200), max_size=40, unique=True).map(sorted), st.sampled_from(["UTC", "Europe/Berlin"]))
def test_halves_give_all_records_once_and_in_order(seconds: list[int], name: str) -> None:
    zero = datetime(2026, 10, 25, 0, 0, tzinfo=UTC)  # an hour before Berlin's clocks go back
    (window,) = date_windows(zero, zero + timedelta(seconds=7201), days=1, zone=zoneinfo.ZoneInfo(name))

    def fetch(window: Window) -> list[int]:
        first, last = (round((at.astimezone(UTC) - zero).total_seconds()) for at in window)
        return [second for second in seconds if first <= second < last][:3]

    found = [second for _, answer in bisected(window, fetch, lambda answer: len(answer) == 3) for second in answer]
    assert found == seconds
