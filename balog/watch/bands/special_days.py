"""Special days: holidays, days on which clocks change, and days of the month.

No history of some weeks has learned the days on which people of many countries do not work, or shop more. Who names no
zone has the runs' hours in UTC, and the people whose data it is change their clocks. What a day of the month adds is
learned from the same days of the months before.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from math import isnan, log
from statistics import median
from zoneinfo import ZoneInfo

from balog.watch.bands.seasons import MIN_BUCKET

MONTHS = 12
"""Months whose days are remembered, one number a day."""

MAX_DAYS = 31 * (MONTHS + 1)

_AROUND = timedelta(days=3)
_ZONES = ("Europe/Berlin", "America/New_York", "Australia/Sydney")
_NOTABLE = 3.0
"""Spreads of days beyond which a day of the month is of its own."""

_LEAST = log(1.12)
_NEAR = 2
"""Days before and after, in which a peak of a month may come again: a bank works on no Sunday."""

_FIXED = {(1, 1), (1, 2), (5, 1), *((12, day) for day in range(24, 32))}


@lru_cache(maxsize=1024)
def is_holiday(day: date) -> bool:
    """Return whether a day is a holiday in many countries or a great sale, or is beside one: zones differ by a day."""
    return any((near.month, near.day) in _FIXED or near in _moving(near.year)
               for near in (day + timedelta(days=step) for step in (-1, 0, 1)))  # fmt: skip


@lru_cache(maxsize=8)
def _moving(year: int) -> frozenset[date]:
    """Return Good Friday, Easter Monday, and the Friday and the Monday after Thanksgiving."""
    golden, century = year % 19, year // 100  # the anonymous Gregorian algorithm
    epact = (century - century // 4 - (8 * century + 13) // 25 + 19 * golden + 15) % 30
    epact -= epact // 28 * (1 - epact // 28 * (29 // (epact + 1)) * ((21 - golden) // 11))
    weekday = (year + year // 4 + epact + 2 - century + century // 4) % 7
    easter = date(year, 3, 28) + timedelta(days=epact - weekday)
    november = date(year, 11, 1)
    friday = november + timedelta(days=(3 - november.weekday()) % 7 + 22)
    steps = ((easter, -2), (easter, 1), (friday, 0), (friday, 3))
    return frozenset(day + timedelta(days=step) for day, step in steps)


@lru_cache(maxsize=1024)
def clocks_changed(day: date, zone: tzinfo) -> bool:
    """Return whether clocks of other zones than this one change within three days of a day."""
    noon = datetime(day.year, day.month, day.day, 23, tzinfo=timezone.utc)

    def is_changed(some: tzinfo) -> bool:
        before, after = (moment.astimezone(some) for moment in (noon - _AROUND - timedelta(days=1), noon + _AROUND))
        return before.utcoffset() != after.utcoffset()

    return any(is_changed(some) for some in _zones()) and not is_changed(zone)


@lru_cache(maxsize=1)
def _zones() -> list[tzinfo]:
    zones: list[tzinfo] = []
    for name in _ZONES:
        try:
            zones.append(ZoneInfo(name))
        except (OSError, ValueError, KeyError):  # a machine without zones
            pass
    return zones


def month_effect(
    days: Sequence[float], first: int, spread: float, day: date, *, is_own: bool
) -> tuple[float, float, int]:
    """Return what a day of the month adds, the largest peak that it may have, and the number of months that have it.

    Args:
        days: the residual of each day from the ordinal ``first`` on.
        spread: that of the days.
        is_own: whether all days of the month are compared.
    """
    effect, peak, count, least = 0.0, 0.0, 0, max(_NOTABLE * spread, _LEAST)
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
