"""Record what monitors judged, for charts, in bounded memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from typing import NamedTuple, get_args

from balog.watch.kinds.base import Verdict
from balog.watch.series import Series
from balog.watch.state_machine import Signal

MAX_POINTS = 400
"""Verdicts that are kept of a series."""

MAX_ALL_POINTS = 4_000_000
"""Verdicts that are kept of all series, 40 bytes each."""

_SIGNALS: tuple[Signal, ...] = get_args(Signal)
_BAD = _SIGNALS.index("bad")
_WIDTH = 5  # numbers of a verdict


class TrackPoint(NamedTuple):
    """A verdict: its time in seconds since the epoch, the value if it is a number, and the limits that it has."""

    time: float
    value: float | None
    low: float | None
    high: float | None
    signal: Signal


class Track:
    """The verdicts on one series.

    When there are too many, every second one of the bad ones or of the others is dropped, whichever are more.

    Attributes:
        monitor, kept: the monitor's name, and the number of verdicts that are kept.
        seen: the number of verdicts.
    """

    def __init__(self, monitor: str) -> None:
        self.monitor = monitor
        self.seen = 0
        self.kept = 0
        self._data = array("d")
        self._seen = [0, 0]  # others, bad ones
        self._kept = [0, 0]
        self._every = [1, 1]

    def add(self, point: TrackPoint, most: int) -> None:
        """Keep a verdict, and at most ``most`` of all."""
        is_bad = int(point.signal == "bad")
        number = self._seen[is_bad]
        self._seen[is_bad] += 1
        self.seen += 1
        if number % self._every[is_bad]:
            return
        self._data.extend(
            (point.time, _number(point.value), _number(point.low), _number(point.high), _SIGNALS.index(point.signal))
        )
        self._kept[is_bad] += 1
        self.kept += 1
        self.thin(most)

    def thin(self, most: int) -> None:
        """Drop verdicts until at most ``most``, and at least 2, are left."""
        while self.kept > max(most, 2):
            dropped = int(self._kept[1] > self._kept[0])
            rows, number = array("d"), 0
            for at in range(0, len(self._data), _WIDTH):
                row = self._data[at : at + _WIDTH]
                if (row[-1] == _BAD) == dropped:
                    number += 1
                    if not number % 2:
                        continue
                rows.extend(row)
            self._data = rows
            self._every[dropped] *= 2
            self._kept[dropped] = (number + 1) // 2
            self.kept = sum(self._kept)

    def points(self) -> Iterator[TrackPoint]:
        """Yield the verdicts that are kept, in the order of time."""
        for at in range(0, len(self._data), _WIDTH):
            time, value, low, high, signal = self._data[at : at + _WIDTH]
            yield TrackPoint(time, _or_none(value), _or_none(low), _or_none(high), _SIGNALS[int(signal)])


class Tracks:
    """The verdicts on all series since a time. Pass ``add`` as ``on_verdict`` of a backtest.

    Args:
        since: seconds since the epoch; earlier verdicts are not recorded.
        most, most_of_all: verdicts that are kept of a series, and of all.

    Attributes:
        by_key: the tracks by the key of their series.
    """

    def __init__(self, since: float = 0.0, most: int = MAX_POINTS, most_of_all: int = MAX_ALL_POINTS) -> None:
        self.by_key: dict[str, Track] = {}
        self._since = since
        self._most = most
        self._most_of_all = most_of_all
        self._kept = 0

    def add(self, series: Series, verdict: Verdict, when: float) -> None:
        """Record a verdict."""
        if when < self._since:
            return
        track = self.by_key.get(series.key)
        if track is None:
            track = self.by_key[series.key] = Track(series.monitor)
        band = verdict.expected
        before = track.kept
        value = verdict.value if isinstance(verdict.value, (int, float)) else None
        low, high = (None, None) if band is None else (band.low, band.high)
        track.add(TrackPoint(when, value, low, high, verdict.signal), self._most)
        self._kept += track.kept - before
        if self._kept > self._most_of_all and self._most > 2:
            self._most = max(self._most // 2, 2)
            for kept_track in self.by_key.values():
                kept_track.thin(self._most)
            self._kept = sum(kept_track.kept for kept_track in self.by_key.values())


def _number(value: float | None) -> float:
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.nan


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
