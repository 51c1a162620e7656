"""The hours that a report's queries read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from balog.analytics.reporting.query import DAY, Comparison, Period

_STEPS = ((timedelta(days=8), "hour", timedelta(hours=1)), (timedelta(days=200), "day", DAY),
          (timedelta(days=1400), "week", 7 * DAY))  # fmt: skip
SHORT = timedelta(days=8)
"""Periods up to this length are shown completely: bars of an hour, the shortest step, are wide enough."""
_TAIL = 0.005
_FEW = 10


class TimeRanges(NamedTuple):
    """The time ranges of all queries: the period of the lists, the times compared, and the part that axes show."""

    period: Period
    compared: Comparison
    shown: Period

    @property
    def earliest(self) -> datetime:
        """The beginning of the data to read, except for failures, which need all times."""
        before = self.compared.before
        return min(self.period.since, before.since if before is not None else self.period.since)


def ranks(events: int) -> tuple[float, float]:
    """Return the ranks, from 0 to 1, of the first and the last event of about the middle 99 %.

    From 10 events on, at least one event on either side is outside.
    """
    tail = max(int(events * _TAIL), 1) if events >= _FEW else 0
    low = tail / (events - 1) if tail else 0.0
    return low, 1 - low


def axis_period(period: Period, middle: Period) -> Period:
    """Return the part of a period that axes show, so that a few distant events do not compress all others.

    Args:
        period: the whole period.
        middle: from the first to the last hour of about the middle 99 % of its events.

    Returns:
        The middle and half as much time on either side, at least a day. A period of at most 8 days, or of at most twice
        the length of that part, is returned whole: its events are spread out.
    """
    room = max(middle.length / 2, DAY)
    since = middle.since - room if middle.since - period.since > room else period.since
    until = middle.until + room if period.until - middle.until > room else period.until
    if period.length <= SHORT or period.length <= 2 * (until - since):
        return period
    return Period(since, until)


def step_of(period: Period) -> tuple[str, timedelta]:
    """Return the step of the throughput: hours, days, weeks or (30 days) months, at most about 200 steps."""
    for longest, name, step in _STEPS:
        if period.length <= longest:
            return name, step
    return "month", timedelta(days=30)
