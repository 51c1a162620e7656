"""The parsed form of a line of a tap's stderr; levels, times and metrics in such lines."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

import msgspec
from msgspec import Struct, field

from balog.event import Event, Level, parse_level
from balog.singer.messages import metric_payload

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
    level = parse_level(name) or _OTHER_NAMES.get(name.upper())
    if level is None and (match := _NUMBERED.fullmatch(name)):
        return level_from_number(int(match[1]), "python")
    return level


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


class LogLine(Struct, kw_only=True):
    """One parsed line of any dialect.

    ``event`` is set, and all else unset, when the line is a whole event already. ``read_line`` gives times in UTC.
    ``is_uncaught`` marks a traceback that no logger wrote: the interpreter's own. ``takes_traceback`` is False for
    lines that never have one of their own, as those of Python's ``warnings``.
    """

    level: Level = "INFO"
    message: str = ""
    logger: str | None = None
    timestamp: datetime | None = None
    metric: dict[str, Any] | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    exception: dict[str, Any] | None = None
    exc_text: str | None = None
    event: Event | None = None
    is_uncaught: bool = False
    takes_traceback: bool = True

    def use_utc(self, zone: tzinfo | None) -> None:
        """Convert the time to UTC, from a zone if it names none itself; None is this machine's."""
        when = self.timestamp
        if when is None:
            return
        try:
            local = when if zone is None or when.tzinfo is not None else when.replace(tzinfo=zone)
            self.timestamp = local.astimezone(timezone.utc)
        except (ValueError, OverflowError):
            self.timestamp = None


_MAX_LITERAL = 10_000
_METRIC = re.compile(r"\s*(?:[A-Z]{4,8} )?METRIC:?\s*")


def metric_in(message: str) -> dict[str, Any] | None:
    """Return the metric payload in a message, or None.

    Forms: ``METRIC: {…}`` as JSON (singer-python, Meltano SDK), ``INFO METRIC: {…}`` as JSON or as Python shows a dict
    (older SDKs).
    """
    match = _METRIC.match(message)
    if match is None:
        return None
    text = message[match.end() :].strip()
    try:
        point = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        if not text.startswith("{'"):
            return None
        point = _literal(text)
        try:
            msgspec.json.encode(point)  # a Python literal may have no JSON form
        except (TypeError, ValueError, RecursionError):
            return None
    payload = metric_payload(point)
    return payload if payload is None or math.isfinite(payload["value"]) else None


def _literal(text: str) -> Any:
    """Return the value of a Python literal; None when it is not one, or too long."""
    if len(text) > _MAX_LITERAL:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)  # constants only
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, OverflowError):
        return None


_EXCEPTION_LINE = re.compile(r"(?:  \| )?(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)


def is_below_traceback(line: str) -> bool:
    """Return whether a line is of the frames of a traceback, also as rich and loguru draw them."""
    return line.startswith((" ", "\t", "│", "╰", "> File "))


def exception_in(trace: Sequence[str], exception: str = "") -> dict[str, Any] | None:
    """Return type and message from a traceback's lines: the last unindented line, and the following ones.

    Args:
        trace: the lines.
        exception: the line with the type, if it is known.
    """
    last = len(trace) - 1
    while exception and last > 0 and trace[last] != exception:
        last -= 1
    for index in range(last or len(trace) - 1, 0, -1):
        match = _EXCEPTION_LINE.match(trace[index])
        before = trace[index - 1] or (trace[index - 2] if index > 1 else "")  # loguru leaves a line empty
        if match and is_below_traceback(before):
            message = "\n".join([match["message"] or "", *trace[index + 1 :]])
            return {"type": match["type"], "message": message.rstrip()}
    return None
