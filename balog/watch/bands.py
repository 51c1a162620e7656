"""A robust band of a series: what its next value should be, learned from its history.

The center is the median of comparable values, such as those of the same hour of the week. While there are few, the
series is learning at that hour, and coarser buckets stand in: the hours around, then the hour of the day. The spread
is the median absolute deviation (MAD) of the residuals, ln((value + 1) / (center + 1)), divided by 0.6745: the modified
z-score of Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (1993). If more than half of the residuals are 0,
the mean absolute deviation times 1.253314 stands in for it. It is widened by 5 / n for n residuals, because few of them
say little. Small counts vary more than the spread of all residuals says: the deviation of a Poisson process, the square
root of the center, is added to it as variances are, in quadrature. The median of the last residuals, if it exceeds half
of the spread, moves the center: a growing series does not alarm for ever.

An anomaly is not learned. When anomalies are most of the values for ``adapt`` seconds, they are the new history. After
an anomaly, the next value must be well within the band: a value near a limit would end and begin the same alert again
and again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from math import exp, hypot, log, log1p, nan, sqrt
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct, field

from balog.watch.arrays import Numbers
from balog.watch.kind_config import Seasonality

MAX_VALUES = 128
"""Values of a bucket that are used: every n-th of a larger one."""

MAX_PER_HOUR = 4
"""Values of one hour that are learned; further ones of a frequent series would say the same."""

MIN_BUCKET = 2
LAST_RESIDUALS = 24

RETURN = 0.75
"""The share of the band in which a value must be after an anomaly."""

RENEWED = 16
"""The spread is computed anew when one of so many of its residuals is new."""

_MIN_RESIDUALS = 8
_MAX_OUTLIERS = 1024
_MAD_OF_NORMAL = 0.6745
_MEAN_TO_DEVIATION = 1.253314
_WEEK = 168
SEASON_SPAN = {"none": 0.0, "hour_of_day": 86400.0, "day_of_week": 7 * 86400.0, "hour_of_week": 7 * 86400.0}


class BandOptions(NamedTuple):
    """How a band is computed; times are in seconds.

    Attributes:
        is_count: the values are counts, so they vary like those of a Poisson process, too.
    """

    sensitivity: float
    tolerance: float
    seasonality: Seasonality
    training: float
    min_runs: int
    adapt: float
    zone: tzinfo
    is_count: bool = True


class Band(NamedTuple):
    """The expected value and its limits."""

    center: float
    low: float
    high: float


class BandHistory(Struct):
    """The learned values of one series, oldest first, about 20 bytes each.

    Attributes:
        residuals: distances from the centers that were expected; NaN without comparable values.
        hours: the hour of the week of each value.
        outlier_times: anomalies since the series was normal, like ``outlier_values``.
        calm: normal values since the last anomaly.
        normal: normal values since the first anomaly.
        learned: number of values that were ever learned.
        spread: that of the residuals, computed anew with each of the first values, then with some.
        drift: the median of the last residuals, likewise.
        known: number of residuals, likewise.
        renewal: the number of learned values with which they are computed anew.
        center: a time, the center that was computed for it, and whether it is of its season.
    """

    times: Numbers = field(default_factory=lambda: array("I"))
    values: Numbers = field(default_factory=lambda: array("d"))
    residuals: Numbers = field(default_factory=lambda: array("f"))
    hours: bytearray = field(default_factory=bytearray)
    outlier_times: Numbers = field(default_factory=lambda: array("I"))
    outlier_values: Numbers = field(default_factory=lambda: array("d"))
    calm: int = 0
    normal: int = 0
    begun: float = 0.0
    learned: int = 0
    spread: float = 0.0
    drift: float = 0.0
    known: int = 0
    renewal: int = 0
    center: tuple[float, float, bool] | None = None


def expect(history: BandHistory, when: float, options: BandOptions) -> Band | None:
    """Return the band for a value at a time, in seconds since the epoch; None while the series is learning."""
    if len(history.values) < options.min_runs or when - history.begun < SEASON_SPAN[options.seasonality]:
        return None
    center, is_own = _center(history, when, options)
    if not is_own or history.known < options.min_runs - 1:
        return None
    if abs(history.drift) > history.spread / 2:
        center = (center + 1) * exp(history.drift) - 1
    sensitivity = options.sensitivity
    if history.outlier_times and not history.calm:
        sensitivity *= RETURN
    half = max(sensitivity * history.spread * (1 + 5 / max(history.known, 1)), log1p(options.tolerance))
    factor = exp(half)
    low, high = (center + 1) / factor - 1, (center + 1) * factor - 1
    if options.is_count:
        varies = sensitivity * sqrt(max(center, 1.0))
        low, high = center - hypot(center - low, varies), center + hypot(high - center, varies)
    return Band(center, max(low, 0.0), high)


def learn(history: BandHistory, when: float, value: float, options: BandOptions, *, is_anomaly: bool) -> bool:
    """Add a value; return whether lasting anomalies have become the new history."""
    if not history.values:
        history.begun = when
    if not is_anomaly:
        if history.outlier_times:
            history.calm += 1
            history.normal += 1
            if history.calm >= options.min_runs:
                _forget_outliers(history)
        _append(history, when, value, options)
        return False
    history.calm = 0
    if len(history.outlier_times) < _MAX_OUTLIERS:
        history.outlier_times.append(int(when))
        history.outlier_values.append(value)
    lasted = when - history.outlier_times[0]
    outliers = len(history.outlier_times)
    if lasted < options.adapt or outliers < options.min_runs or outliers < history.normal:
        return False
    _renew(history, options)
    return True


def _append(history: BandHistory, when: float, value: float, options: BandOptions) -> None:
    times = history.times
    if len(times) >= MAX_PER_HOUR and times[-MAX_PER_HOUR] // 3600 == int(when) // 3600:
        return
    residual = nan
    if times:
        center, is_own = _center(history, when, options)
        residual = log((value + 1) / (center + 1)) if is_own else nan
    history.center = None
    times.append(int(when))
    history.values.append(value)
    history.residuals.append(residual)
    history.hours.append(hour_of_week(when, options.zone))
    oldest = when - options.training
    old = 0
    while times[old] < oldest:
        old += 1
    if old:
        for part in (times, history.values, history.residuals, history.hours):
            del part[:old]
    history.learned += 1
    if history.learned >= history.renewal:
        residuals = [one for one in history.residuals if one == one]  # NaN differs from itself
        history.known, history.spread = len(residuals), _spread(residuals)
        last = residuals[-LAST_RESIDUALS:]
        history.drift = median(last) if len(last) >= _MIN_RESIDUALS else 0.0
        history.renewal = history.learned + max(history.known // RENEWED, 1)


def _renew(history: BandHistory, options: BandOptions) -> None:
    """Replace the history by what came since the first anomaly."""
    first = history.outlier_times[0]
    kept = [(time, value) for time, value in zip(history.times, history.values) if time >= first]
    entries = sorted([*kept, *zip(history.outlier_times, history.outlier_values)])
    _forget_outliers(history)
    for part in (history.times, history.values, history.residuals, history.hours):
        del part[:]
    history.begun = float(first)
    history.learned, history.renewal, history.center = 0, 0, None
    for time, value in entries:
        _append(history, time, value, options)


def _forget_outliers(history: BandHistory) -> None:
    del history.outlier_times[:], history.outlier_values[:]
    history.calm = history.normal = 0


def _center(history: BandHistory, when: float, options: BandOptions) -> tuple[float, bool]:
    """Return the median of the values that are comparable with one at a time, and whether they are of its season."""
    if history.center is None or history.center[0] != when:
        values, is_own = _bucket(history, when, options)
        history.center = when, median(values), is_own
    return history.center[1:]


def _bucket(history: BandHistory, when: float, options: BandOptions) -> tuple[Sequence[float], bool]:
    if options.seasonality == "none":
        return thin(history.values), True
    hour, hours = hour_of_week(when, options.zone), history.hours
    if options.seasonality == "hour_of_week" and hours.count(hour) >= MIN_BUCKET:  # the usual case, in C's speed
        return thin(_at(history.values, hours, hour)), True
    is_own = options.seasonality != "hour_of_week"
    for table in _levels(options.seasonality, hour):
        mask = hours.translate(table)
        if mask.count(1) >= MIN_BUCKET:
            return thin(_at(history.values, mask, 1)), is_own
        is_own = False
    return thin(history.values), False


def _at(values: Sequence[float], mask: bytearray, mark: int) -> Sequence[float]:
    """Return the values at the places of a mark, which are at least two."""
    return _getter(bytes(mask), mark)(values)


@lru_cache(maxsize=64)
def _getter(mask: bytes, mark: int) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """Return what gets the values; the series of a pipeline, or of a schedule, have the same places."""
    places, place = [], mask.find(mark)
    while place >= 0:
        places.append(place)
        place = mask.find(mark, place + 1)
    return itemgetter(*places)


def _spread(residuals: Sequence[float]) -> float:
    if not residuals:
        return 0.0
    sizes = [abs(one) for one in residuals]
    middle = median(sizes)
    return middle / _MAD_OF_NORMAL if middle else sum(sizes) / len(sizes) * _MEAN_TO_DEVIATION


def thin(values: Sequence[float]) -> Sequence[float]:
    """Return at most ``MAX_VALUES`` values at even distances, with the last one."""
    step = -(-len(values) // MAX_VALUES)
    return values[(len(values) - 1) % step :: step] if step > 1 else values


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value."""
    ordered: list[float] = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@lru_cache(maxsize=1024)
def hour_of_week(when: float, zone: tzinfo) -> int:
    """Return the hour of the week in a time zone, from 0 for Monday's first to 167."""
    local = datetime.fromtimestamp(when, zone)
    return local.weekday() * 24 + local.hour


@lru_cache(maxsize=1024)
def _levels(seasonality: Seasonality, hour: int) -> tuple[bytes, ...]:
    """Return tables for ``bytes.translate`` that mark the comparable hours, after the very same hour of the week."""
    return tuple(bytes(code in chosen for code in range(256)) for chosen in _comparable(seasonality, hour))


def _comparable(seasonality: Seasonality, hour: int) -> Iterator[set[int]]:
    if seasonality == "day_of_week":
        yield set(range(hour - hour % 24, hour - hour % 24 + 24))
        return
    if seasonality == "hour_of_week":
        yield {(hour + step) % _WEEK for step in (-1, 0, 1)}
    yield set(range(hour % 24, _WEEK, 24))
