"""Times as text: tests for the RFC 3339 formats of JSON Schema, and conversion of other usual forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

from balog.tap.json_schema.formats import is_date

EpochUnit = Literal["seconds", "milliseconds"]

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
# Days 1 to 28 exist in every month.
_usual_date_time = re.compile(rf"(?!0000)\d{{4}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])[Tt]{_CLOCK}", re.A).fullmatch
_late_date_time = re.compile(rf"(\d{{4}}-\d\d-(?:29|3[01]))[Tt]{_CLOCK}", re.A).fullmatch
_time = re.compile(_CLOCK, re.A).fullmatch


def is_date_time(text: str) -> bool:
    """Return whether a text is an RFC 3339 ``date-time``, without leap seconds, which targets reject."""
    if _usual_date_time(text):
        return True
    late = _late_date_time(text)
    return late is not None and is_date(late[1])


def is_time(text: str) -> bool:
    """Return whether a text is an RFC 3339 ``full-time``, with a zone."""
    return _time(text) is not None


_FORM = re.compile(
    r"""\s*(?P<year>\d{4})(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)
    (?:(?:[Tt]|[ ]+)(?P<hour>\d\d)(?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?)?
    [ ]*(?P<zone>[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?\s*""",
    re.ASCII | re.VERBOSE,
).fullmatch
_CLOCK_FORM = re.compile(
    r"\s*(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?[ ]*([Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)?\s*", re.A
).fullmatch
# "Fri, 20 Nov 2026 07:46:12 GMT": the form of HTTP and mail.
_MAIL_FORM = re.compile(
    r"\s*(?:\w{3},\s*)?(\d{1,2}) (\w{3}) (\d{4}) (\d\d:\d\d:\d\d) (GMT|UTC|[+-]\d{4})\s*", re.ASCII
).fullmatch
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def to_date_time(text: str) -> str | None:
    """Convert usual forms of ISO 8601 and mail to RFC 3339 in UTC; return None for other texts.

    A time without a zone counts as UTC, a day as its first moment. All digits of a fraction are kept. Forms with an
    ambiguous order of day and month (``11/12/2026``) are not converted.
    """
    match = _FORM(text)
    if match is None:
        return _from_mail(text)
    if match["dash"] == "" and match["hour"] is None:  # eight digits may be any number
        return None
    fraction = match["fraction"]
    try:
        when = datetime(
            int(match["year"]),
            int(match["month"]),
            int(match["day"]),
            int(match["hour"] or 0),
            int(match["minute"] or 0),
            int(match["second"] or 0),
        ) - _offset(match["zone"])
    except (ValueError, OverflowError):
        return None
    return f"{when.isoformat()}.{fraction}Z" if fraction else f"{when.isoformat()}Z"


def _from_mail(text: str) -> str | None:
    match = _MAIL_FORM(text)
    if match is None or match[2].lower() not in _MONTHS:
        return None
    month = _MONTHS.index(match[2].lower()) + 1
    return to_date_time(f"{match[3]}-{month:02d}-{int(match[1]):02d}T{match[4]}{match[5]}")


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone[0] not in "+-":
        return timedelta()
    digits = zone[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    if hours > 23 or minutes > 59:
        raise ValueError
    return timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)


def to_date(text: str) -> str | None:
    """Convert a day, or its first moment in UTC, to a date; return None for other texts, which have a time."""
    moment = to_date_time(text)
    if moment is None or not re.fullmatch(r"T00:00:00(?:\.0+)?Z", moment[10:]):
        return None
    return moment[:10]


def to_time(text: str) -> str | None:
    """Convert a time of day to an RFC 3339 ``full-time``; without a zone it counts as UTC."""
    match = _CLOCK_FORM(text)
    if match is None:
        return None
    hour, minute, second, fraction, zone = match.groups()
    if zone is None or zone[0] not in "+-":
        zone = "Z"
    else:
        digits = zone[1:].replace(":", "")
        zone = f"{zone[0]}{digits[:2]}:{digits[2:] or '00'}"
    full_time = f"{hour}:{minute}:{second or '00'}{'.' + fraction if fraction else ''}{zone}"
    return full_time if is_time(full_time) else None


def from_iso(text: str) -> datetime:
    """Return a time of ISO 8601, with any number of digits after the second; Python 3.10 reads three or six."""
    head, dot, rest = re.sub("[Zz]$", "+00:00", text).partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return datetime.fromisoformat(f"{head}.{digits[:6]:<06}{rest[len(digits) :]}" if dot else head)


def from_epoch(value: Any, unit: EpochUnit) -> str | None:
    """Return seconds or milliseconds since 1970 as RFC 3339 in UTC; None for other values."""
    try:
        micro = value * (1_000_000 if unit == "seconds" else 1_000)
        when = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=round(micro))
    except (ValueError, OverflowError, TypeError, ArithmeticError):
        return None
    return when.isoformat().removesuffix("+00:00") + "Z"


FORMATS: dict[str, tuple[Callable[[str], bool], Callable[[str], str | None]]] = {
    "date-time": (is_date_time, to_date_time),
    "date": (is_date, to_date),
    "time": (is_time, to_time),
}
"""By format: a test, and a conversion to the format or None."""
