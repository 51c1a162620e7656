"""The options of ``balog report``, parsed before Spark starts."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from balog.analytics.reporting.periods import DAY, EPOCH, HOUR, length, moment, whole_hours
from balog.errors import ConfigError
from balog.expressions import Expression

_RELATIVE = re.compile(r"\s*\d+\s*[mhdwMHDW]\s*")


class ReportQuery(NamedTuple):
    """What to report.

    Attributes:
        since, until: the time range; None for no end.
        back: how much earlier the time to compare with is; None for directly before.
        compared: whether to compare.
        channel: a glob, see ``channel_pattern``.
        where: a condition on events.
        made: the time of the query.
    """

    since: datetime | None
    until: datetime | None
    back: timedelta | None
    compared: bool
    channel: str
    where: Expression | None
    made: datetime

    @property
    def of_rollups(self) -> bool:
        """Whether hourly rollups are enough: whole hours, and all events of them."""
        return not self.channel and self.where is None and self.of_whole_hours

    @property
    def of_whole_hours(self) -> bool:
        """Whether the time range begins and ends with a full hour."""
        return whole_hours(self.since, self.until)

    @property
    def past_the_hour(self) -> timedelta:
        """How long after a full hour the hours have to begin, so that the time range begins or ends with one."""
        edge = self.since or self.until
        return timedelta(0) if edge is None else (edge - EPOCH) % HOUR

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
        parts = [f"channel {self.channel}"] if self.channel else []
        return parts + ([f"where {self.where.text}"] if self.where is not None else [])


def parse_query(
    since: str = "", until: str = "", compare: str = "", channel: str = "", where: str = "", now: datetime | None = None
) -> ReportQuery:
    """Parse the options of ``balog report``; each may be "".

    A ``since`` that is a duration means the time up to now, including the current hour.

    Args:
        since, until: see ``periods.moment``.
        compare: a duration, ``none``, or "" for directly before.
        channel: a glob over channels.
        where: a condition, see ``balog.expressions``.
        now: the present.

    Raises:
        ConfigError: an option is not valid, or ``until`` is not after ``since``.
    """
    made = now or datetime.now(timezone.utc)
    begin = moment(since, made, "--since") if since else None
    end = moment(until, made, "--until") if until else None
    if end is None and _RELATIVE.fullmatch(since):
        hour = made.replace(minute=0, second=0, microsecond=0)
        end = hour if hour == made else hour + HOUR
    if begin is not None and end is not None and begin >= end:
        raise ConfigError(f"{until or 'now'} is not after --since {since}", "--until")
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
    return ReportQuery(begin, end, back, compared, channel, condition, made)


def channel_pattern(glob: str) -> str:
    """Return a regular expression, for Python and Java, of a glob: ``*`` is any text, ``?`` is any character.

    >>> channel_pattern("tap_*.metric")
    '^tap_.*\\\\.metric$'
    """
    signs = {"*": ".*", "?": "."}
    return "^" + "".join(signs.get(sign) or re.sub(r"\W", r"\\\g<0>", sign) for sign in glob) + "$"
