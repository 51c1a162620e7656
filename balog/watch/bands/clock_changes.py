"""Changes of clocks: who names no zone has the runs' hours in UTC, and the people whose data it is change their clocks.

Around such a change the hours beside a run's are normal, too. The history moves by an hour when they fit much better.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from math import log1p
from zoneinfo import ZoneInfo

from balog.watch.bands.band_history import BandHistory, BandOptions, season_of
from balog.watch.bands.centers import center_of
from balog.watch.bands.slots import WEEK, Slot

_AROUND = timedelta(days=3)
_MOST, _CONVINCED = 0.7, 2.0
"""The most that a value says about the hour that it belongs to, and what is enough, as logarithms."""

HOURLY = ("hour_of_day", "hour_of_week")
"""The seasons in which an hour more or less matters."""

_ZONES = ("Europe/Berlin", "America/New_York", "Australia/Sydney")


def neighbor_hours(hour: int) -> list[int]:
    """Return the hours of the week before and after one."""
    return [(hour - 1) % WEEK, (hour + 1) % WEEK]


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


def follow_clocks(
    history: BandHistory, when: float, value: float, slot: Slot, effect: float, options: BandOptions
) -> None:
    """Move the history by an hour if the values since clocks changed fit the hours beside theirs much better.

    Args:
        effect: what the day of the month adds, as a logarithm.
    """
    season = season_of(history, options)
    if season not in HOURLY or not clocks_changed(slot.day, options.zone):
        history.clocks = (0.0, 0.0, 0.0)
        return
    since, *scores = history.clocks
    if since < 0:
        return  # they have been followed

    def distance(hour: int) -> float:
        center = center_of(history, hour, season)
        return _MOST if center is None else min(abs(log1p(value) - log1p(center) - history.drift - effect), _MOST)

    own = distance(slot.hour)
    scores = [max(score + own - distance(hour), 0.0) for score, hour in zip(scores, neighbor_hours(slot.hour))]
    if max(scores) <= _CONVINCED:
        history.clocks = (since or when if any(scores) else 0.0, scores[0], scores[1])
        return
    step = -3600 if scores[0] > scores[1] else 3600
    for index, time in enumerate(history.times):
        if time < since:
            history.times[index] = time - step
    history.set_hours(options.zone)
    history.clocks = (-1.0, 0.0, 0.0)
