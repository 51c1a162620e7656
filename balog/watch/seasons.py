"""Seasons of a series: the slot that a run was scheduled for, which slots are comparable, and which season fits.

A season is chosen by cross-validation: each value is compared with the median of the other values of its slot, and the
season with the smallest mean distance wins. A simpler season is kept unless a finer one is clearly better.
"""

from __future__ import annotations

from calendar import monthrange
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from math import log, nan
from typing import NamedTuple
from zoneinfo import ZoneInfo

from balog.watch.kind_config import Season

SEASONS: tuple[Season, ...] = ("none", "hour_of_day", "day_of_week", "hour_of_week")
"""The seasons within a week, the simplest first."""

SEASON_SPAN = {"none": 0.0, "hour_of_day": 86400.0, "day_of_week": 7 * 86400.0, "hour_of_week": 7 * 86400.0,
               "auto": 0.0, "day_of_month": 0.0}  # fmt: skip

GRACE = 450.0
"""Seconds that a run may start before the hour that it belongs to."""

MIN_BUCKET = 2
OUT = 255
"""The slot of a value that is not compared with others: an anomaly."""

_COVERED = 0.8
_BETTER = 0.96
_FAR = 1.5
"""Distances beyond this one, a factor of 4.5, count alike."""

WEEK = 168
"""Hours of a week."""

_MIN_STARTS = 4
_STARTS = 12
_STEADY = 300.0
_HOLIDAYS = {(1, 1), (5, 1), (7, 4), (12, 24), (12, 25), (12, 26), (12, 31)}
_DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


class Slot(NamedTuple):
    """What a run was scheduled for: the hour of the week, 0 for Monday's first to 167, and the date."""

    hour: int
    day: date


