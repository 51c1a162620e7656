"""Levels and times as logging libraries write them."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Any

from balog.event import Level, parse_level

_OTHER_NAMES: dict[str, Level] = {
    **dict.fromkeys(("TRACE", "VERBOSE", "FINE", "FINER", "FINEST", "SILLY", "CONFIG"), "DEBUG"),
    **dict.fromkeys(("NOTICE", "SUCCESS", "INFORMATION", "INFORMATIONAL", "HTTP", "DEFAULT"), "INFO"),
    **dict.fromkeys(("ERR", "SEVERE"), "ERROR"),
    **dict.fromkeys(("CRIT", "ALERT", "EMERGENCY", "EMERG", "PANIC", "DPANIC"), "CRITICAL"),
}
_NUMBERED = re.compile(r"(?:Level )?(\d{1,3})")  # logging's name of a level that has none

_SCALES: dict[str, tuple[tuple[float, Level], ...]] = {
    "python": ((50, "CRITICAL"), (40, "ERROR"), (30, "WARNING"), (20, "INFO")),
    "bunyan": ((60, "CRITICAL"), (50, "ERROR"), (40, "WARNING"), (30, "INFO")),
    "otel": ((21, "CRITICAL"), (17, "ERROR"), (13, "WARNING"), (9, "INFO")),
    "syslog": ((7, "DEBUG"), (5, "INFO"), (4, "WARNING"), (3, "ERROR")),
}


def level_of(name: str) -> Level | None:
    """Return the level that a name in any case means (``warn``, ``SEVERE``, ``Level 35``), or None."""
    found = parse_level(name) or _OTHER_NAMES.get(name.upper())
    if found is None and (match := _NUMBERED.fullmatch(name)):
        return level_from_number(int(match[1]), "python")
    return found


def level_from_number(number: float, scale: str) -> Level:
    """Return the level of a number on the scale ``python``, ``bunyan`` (also pino), ``otel`` or ``syslog``."""
    least: Level = "CRITICAL" if scale == "syslog" else "DEBUG"
    return next((level for start, level in _SCALES[scale] if number >= start), least)


_TIME = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"(?:(Z)| ?(UTC)\b|([+-]\d\d):?(\d\d)\b| ([+-]\d\d)(\d\d)\b)?"
)


def time_in(text: str, at: int = 0) -> tuple[datetime | None, int]:
    """Parse a time of an ISO 8601 form in a text.

    Args:
        text: the text.
        at: where in it the time begins.

    Returns:
        The time (None when there is none, or not such a day), naive where it names no zone; and where it ends, ``at``
        when there is none.
    """
    match = _TIME.match(text, at)
    if match is None:
        return None, at
    year, month, day, hour, minute, second, fraction, *zone = match.groups()
    micros = int((fraction or "0").ljust(6, "0")[:6])
    try:
        when = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micros)
        if any(zone):
            hours, minutes = zone[2] or zone[4] or "+00", zone[3] or zone[5] or "00"
            ahead = timedelta(hours=int(hours), minutes=int(hours[0] + minutes))
            when = when.replace(tzinfo=timezone(ahead))
    except ValueError:
        return None, match.end()
    return when, match.end()


def time_from(value: Any) -> datetime | None:
    """Return the time of a JSON value: a text, or seconds, milli-, micro- or nanoseconds since 1970."""
    if isinstance(value, str):
        when, end = time_in(value)
        return when if end == len(value) else None
    if isinstance(value, dict) and isinstance(value.get("seconds"), int):  # protobuf's Timestamp
        value = value["seconds"]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    for limit, unit in ((1e11, 1), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9)):
        if abs(value) < limit:
            try:
                return datetime.fromtimestamp(value / unit, timezone.utc)
            except (ValueError, OverflowError, OSError):
                return None
    return None
