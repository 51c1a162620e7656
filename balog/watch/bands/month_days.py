"""Days of the month: what a day adds to the center of a series, learned from the same days of the months before."""

from __future__ import annotations

from array import array
from calendar import monthrange
from datetime import date, timedelta
from functools import lru_cache
from math import isnan, log, nan
from typing import NamedTuple

from balog.watch.bands.band_history import BandHistory, BandOptions, median
from balog.watch.bands.seasons import MIN_BUCKET

MONTHS = 12
"""Months whose days are remembered, one number a day."""

_MAX_DAYS = 31 * (MONTHS + 1)
_NOTABLE = 3.0
"""Spreads of days beyond which a day of the month is of its own."""

_LEAST = log(1.12)
_NEAR = 2
"""Days before and after, in which a peak of a month may come again: a bank works on no Sunday."""


class MonthEffect(NamedTuple):
    """What a day of the month adds to the center, as a logarithm.

    Attributes:
        effect: 0 for a day like others.
        peak: the largest effect that the day may have, by the days around the same ones; at least ``effect``.
        is_known: whether enough months have passed, if all days of the month are compared.
    """

    effect: float
    peak: float
    is_known: bool


def effect_of(history: BandHistory, day: date, options: BandOptions) -> MonthEffect:
    """Return the effect of a day of the month."""
    if options.seasonality not in ("auto", "day_of_month"):
        return MonthEffect(0.0, 0.0, is_known=True)
    is_own, ordinal = options.seasonality == "day_of_month", day.toordinal()
    if history.month[0] != ordinal:
        history.month = (ordinal, *_look_back(history, day, is_own=is_own))
    _, effect, peak, count = history.month
    return MonthEffect(effect, peak, not is_own or count >= MIN_BUCKET)


def _look_back(history: BandHistory, day: date, *, is_own: bool) -> tuple[float, float, int]:
    """Return the effect of a day, its peak, and the number of months that have it."""
    effect, count, least = 0.0, 0, max(_NOTABLE * history.day_spread, _LEAST)
    days, first, peak = history.days, history.first_day, 0.0
    for same in same_days(day, MONTHS):
        places = [ordinal - first for ordinal in same]
        past = [days[index] for index in places if 0 <= index < len(days) and not isnan(days[index])]
        notable = [value for value in past if abs(value) > least]
        count = max(count, len(past))
        if is_own and len(past) >= MIN_BUCKET:
            effect = median(past)
        elif len(notable) >= max(MIN_BUCKET, 2 / 3 * len(past)):
            middle = median(past)
            if abs(middle) > abs(effect) and all(value * middle > 0 for value in notable):
                effect = middle
        near = [
            days[max(index - _NEAR, 0) : index + _NEAR + 1] for index in places if -_NEAR <= index < len(days) + _NEAR
        ]
        peaks = sorted([max([0.0, *(value for value in some if value > least)]) for some in near], reverse=True)
        if peaks:  # a month alone may have had an odd day
            peak = max(peak, peaks[1 if len(peaks) > MIN_BUCKET else 0])
    return effect, max(effect, peak), count


@lru_cache(maxsize=1024)
def same_days(day: date, months: int) -> list[list[int]]:
    """Return the ordinals of the days that are comparable with a day: of its number, then from the month's end."""
    left = monthrange(day.year, day.month)[1] - day.day
    lasts, first = [], day.replace(day=1)
    for _ in range(months):
        last = first - timedelta(days=1)
        first = last.replace(day=1)
        lasts.append(last)
    numbered = [last.toordinal() - last.day + day.day for last in lasts if last.day >= day.day]
    return [numbered, [last.toordinal() - left for last in lasts]] if left < 3 else [numbered]


def note_day(history: BandHistory, day: date, residual: float) -> None:
    """Add a residual to its day; the median of the day before is kept when a new day begins."""
    ordinal = day.toordinal()
    if not history.first_day:
        history.first_day = ordinal
    current = history.first_day + len(history.days)
    if ordinal > current:
        history.days.append(median(history.today) if history.today else nan)
        history.days.extend([nan] * min(ordinal - current - 1, _MAX_DAYS))
        history.first_day = ordinal - len(history.days)
        old = max(len(history.days) - _MAX_DAYS, 0)
        history.first_day += old
        del history.days[:old]
        history.today = array("f")
    history.today.append(residual)
