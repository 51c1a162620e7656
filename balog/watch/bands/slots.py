"""Slots: what a run was scheduled for, and which runs of a history are comparable with it."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, datetime, tzinfo
from functools import lru_cache
from typing import NamedTuple

from balog.watch.config.monitors import Season

GRACE = 450.0
"""Seconds that a run may start before the hour that it belongs to."""

OUT = 255
"""The hour of a value that is not compared with others: an anomaly."""

WEEK = 168
"""Hours of a week."""

_MIN_STARTS = 4
_STARTS = 12
_STEADY = 300.0
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
        before: the phase until now, which stays while it is near.
    """
    phases = [start % 3600 for start in starts[-_STARTS:]]
    if len(phases) < _MIN_STARTS:
        return before

    def middle(phase: float) -> float:
        return sorted(min((phase - other) % 3600, (other - phase) % 3600) for other in phases)[len(phases) // 2]

    if before >= 0 and middle(before) < 2 * _STEADY:
        return before
    best_phase = min(phases, key=middle)
    return float(best_phase) if middle(best_phase) < _STEADY else -1.0


def bucket_of(season: Season, hour: int) -> int:
    """Return a number that comparable hours of the week have in common."""
    if season == "none":
        return 0
    return hour % 24 if season == "hour_of_day" else hour // 24 if season == "day_of_week" else hour


def neighbor_hours(hour: int) -> list[int]:
    """Return the hours of the week before and after one."""
    return [(hour - 1) % WEEK, (hour + 1) % WEEK]


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
