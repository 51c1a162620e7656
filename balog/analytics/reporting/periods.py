"""Which time is asked about, and which one it is compared with."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from msgspec import Struct

from balog.errors import ConfigError

__all__ = ["Comparison", "Period", "compare", "later", "length", "moment", "whole_hours"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
_FIRST, _LAST = (end.replace(tzinfo=timezone.utc) for end in (datetime.min, datetime.max))
_UNITS = {"m": timedelta(minutes=1), "h": HOUR, "d": DAY, "w": timedelta(weeks=1)}
_LENGTH = re.compile(r"(\d{1,6})\s*([mhdw])")


class Period(Struct, frozen=True):
    """The time from ``since`` on and before ``until``."""

    since: datetime
    until: datetime

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.until - self.since


class Comparison(Struct, frozen=True):
    """``now`` is looked at, ``before`` is what it is held against; null where there is nothing before."""

    now: Period
    before: Period | None


def length(text: str, name: str) -> timedelta:
    """Read ``30m``, ``24h``, ``7d`` or ``2w``.

    Raises:
        ConfigError: it is none of those; ``name`` says whose value it is.
    """
    found = _LENGTH.fullmatch(text.strip().lower())
    if found is None or not int(found[1]):
        raise ConfigError(f"{text!r:.60} is no length of time; give 30m, 24h, 7d or 2w", name)
    return int(found[1]) * _UNITS[found[2]]


def moment(text: str, now: datetime, name: str) -> datetime:
    """Read a moment: RFC 3339 (UTC unless it names a zone), a date (its beginning), ``now``, or a length before now.

    A length of hours or more is counted back from the full hour: ``24h`` at 14:37 is 14:00 of yesterday. So the
    numbers are those of whole hours, as rollups have them.

    Raises:
        ConfigError: it is none of those; ``name`` says whose value it is.
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
        # Python 3.10 reads neither the Z nor other than 3 or 6 digits of a second's fraction
        whole = re.sub(r"\.(\d{1,9})", lambda digits: "." + digits[1][:6].ljust(6, "0"), text)
        found = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", whole))
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text!r:.60} is no moment; give 2026-11-20, 2026-11-20T07:00:00Z, or a length before now: 24h, 7d", name
        ) from None


def whole_hours(since: datetime | None, until: datetime | None) -> bool:
    """Tell whether both ends are full hours, so that rollups by hour can answer."""
    return all(end is None or end == _full_hour(end) for end in (since, until))


def compare(
    data: Period, since: datetime | None, until: datetime | None, back: timedelta | None, *, none: bool = False
) -> Comparison:
    """Decide what is now, and what it is compared with.

    - With ``since``, now is all that was asked for, and before is as long a time right before it.
    - Without, now is the last day of the data, before is the day before that; where the data is shorter than two
      days, now is its later half, in whole hours. Less than two hours are not compared.

    Args:
        data: the hours that there are events of.
        since, until: what was asked for; null for all.
        back: compare with the time so long before instead (``7d``: the same weekday).
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
    """Return the moment that is so much later, or the last moment of all times."""
    return moment + min(by, _LAST - moment)


def _earlier(moment: datetime, by: timedelta) -> datetime:
    return moment - min(by, moment - _FIRST)


def _full_hour(when: datetime) -> datetime:
    return when.replace(minute=0, second=0, microsecond=0)
