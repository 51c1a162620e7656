"""The formats of JSON Schema that configs are validated against, with the standard library alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from typing import NamedTuple


class Format(NamedTuple):
    """A format: ``fits`` tests a string, ``words`` name the format in messages."""

    fits: Callable[[str], bool]
    words: str


ANNOTATED_FORMATS = frozenset({"password", "binary", "byte", "int32", "int64", "float", "double"})
"""Formats that describe how a value is shown or stored; they do not restrict it."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"(\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DAYS = r"(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)"  # RFC 3339, appendix A: no unit may be skipped
_HOURS = r"(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DURATION = re.compile(rf"P(?=.)(?:\d+W|{_DAYS}?(?:T{_HOURS})?)", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"]+@[^\s@.]+(?:\.[^\s@.]+)*")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")


def is_date(text: str) -> bool:
    """Return whether a text is an RFC 3339 ``full-date`` and exists in the calendar."""
    return bool(_DATE.fullmatch(text)) and _holds(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    if not found:
        return False
    clock, _, zone = found.groups()
    hour, minute, second = (int(part) for part in clock.split(":"))
    offset = (0, 0) if zone in "Zz" else (int(zone[1:3]), int(zone[4:]))
    if offset > (23, 59) or offset[1] > 59:
        return False
    if second == 60:  # a leap second, which comes at the end of a day in UTC (RFC 3339, 5.7)
        sign = -1 if zone[0] == "+" else 1
        of_day = (hour * 60 + minute + sign * (offset[0] * 60 + offset[1])) % 1440
        return hour < 24 and minute < 60 and of_day == 1439
    return _holds(time.fromisoformat, clock)


def _is_date_time(text: str) -> bool:
    return len(text) > 11 and text[10] in "Tt" and is_date(text[:10]) and _is_time(text[11:])


def _is_hostname(text: str) -> bool:
    return 0 < len(text) <= 253 and all(_LABEL.fullmatch(part) for part in text.split("."))


def _is_address(version: int) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        import ipaddress

        made = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
        return "%" not in text and _holds(made, text)

    return fits


def _holds(make: Callable[[str], object], text: str) -> bool:
    try:
        make(text)
    except ValueError:
        return False
    return True


def _is_instant(text: str) -> bool:
    """Return whether a string is a date or a date and time, with or without an offset, as ``start_date`` may be."""
    return is_date(text) or _is_date_time(text) or (len(text) > 10 and _holds(datetime.fromisoformat, text))


FORMATS: dict[str, Format] = {
    "date": Format(is_date, "a date as 2026-01-31"),
    "date-time": Format(_is_date_time, "a date and time as 2026-01-31T00:00:00Z"),
    "instant": Format(_is_instant, "a date as 2026-01-31, or a date and time as 2026-01-31T00:00:00Z"),
    "time": Format(_is_time, "a time as 13:30:00Z"),
    "duration": Format(lambda text: bool(_DURATION.fullmatch(text)), "a duration as P1DT12H"),
    "uri": Format(lambda text: bool(_URI.fullmatch(text)), "a URL as https://example.com"),
    "email": Format(lambda text: bool(_EMAIL.fullmatch(text)), "an e-mail address"),
    "uuid": Format(lambda text: bool(_UUID.fullmatch(text)), "a UUID"),
    "hostname": Format(_is_hostname, "a name of a host"),
    "ipv4": Format(_is_address(4), "an IPv4 address"),
    "ipv6": Format(_is_address(6), "an IPv6 address"),
}
