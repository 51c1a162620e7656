"""Days on which people of many countries do not work, or shop more: no history of some weeks has learned them."""

from __future__ import annotations

from datetime import date, timedelta
from functools import lru_cache

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
