"""The spread of a series: how far values are from their centers, beyond what counting explains.

A residual is ln((value + 1) / (center + 1)). A count varies like a Poisson process, by the root of its center, so its
residual has a variance of ``counting`` / center, and the square of the spread is the rest. Each of the two is the
larger one of two robust estimates: the median of the squares, as in the modified z-score of Iglewicz and Hoaglin, "How
to Detect and Handle Outliers" (1993), and their 90th percentile, for tails.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp, log, sqrt
from operator import itemgetter

from balog.watch.bands.band_history import BandHistory, median
from balog.watch.bands.slots import OUT

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


def renew_spread(history: BandHistory) -> None:
    """Compute the spread from the residuals, and the usual time between two runs."""
    last = (part[-MAX_RESIDUALS:] for part in (history.residuals, history.values, history.hours))
    rows = [
        _noise(value, diff)
        for diff, value, hour in zip(*last)
        if diff == diff and hour != OUT and (value or diff < -_ZERO)  # NaN differs from itself; 0 for 0 says nothing
    ]
    history.known = len(rows)
    if rows:
        rows.sort(key=itemgetter(1))
        large, small = rows[: len(rows) // 2 + 1], rows[len(rows) // 2 :]
        shared = max(_variance(large), 0.0)
        counting = _variance([(square / share, shared / share) for square, share in small])
        history.counting = counting = min(max(counting, 0.02), _MOST_COUNTING)
        history.spread = sqrt(max(_variance([(square, counting * share) for square, share in large]), 0.0))
    days = [value * value for value in history.days if value == value]
    history.day_spread = sqrt(median(days) / MEDIAN_SQUARE) if days else 0.0
    gaps = [later - earlier for earlier, later in pairwise(history.times[-GAPS:])]
    history.every = median(gaps) if len(gaps) >= 3 else 0.0
    history.renewal = history.learned + max(history.known // RENEWED, 1)


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


def spread_of(history: BandHistory, places: list[int], center: float) -> float:
    """Return the spread of a slot: that of all residuals, moved by those of the slot, which may be a noisier one."""
    squares = [diff * diff for index in places if (diff := history.residuals[index]) == diff]  # NaN differs from itself
    shared, count = history.spread**2, len(squares)
    if count < _MIN_OWN:
        return history.spread
    own = sum(squares) / count - history.counting / max(center, 0.5)
    if center > _LARGE:
        least, most = shared / 4, shared * 4 + 0.01
    else:
        least, most = shared, own
    return sqrt(max((_WEIGHT * shared + count * min(own, most)) / (_WEIGHT + count), least))
