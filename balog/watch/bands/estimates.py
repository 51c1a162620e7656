"""Robust estimates: the center of comparable values, their spread, and the limits around a center.

The center is the mean of the last comparable values, without the largest and smallest ones. The spread is how far
values are from their centers, beyond what counting explains.

A residual is ln((value + 1) / (center + 1)). A count varies like a Poisson process, by the root of its center, so its
residual has a variance of ``counting`` / center, and the square of the spread is the rest. Each of the two is the
larger one of two robust estimates: the median of the squares, as in the modified z-score of Iglewicz and Hoaglin, "How
to Detect and Handle Outliers" (1993), and their 90th percentile, for tails.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, hypot, log, sqrt
from operator import itemgetter

from balog.watch.bands.slots import OUT, WEEK, bucket_of
from balog.watch.config.monitors import Season

MAX_COMPARABLE = 16
"""Values that a center is made of: the last ones of its slot."""

MAX_RESIDUALS = 512
"""The last residuals, of which the spread is made."""

RENEWED = 4
"""The spread is computed anew when one of so many of its residuals is new."""

GAPS = 24
"""Times between two runs, of which the usual one is the median."""

MEDIAN_SQUARE, HIGH_SQUARE = 0.4549, 2.7055
"""The median and the 90th percentile of the square of a normal value."""

_ZERO = 1e-6
_SMALL, _LARGE = 20.0, 100.0
_MOST_COUNTING = 30.0
_MIN_OWN = 4
_WEIGHT = 8
"""How many residuals of its own a slot needs to count as much as all others."""


def places_of(hours: bytearray, hour: int, season: Season) -> list[int]:
    """Return the places of the last values that are comparable with those of an hour of the week, the newest first."""
    mask, mark = (hours, hour) if season == "hour_of_week" else (hours.translate(_table(season, hour)), 1)
    places: list[int] = []
    index = len(mask)
    for _ in range(MAX_COMPARABLE):
        index = mask.rfind(mark, 0, index)
        if index < 0:
            break
        places.append(index)
    return places


@lru_cache(maxsize=1024)
def _table(season: Season, hour: int) -> bytes:
    """Return a table for ``bytes.translate`` that marks the comparable hours of the week."""
    bucket = bucket_of(season, hour)
    return bytes(code < WEEK and bucket_of(season, code) == bucket for code in range(256))


def trimmed_mean(values: list[float]) -> float:
    """Return the mean of the middle half of at least one value."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    middle = ordered[cut : len(ordered) - cut]
    return sum(middle) / len(middle)


def limits(center: float, half: float, varies: float) -> tuple[float, float]:
    """Return the limits around a center.

    Args:
        half: half of the band, as a logarithm.
        varies: how many roots of a center its count may vary.
    """
    factor, chance = exp(half), varies * sqrt(max(center, 1.0))
    low = center - hypot(center - (center + 1) / factor + 1, chance)
    high = center + hypot((center + 1) * factor - 1 - center, chance) + varies**2 / 6
    return max(low, 0.0), high


def measure_spread(
    values: Sequence[float], residuals: Sequence[float], hours: Sequence[int]
) -> tuple[int, float, float] | None:
    """Return the number of usable residuals among the last, how much values vary by counting, and the spread.

    The result is None without any. ``hours`` are ``OUT`` for values that are not compared.
    """
    last = (part[-MAX_RESIDUALS:] for part in (residuals, values, hours))
    rows = [
        _noise(value, diff)
        for diff, value, hour in zip(*last)
        if diff == diff and hour != OUT and (value or diff < -_ZERO)  # NaN differs from itself; 0 for 0 says nothing
    ]
    if not rows:
        return None
    rows.sort(key=itemgetter(1))
    large, small = rows[: len(rows) // 2 + 1], rows[len(rows) // 2 :]
    shared = max(_variance(large), 0.0)
    counting = _variance([(square / share, shared / share) for square, share in small])
    counting = min(max(counting, 0.02), _MOST_COUNTING)
    return len(rows), counting, sqrt(max(_variance([(square, counting * share) for square, share in large]), 0.0))


def _variance(rows: list[tuple[float, float]]) -> float:
    """Return the larger one of two estimates of a variance, from squares and what is taken from each."""
    return max(
        sorted([square / quantile - less for square, less in rows])[len(rows) * tenths // 10]
        for quantile, tenths in ((MEDIAN_SQUARE, 5), (HIGH_SQUARE, 9))
    )


def _noise(value: float, residual: float) -> tuple[float, float]:
    """Return the square of a relative deviation, and the part of it that counting explains."""
    center = (value + 1) / exp(residual) - 1
    if center < 0.5:
        center, residual = 0.5, log((value + 1) / 1.5)
    if center < _SMALL and value < _SMALL:  # logarithms of small counts are far from normal, their roots are not
        return 4 * (sqrt(value + 0.375) - sqrt(center + 0.375)) ** 2 / center, 1 / center
    return residual * residual, 1 / center


def spread_of(residuals: list[float], center: float, spread: float, counting: float) -> float:
    """Return the spread of a slot: that of all residuals, moved by those of the slot, which may be a noisier one.

    Args:
        residuals: those of the slot.
        spread, counting: those of all residuals.
    """
    squares = [diff * diff for diff in residuals if diff == diff]  # NaN differs from itself
    shared, count = spread**2, len(squares)
    if count < _MIN_OWN:
        return spread
    own = sum(squares) / count - counting / max(center, 0.5)
    if center > _LARGE:
        least, most = shared / 4, shared * 4 + 0.01
    else:
        least, most = shared, own
    return sqrt(max((_WEIGHT * shared + count * min(own, most)) / (_WEIGHT + count), least))
