"""The options of ``balog report``, parsed before Spark starts, and the periods that they mean."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from msgspec import Struct

from balog.common.errors import ConfigError
from balog.filters import Expression

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
_FIRST, _LAST = (end.replace(tzinfo=timezone.utc) for end in (datetime.min, datetime.max))
_UNITS = {"m": timedelta(minutes=1), "h": HOUR, "d": DAY, "w": timedelta(weeks=1)}
_STEPS = ((timedelta(days=8), "hour", timedelta(hours=1)), (timedelta(days=200), "day", DAY),
          (timedelta(days=1400), "week", 7 * DAY))  # fmt: skip
_LENGTH = re.compile(r"(\d{1,6})\s*([mhdw])")


class Period(Struct, frozen=True):
    """The time from ``since`` to ``until``, exclusive."""

    since: datetime
    until: datetime

    @property
    def length(self) -> timedelta:
        """The duration."""
        return self.until - self.since


class Comparison(Struct, frozen=True):
    """The period ``now``, and the period ``before`` to compare it with, or null."""

    now: Period
    before: Period | None


class TimeRanges(NamedTuple):
    """The time ranges of all queries: the period of the lists, and the times compared."""

    period: Period
    compared: Comparison

    @property
    def earliest(self) -> datetime:
        """The beginning of the data to read, except for failures, which need all times."""
        before = self.compared.before
        return min(self.period.since, before.since if before is not None else self.period.since)

    @property
    def step(self) -> tuple[str, timedelta]:
        """The step of the throughput: hours, days, weeks or (30 days) months, at most about 200 up to four years."""
        for longest, name, step in _STEPS:
            if self.period.length <= longest:
                return name, step
        return "month", timedelta(days=30)


def length(text: str, name: str) -> timedelta:
    """Parse ``30m``, ``24h``, ``7d`` or ``2w``.

    Raises:
        ConfigError: the text is not valid; ``name`` is the option's name.
    """
    match = _LENGTH.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise ConfigError(f"{text!r:.60} is not a duration; give 30m, 24h, 7d or 2w", name)
    return int(match[1]) * _UNITS[match[2]]


def moment(text: str, now: datetime, name: str) -> datetime:
    """Parse a time: RFC 3339 (UTC unless it has a zone), a date (its beginning), ``now``, or a duration before now.

    A duration of whole hours counts from the full hour: ``24h`` at 14:37 is 14:00 of yesterday. So the numbers are
    those of whole hours, as in rollups.

    Raises:
        ConfigError: the text is not valid; ``name`` is the option's name.
    """
    text = text.strip()
    if text.lower() == "now":
        return now
    if _LENGTH.fullmatch(text.lower()):
        back = length(text, name)
        try:
            return (now if back % HOUR else _full_hour(now)) - back
        except OverflowError:
            raise ConfigError(f"{text!r:.60} is before all times", name) from None
    try:
        # Python 3.10 does not parse the Z, or fractions of other than 3 or 6 digits
        whole = re.sub(r"\.(\d{1,9})", lambda digits: "." + digits[1][:6].ljust(6, "0"), text)
        timestamp = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", whole))
        return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text!r:.60} is not a time; give 2026-11-20, 2026-11-20T07:00:00Z, or a duration before now: 24h, 7d",
            name,
        ) from None


def compare(
    data: Period, since: datetime | None, until: datetime | None, back: timedelta | None, *, none: bool = False
) -> Comparison:
    """Return the periods to compare.

    - With ``since``, now is all of the given time, and before is as long a time directly before it.
    - Without it, now is the last day of the data, and before is the day before that. If the data are shorter than two
      days, now is their later half, in whole hours. Less than two hours are not compared.

    Args:
        data: the hours with events.
        since, until: the given time; None for all.
        back: compare with the time this much earlier (``7d``: the same weekday).
        none: compare with nothing.
    """
    end = until or data.until
    if since is not None:
        now = Period(since, max(end, since))
        step = back or now.length
    else:
        hours = int((end - data.since) / HOUR)
        step = min(DAY, hours // 2 * HOUR) if back is None else back
        now = Period(max(data.since, _earlier(end, min(step, DAY) or data.length)), end)
    if none or step <= timedelta(0):
        return Comparison(now if since is not None else Period(data.since, end), None)
    try:
        before = Period(now.since - step, now.until - step)
    except OverflowError:
        return Comparison(now, None)
    return Comparison(now, before)


def later(moment: datetime, by: timedelta) -> datetime:
    """Return a later time, at most the last one that a datetime can hold."""
    return moment + min(by, _LAST - moment)


def _earlier(moment: datetime, by: timedelta) -> datetime:
    return moment - min(by, moment - _FIRST)


def _full_hour(when: datetime) -> datetime:
    return when.replace(minute=0, second=0, microsecond=0)


def _later_hour(when: datetime) -> datetime:
    hour = _full_hour(when)
    return hour if hour == when else later(hour, HOUR)


class ReportQuery(NamedTuple):
    """What to report.

    Attributes:
        since, until: the time range, in whole hours; None for no end.
        back: how much earlier the time to compare with is; None for directly before.
        compared: whether to compare.
        where: a condition on events.
        made: the time of the query.
        run: the id of a run to report in detail, whenever it was; None for the latest runs.
    """

    since: datetime | None
    until: datetime | None
    back: timedelta | None
    compared: bool
    where: Expression | None
    made: datetime
    run: str | None = None

    @property
    def of_rollups(self) -> bool:
        """Whether hourly rollups are enough: all events count."""
        return self.where is None

    @property
    def earliest(self) -> datetime | None:
        """The beginning of the data to read, including the time before; None for all."""
        if self.since is None or not self.compared:
            return self.since
        # events end when the query was made; a clock that is a day ahead is accepted, see queries.bounds
        end = self.until or max(self.since, self.made + DAY + HOUR)
        try:
            return self.since - (self.back or (end - self.since))
        except OverflowError:
            return None

    @property
    def conditions(self) -> list[str]:
        """The conditions on events, as text."""
        return [f"where {self.where.text}"] if self.where is not None else []


def parse_query(
    since: str = "", until: str = "", compare: str = "", where: str = "", now: datetime | None = None
) -> ReportQuery:
    """Parse the options of ``balog report``; each may be "".

    A ``since`` that is a duration means the time up to now. Times are extended to whole hours, which events are counted
    by.

    Args:
        since, until: see ``moment``.
        compare: a duration, ``none``, or "" for directly before.
        where: a condition, see ``balog.filters``.
        now: the present.

    Raises:
        ConfigError: an option is not valid, or ``until`` is not after ``since``.
    """
    report_time = now or datetime.now(timezone.utc)
    begin = moment(since, report_time, "--since") if since else None
    end = moment(until, report_time, "--until") if until else None
    if end is None and _LENGTH.fullmatch(since.strip().lower()):
        end = report_time
    if begin is not None and end is not None and begin >= end:
        raise ConfigError(f"{until or 'now'} is not after --since {since}", "--until")
    begin, end = begin and _full_hour(begin), end and _later_hour(end)
    compared = compare.lower() != "none"
    back = length(compare, "--compare") if compare and compared else None
    if back is not None and back % HOUR:
        raise ConfigError(f"{compare!r:.60} is not of whole hours, which events are counted by", "--compare")
    try:
        condition = Expression(where) if where else None
        if condition is not None:
            condition.to_spark()  # a condition that Spark can't evaluate is rejected before it starts
    except ConfigError as error:
        raise ConfigError(error.reason, "--where") from None
    return ReportQuery(begin, end, back, compared, condition, report_time)
