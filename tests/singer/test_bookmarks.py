"""Replication values as instants, numbers and texts; bookmarks in every form of state."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.singer.bookmarks import bookmark_of, is_after, middle_of, seconds_between

times = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(lambda when: when.replace(tzinfo=timezone.utc))
zones = st.sampled_from([timezone.utc, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-7))])


@given(times, times, zones, zones)
def test_times_are_compared_as_instants_whatever_their_offset(one: Any, other: Any, here: Any, there: Any) -> None:
    assert is_after(one.astimezone(here).isoformat(), other.astimezone(there).isoformat()) == (one > other)


@given(times, times)
def test_times_with_z_are_instants_too(one: datetime, other: datetime) -> None:
    texts = [when.isoformat().replace("+00:00", "Z") for when in (one, other)]

    assert is_after(*texts) == (one > other)
    assert seconds_between(texts[1], texts[0]) == (one - other).total_seconds()


@given(st.integers() | st.floats(allow_nan=False), st.integers() | st.floats(allow_nan=False))
def test_numbers_are_compared_as_numbers(one: float, other: float) -> None:
    assert is_after(one, other) == (one > other)


@pytest.mark.parametrize(("one", "other"), [("10", "9"), ("100", 99), ("-1", "-2"), ("b", "a"), ("9z", "10z")])
def test_texts_of_digits_are_numbers(one: Any, other: Any) -> None:
    assert is_after(one, other)
    assert not is_after(other, one)


@given(st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()), st.none() | st.text())
def test_two_values_are_never_each_after_the_other(one: Any, other: Any) -> None:
    assert not (is_after(one, other) and is_after(other, one))
    assert not is_after(one, one)


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("2020-01-01", "2026-01-02"),
        ("2020-01-01T00:00:00Z", "2026-01-02T12:00:00Z"),
        ("2020-01-01T00:00:00.000Z", "2026-01-02T12:00:00.000Z"),
        ("2020-01-01 00:00:00+0000", "2026-01-02 12:00:00+0000"),
        ("2020-01-01T00:00:00", "2026-01-02T12:00:00"),
        ("01/01/2020", ""),
        ("2020-01-01T00:00:00+02:00", ""),
        ("", ""),
    ],
)
def test_a_time_between_two_is_in_the_form_of_a_text(form: str, found: str) -> None:
    assert middle_of("2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z", form) == found
    assert middle_of("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", form) == ""
    assert middle_of(1, 9, form) == ""


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({"bookmarks": {"orders": {"at": "b"}}}, "b"),
        ({"bookmarks": {"orders": {"replication_key": "at", "replication_key_value": "b"}}}, "b"),
        ({"bookmarks": {"orders": "b"}}, "b"),
        ({"orders": "b"}, "b"),
        ({"orders": {"at": 7}}, 7),
        ({"bookmarks": {"orders": {"partitions": []}}}, None),
        ({"bookmarks": {"orders": {"at": True}}}, None),
        ({"bookmarks": []}, None),
        ({"bookmarks": {"shops": {"at": "b"}}}, None),
        ("b", None),
        (None, None),
    ],
)
def test_a_bookmark_is_found_in_the_forms_that_taps_write(state: Any, found: Any) -> None:
    assert bookmark_of(state, "orders", "at") == found
