from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reporting.comparison import change_in_words, counted, is_more, is_slower, since_when, timed

START = datetime(2026, 11, 20, tzinfo=timezone.utc)


def hours(*p95: float | None) -> list[dict[str, Any]]:
    return [{"hour": START + timedelta(hours=n), "p95": value} for n, value in enumerate(p95)]


@pytest.mark.parametrize(
    ("now", "before", "verdict", "words"),
    [
        (100, 100, "same", "as before"),
        (105, 100, "same", "about as before, 100"),
        (110, 95, "same", "about as before, 95"),
        (400, 100, "worse", "4.0 × 100 before"),
        (150, 100, "worse", "+50 % from 100"),
        (10, 100, "better", "-90 % from 100"),
        (0, 100, "better", "none; 100 before"),
        (50, 0, "worse", "none before"),
        (1, 0, "same", "none before"),
    ],
)
def test_errors_are_compared_beyond_chance(now: int, before: int, verdict: str, words: str) -> None:
    figure = counted("errors", now, before, good="less")
    assert (figure.verdict, change_in_words(figure)) == (verdict, words)


def test_more_events_are_neither_good_nor_bad() -> None:
    assert counted("events", 400, 100, good="").verdict == "unknown"


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_twice_the_same_count_is_never_a_change(number: int, other: int) -> None:
    assert counted("x", number, number, good="less").verdict == "same"
    assert counted("x", number, other, good="less").verdict in ("same", "better", "worse")
    assert not is_more(number, number) or number == 0


def test_few_values_make_no_slowdown() -> None:
    row = {"p95_now": 5.0, "p95_before": 1.0, "count_now": 19, "count_before": 500}
    assert not is_slower(row)
    assert timed("run time", row).verdict == "same"
    row["count_now"] = 20
    assert is_slower(row)
    assert timed("run time", row).verdict == "worse"
    assert timed("run time", {}).verdict == "unknown"


@pytest.mark.parametrize(
    ("p95", "now", "hour"),
    [
        ((1, 1.1, 0.9, 5, 6, None, 5.5, 5), 5.5, 3),
        ((1, 5, 1, 1, 1, 5, 5, 1, 5, 5), 5.0, 5),  # an hour that falls back does not move the beginning
        ((1, 5, 5, 1, 1, 1, 1, 1), 5.0, None),  # what came and went
        ((), 5.0, None),
    ],
)
def test_a_slowdown_began_where_slow_hours_begin(p95: tuple[float | None, ...], now: float, hour: int | None) -> None:
    assert since_when(hours(*p95), now, 1.0) == (None if hour is None else START + timedelta(hours=hour))
