"""Times as text: compared as instants, whatever their offset and precision, and moved back by seconds.

The formats are RFC 3339 and what sources write instead: a date alone, a space for the ``T``, no seconds, an offset
without colon, or no offset, which means UTC.
"""

from __future__ import annotations

import re
from datetime import date

TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
"""A date, or a time with its fraction and zone."""
_COMPARABLE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(Z|\+00:00)", re.ASCII)
_MINUTES = 24 * 60
_LAST_DAY = date.max.toordinal()


def rank(text: str) -> str:
    """Return a text that sorts like the instant.

    It is the time in UTC without the zone and without trailing zeros of the fraction, so that ``…:00`` is before
    ``…:00.5``, which equals ``…:00.500``. A leap second is after ``:59`` and before the next minute.

    Raises:
        ValueError: the text is not a time.
    """
    days, minute, second, fraction, _ = _parts(text)
    if 1 <= days <= _LAST_DAY:
        day = date.fromordinal(days).isoformat()
    else:  # the offset leads beyond the calendar, as that of 9999-12-31T23:59:59-05:00 does
        day = "0000-12-31" if days < 1 else "9999-12-32"
    stripped = fraction.rstrip("0")
    whole = f"{day}T{minute // 60:02}:{minute % 60:02}:{second:02}"
    return f"{whole}.{stripped}" if stripped else whole


def comparable_end(text: str) -> str:
    """Return the zone of a time that can be compared as text, ``Z`` or ``+00:00``; "" if it cannot.

    Two times of the same length with a ``T`` at index 10 and the same such zone at the end sort like their texts,
    because all fields have the same widths.
    """
    match = _COMPARABLE.fullmatch(text)
    return match[1] if match else ""


def earlier(text: str, seconds: int) -> str:
    """Return the time that is some seconds earlier, in UTC, with the same fraction.

    A date stays a date. The earliest result is the first second of the year 1.

    Raises:
        ValueError: the text is not a time.
    """
    days, minute, second, fraction, zone = _parts(text)
    total = max((days * _MINUTES + minute) * 60 + second - seconds, _MINUTES * 60)
    minutes, second = divmod(total, 60)
    days, minute = divmod(minutes, _MINUTES)
    day = date.fromordinal(min(days, _LAST_DAY)).isoformat()
    if zone is None:
        return day
    end = f".{fraction}" if fraction else ""
    return f"{day}T{minute // 60:02}:{minute % 60:02}:{second:02}{end}{zone}"


def offset_minutes(zone: str | None) -> int:
    """Return the offset of a zone, ``Z`` or ``+05:30``, in minutes east of UTC; 0 without a zone."""
    if not zone or zone in "Zz":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return -minutes if zone[0] == "-" else minutes


def _parts(text: str) -> tuple[int, int, int, str, str | None]:
    """Return the day's ordinal, the minute of that day, both in UTC, the second, the fraction, and the zone's text.

    The zone is None for a date, "" for a time without one.
    """
    match = TIME.fullmatch(text)
    if match is None:
        raise ValueError("not a time")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    days = date(int(year), int(month), int(day)).toordinal()
    if hour is None:
        return days, 0, 0, "", None
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 60:
        raise ValueError("not a time of a day")
    minutes = int(hour) * 60 + int(minute)
    minutes -= offset_minutes(zone)
    moved, minutes = divmod(minutes, _MINUTES)
    return days + moved, minutes, int(second or 0), fraction or "", "Z" if zone else ""
