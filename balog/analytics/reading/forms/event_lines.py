"""Lines and times of events that are made from other forms."""

from __future__ import annotations

import re
from datetime import datetime, timezone, tzinfo
from typing import Any

import msgspec
from msgspec import Raw, Struct

from balog.errors import EventError
from balog.event import FACILITY_VERSION, Level
from balog.topics.archives import read_time


class _Header(Struct):
    id: str
    channel: str
    timestamp: str
    level: Level
    composition: bool
    context: dict[str, str]


class _Event(Struct):
    schema: str
    header: _Header
    payload: Any


_encode = msgspec.json.Encoder().encode


def write_line(id: str, channel: str, timestamp: str, level: Level, context: dict[str, str], payload: Any) -> bytes:
    """Return the line of an event of this release's facility version.

    Raises:
        EventError: the payload can't be written as JSON.
    """
    try:
        return _encode(_Event(FACILITY_VERSION, _Header(id, channel, timestamp, level, False, context), payload))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise EventError(f"can't be written: {error}", "$.payload") from None


def write_time(moment: datetime) -> str:
    """Return a time with a zone in the form that events use."""
    return moment.isoformat().replace("+00:00", "Z")


_NAMES_ITS_ZONE = re.compile(r"[\d.]+|.*(?:Z|[+-]\d\d:\d\d)", re.ASCII)


def read_local_time(text: str, zone: tzinfo) -> datetime:
    """Parse ISO 8601, in ``zone`` unless it names another, or seconds since the epoch.

    Raises:
        EventError: it is not a time.
    """
    when = read_time(text)
    if zone is not timezone.utc and not _NAMES_ITS_ZONE.fullmatch(text):
        try:
            return when.replace(tzinfo=zone).astimezone(timezone.utc)
        except OverflowError:
            raise EventError(f"{text[:60]!r} is not a time in UTC", "$.header.timestamp") from None
    return when


class _Times(Struct):
    timestamp: Any = None
    time: Any = None
    ts: Any = None


_times = msgspec.json.Decoder(_Times).decode


def time_of(document: Raw | bytes, zone: tzinfo) -> datetime | None:
    """Return the time in ``timestamp``, ``time`` or ``ts`` of a JSON object (ISO 8601 or seconds), or None."""
    try:
        times = _times(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for value in (times.timestamp, times.time, times.ts):
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            try:
                return read_local_time(f"{value:.9f}" if isinstance(value, float) else str(value), zone)
            except EventError:
                pass
    return None