def slot_of(start: float, phase: float, zone: tzinfo) -> Slot:
    """Return the slot of a run that started at a time.

    Args:
        phase: seconds after the hour at which the runs are scheduled; negative if they have none.
    """
    if phase >= 0:
        start = (start - phase + 1800) // 3600 * 3600 + phase
    return _slot((start + GRACE) // 900 * 900, zone)


@lru_cache(maxsize=4096)
def _slot(when: float, zone: tzinfo) -> Slot:
    local = datetime.fromtimestamp(when, zone)
    return Slot(local.weekday() * 24 + local.hour, local.date())


def phase_of(starts: Sequence[int], before: float) -> float:
    """Return the seconds after the hour at which most of the last runs started; -1 if they have no such time.

    Args:
        before: what was found before, which stays while it is near.
    """
    phases = [start % 3600 for start in starts[-_STARTS:]]
    if len(phases) < _MIN_STARTS:
        return before

    def middle(one: float) -> float:
        return sorted(min((one - other) % 3600, (other - one) % 3600) for other in phases)[len(phases) // 2]

    if before >= 0 and middle(before) < 2 * _STEADY:
        return before
    found = min(phases, key=middle)
    return float(found) if middle(found) < _STEADY else -1.0


@lru_cache(maxsize=256)
def clocks_changed(day: date, zone: tzinfo) -> bool:
    """Return whether clocks of other zones than this one change within three days of a day.

    Who does not name a zone has the runs' hours in UTC, and the people whose data it is change their clocks.
    """
    after = datetime(day.year, day.month, day.day, 23, tzinfo=timezone.utc) + timedelta(days=3)
    before = after - timedelta(days=7)

    def is_changed(some: tzinfo) -> bool:
        return before.astimezone(some).utcoffset() != after.astimezone(some).utcoffset()

    return any(is_changed(some) for some in _probes()) and not is_changed(zone)


@lru_cache(maxsize=1)
def _probes() -> list[tzinfo]:
    found: list[tzinfo] = []
    for name in ("Europe/Berlin", "America/New_York", "Australia/Sydney"):
        try:
            found.append(ZoneInfo(name))
        except (OSError, ValueError, KeyError):  # a machine without zones
            pass
    return found


def places_of(hours: bytearray, hour: int, season: Season, most: int) -> list[int]:
    """Return the places of the last comparable values of an hour of the week."""
    mask, mark = (hours, hour) if season == "hour_of_week" else (hours.translate(_table(season, hour)), 1)
    places: list[int] = []
    place = len(mask)
    for _ in range(most):
        place = mask.rfind(mark, 0, place)
        if place < 0:
            break
        places.append(place)
    return places


@lru_cache(maxsize=1024)
def _table(season: Season, hour: int) -> bytes:
    """Return a table for ``bytes.translate`` that marks the comparable hours of the week."""
    bucket = _bucket(season, hour)
    return bytes(code < WEEK and _bucket(season, code) == bucket for code in range(256))


def _bucket(season: Season, hour: int) -> int:
    if season == "none":
        return 0
    return hour % 24 if season == "hour_of_day" else hour // 24 if season == "day_of_week" else hour


def choose_season(values: Sequence[float], hours: Sequence[int], span: float) -> tuple[Season, list[float]]:
    """Return the season that fits values best, and how far each value is from the others of its slot, in logarithms.

    Args:
        hours: the hour of the week of each value.
        span: seconds from the first to the last value. A season needs two of its cycles.
    """
    logs = [log(value + 1) for value in values]
    tried = {
        season: _distances(logs, [_bucket(season, hour) for hour in hours])
        for season in SEASONS
        if season == "none" or span >= 2 * SEASON_SPAN[season] * 0.97
    }
    enough = _COVERED * len(logs)
    tried = {name: one for name, one in tried.items() if sum(map(_is_number, one)) >= enough} or {"none": tried["none"]}
    rows = [row for row in zip(*tried.values()) if _is_number(sum(row))]
    means = [sum([min(abs(one), _FAR) for one in column]) / max(len(rows), 1) for column in zip(*rows)] or [0.0]
    best, least = 0, means[0]
    for number, mean in enumerate(means):
        if mean < least * _BETTER:
            best, least = number, mean
    season = list(tried)[best]
    return season, tried[season]


def _is_number(value: float) -> bool:
    return value == value  # NaN differs from itself


def _distances(logs: Sequence[float], buckets: Sequence[int]) -> list[float]:
    """Return the distance of each value from the median of the others in its bucket; NaN if there are too few."""
    members: defaultdict[int, list[int]] = defaultdict(list)
    for place, bucket in enumerate(buckets):
        members[bucket].append(place)
    found = [nan] * len(logs)
    for places in members.values():
        count = len(places)
        if count < MIN_BUCKET:
            continue
        ordered = sorted([(logs[place], place) for place in places])
        middle = (count - 1) // 2
        (here, _), (above, _) = ordered[middle], ordered[middle + 1]
        medians = [above, above, here]  # of the others: for those before the middle, at it, and after it
        if count % 2:
            below = ordered[middle - 1][0]
            medians = [(here + above) / 2, (below + above) / 2, (below + here) / 2]
        for rank, (one, place) in enumerate(ordered):
            found[place] = one - medians[0 if rank < middle else 1 if rank == middle else 2]
    return found


@lru_cache(maxsize=256)
def is_special(day: date) -> bool:
    """Return whether a day is a holiday in many countries or a great sale, or is beside one: zones differ by a day."""
    return any((near.month, near.day) in _HOLIDAYS or near in _moving(near.year)
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


@lru_cache(maxsize=64)
def same_days(day: date, months: int) -> list[list[date]]:
    """Return the days of the months before that are comparable with a day: of its number, then from the month's end."""
    left = monthrange(day.year, day.month)[1] - day.day
    lasts, first = [], day.replace(day=1)
    for _ in range(months):
        last = first - timedelta(days=1)
        first = last.replace(day=1)
        lasts.append(last)
    numbered = [last.replace(day=day.day) for last in lasts if last.day >= day.day]
    return [numbered, [last - timedelta(days=left) for last in lasts]] if left < 3 else [numbered]


def name_of(season: Season, slot: Slot, *, is_of_month: bool = False) -> str:
    """Return the name of a slot for people, such as "Fridays at 18:00"; "" if all runs are comparable."""
    names = []
    if season in ("day_of_week", "hour_of_week"):
        names.append(_DAYS[slot.hour // 24])
    if is_of_month:
        left = monthrange(slot.day.year, slot.day.month)[1] - slot.day.day
        names.append("the last day of the month" if not left else f"the {_ordinal(slot.day.day)} of the month")
    text = ", ".join(names)
    if season in ("hour_of_day", "hour_of_week"):
        text += f"{' at ' if text else ''}{slot.hour % 24:02}:00"
    return text


def _ordinal(number: int) -> str:
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10 if number // 10 != 1 else 0, 'th') }"
