"""Calendars such as ``Mon-Fri 06:00-22:00 Europe/Berlin``: the hours in which a monitor's clock runs."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from balog.common.errors import ConfigError
from balog.common.text import suggest

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")
_FORM = "expected days, hours and a time zone, such as 'Mon-Fri 06:00-22:00 Europe/Berlin'"
_MOST_DAYS = 3700
"""Days that a deadline may lie ahead."""


def parse_zone(name: str) -> tzinfo:
    """Return the time zone of an IANA name.

    Raises:
        ConfigError: there is no such zone on this machine.
    """
    if name in ("UTC", "Z"):
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # a folder, a path that leads out, a name that is not there
        pass
    from zoneinfo import available_timezones

    raise ConfigError(f"there is no time zone {name!r:.60}{suggest(name, available_timezones(), 0)}")


class Calendar:
    """The open hours of each week, in a time zone.

    Args:
        text: days (``Mon-Fri``, ``Mon,Wed``; all if omitted), hours (``06:00-22:00``; all day if omitted, past midnight
            as ``22:00-06:00``) and a zone (UTC if omitted).

    Raises:
        ConfigError: it is not of this form.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        words = text.split()
        self._days = frozenset(range(7))
        begin, end = 0, 24 * 60
        if words and words[0][:3].lower() in _DAYS:
            self._days = _parse_days(words.pop(0))
        if words and ":" in words[0]:
            begin, end = _parse_hours(words.pop(0))
        self._begin, self._end = begin, end
        if len(words) > 1 or any(":" in word for word in words) or not text.strip():
            raise ConfigError(f"{text!r:.80} is not a calendar; {_FORM}")
        self.zone = parse_zone(words[0] if words else "UTC")

    @property
    def is_always_open(self) -> bool:
        """Whether no hour of the week is closed."""
        return len(self._days) == len(_DAYS) and self._end - self._begin >= 24 * 60

    def is_open(self, when: float) -> bool:
        """Return whether a time, in seconds since the epoch, is within open hours."""
        day = datetime.fromtimestamp(when, self.zone).date().toordinal()
        return any(begin <= when < end for begin, end in (self._window(day - 1), self._window(day)) if begin < end)

    def closes(self, when: float) -> float:
        """Return when the open hours end that a time is in, in seconds since the epoch; 0 if it is in none."""
        day = datetime.fromtimestamp(when, self.zone).date().toordinal()
        windows = [self._window(day - 1), self._window(day)]
        return max((end for begin, end in windows if begin <= when < end), default=0.0)

    def add(self, when: float, seconds: float) -> float:
        """Return the time at which so many open seconds have passed after a time, both in seconds since the epoch."""
        day = datetime.fromtimestamp(when, self.zone).date().toordinal() - 1
        covered = when
        for number in range(day, day + _MOST_DAYS):
            begin, end = self._window(number)
            begin = max(begin, covered)
            if end <= begin:
                continue
            if begin + seconds <= end:
                return begin + seconds
            seconds -= end - begin
            covered = end
        return when + _MOST_DAYS * 86400.0

    def _window(self, day: int) -> tuple[float, float]:
        """Return the begin and end of the open hours that begin on a day; equal if it is closed."""
        if (day + 6) % 7 not in self._days:  # the ordinal 1 is a Monday
            return 0.0, 0.0
        return _instant(day, self._begin, self.zone), _instant(day, self._end, self.zone)


@lru_cache(maxsize=4096)
def _instant(day: int, minutes: int, zone: tzinfo) -> float:
    """Return the time of a wall clock; minutes may exceed a day. In the hour that a clock skips, the time after it."""
    date = datetime.fromordinal(day) + timedelta(minutes=minutes)
    return date.replace(tzinfo=zone).timestamp()


def _parse_days(text: str) -> frozenset[int]:
    days: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = part.partition("-")
        names = [first, last] if dash else [first]
        if any(name not in _DAYS for name in names):
            raise ConfigError(f"{text!r:.40} are not days; expected Mon-Fri, or Mon,Wed,Sun")
        begin, end = _DAYS.index(names[0]), _DAYS.index(names[-1])
        days.update(day % 7 for day in range(begin, (end if end >= begin else end + 7) + 1))
    return frozenset(days)


def _parse_hours(text: str) -> tuple[int, int]:
    match = _HOURS.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r:.40} are not hours; expected 06:00-22:00")
    begin, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if end > 24 * 60 or begin == end:
        raise ConfigError(f"{text!r:.40} are not hours; expected a begin and another end, at most 24:00")
    return begin, end if end > begin else end + 24 * 60
