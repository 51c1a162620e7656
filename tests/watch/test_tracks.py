"""Verdicts are kept for charts in bounded memory, and none is changed."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.event.payload import ExpectedBand
from balog.watch.history.tracks import Track, TrackPoint, Tracks
from balog.watch.kinds.base import Verdict

NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["ok", "bad", "learning", "no_data"])))


def series(key: str) -> Any:
    return SimpleNamespace(key=key, monitor="m")


@settings(max_examples=60, deadline=None)
@given(made=POINTS, most=st.integers(2, 40))
def test_a_track_keeps_verdicts_as_they_were_in_their_order(made: list[Any], most: int) -> None:
    points = [TrackPoint(float(time), *rest) for time, rest in enumerate(made)]
    track = Track("m")
    for one in points:
        track.add(one, most)
    kept = list(track.points())
    assert (track.seen, track.kept) == (len(points), len(kept))
    assert len(kept) <= most
    places = [points.index(one) for one in kept]
    assert places == sorted(set(places))
    if len(points) <= most:
        assert kept == points


def test_the_few_bad_verdicts_among_many_are_all_kept() -> None:
    track = Track("m")
    for number in range(5000):
        signal: Any = "bad" if number % 500 == 7 else "ok"
        track.add(TrackPoint(float(number), 1.0, None, None, signal), 100)
    bad = [one.time for one in track.points() if one.signal == "bad"]
    assert bad == [7.0 + 500 * number for number in range(10)]
    ok = [one.time for one in track.points() if one.signal == "ok"]
    assert len(ok) > 40
    assert max(later - earlier for earlier, later in pairwise(ok)) <= 130  # at even distances


def test_all_series_together_are_bounded_and_those_before_the_time_are_left_out() -> None:
    tracks = Tracks(since=10.0, most=8, most_of_all=100)
    for number in range(50):
        for when in range(20):
            tracks.add(series(f"s{number}"), Verdict("ok", value=float(when)), float(when))
    assert sum(one.kept for one in tracks.by_key.values()) <= 100
    assert {one.seen for one in tracks.by_key.values()} == {10}
    assert all(point.time >= 10 for one in tracks.by_key.values() for point in one.points())


@pytest.mark.parametrize("value", ["4ec9", None, 10**400])
def test_a_value_that_is_no_number_of_a_chart_is_none(value: Any) -> None:
    tracks = Tracks(0.0)
    tracks.add(series("s"), Verdict("bad", value=value, expected=ExpectedBand(high=3)), 1.0)
    assert list(tracks.by_key["s"].points()) == [TrackPoint(1.0, None, None, 3.0, "bad")]
