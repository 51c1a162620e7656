"""The facility layer: its header, its versions, and what an event of another version has."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from balog.common.errors import EventError
from balog.event.key_access import KeyAccess

FACILITY_VERSION = "0.1.0"
"""The version of the facility layer that this library writes."""

KNOWN_VERSIONS = frozenset({"0.0.1", FACILITY_VERSION, "1.0.0"})  # checkouts before the first release wrote 1.0.0

MAX_CHANNEL_LENGTH = 1000
"""Largest number of characters of a channel's name."""

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

LEVELS: dict[str, int] = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
"""Level names with their numbers in the standard library's logging."""

_LEVEL_ALIASES: dict[str, Level] = {
    "DEBUG": "DEBUG",
    "INFO": "INFO",
    "WARNING": "WARNING",
    "WARN": "WARNING",
    "ERROR": "ERROR",
    "EXCEPTION": "ERROR",
    "CRITICAL": "CRITICAL",
    "FATAL": "CRITICAL",
}


def parse_level(text: str) -> Level | None:
    """Return the level of a name in any case (``warn``, ``Fatal`` …); None for other names."""
    return _LEVEL_ALIASES.get(text.upper())


class Header(KeyAccess, Struct, kw_only=True, forbid_unknown_fields=True):
    """The facility layer: id, time, origin and route. A key works as an attribute does: ``header["channel"]``.

    ``level`` is unset in facility 0.0.1, which has no levels. ``context`` holds ``fqdn``, ``application``,
    ``application_version``, ``process``, ``run_id``, ``trace_id``, ``span_id`` and any other key that was bound.
    """

    id: str
    channel: Annotated[str, Meta(min_length=1, max_length=MAX_CHANNEL_LENGTH)]
    timestamp: Annotated[datetime, Meta(tz=True)]
    level: Level | UnsetType = UNSET
    composition: bool = False
    context: dict[str, Any] = field(default_factory=dict)

    def use_utc(self) -> None:
        """Convert the timestamp to UTC."""
        self.timestamp = in_utc(self.timestamp)


def in_utc(timestamp: datetime) -> datetime:
    """Return an aware time in UTC.

    Raises:
        EventError: the time is naive, or no time in UTC.
    """
    try:
        if timestamp.tzinfo is not None:
            return timestamp.astimezone(timezone.utc)
    except OverflowError:
        pass
    raise EventError(f"{timestamp.isoformat()} is no time in UTC", "$.header.timestamp")


_VERSION = re.compile(r"(0|[1-9]\d{0,8})(?:\.(?:0|[1-9]\d{0,8})){2}", re.ASCII)
_NAIVE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?", re.ASCII)
_members = msgspec.json.Decoder(dict[str, Raw])
_text = msgspec.json.Decoder(str)
_HEADER_KEYS = frozenset(item.encode_name for item in msgspec.structs.fields(Header))


@lru_cache(maxsize=64)
def is_known(version: str) -> bool:
    """Return True for a known facility version, False for a later one of a known major version.

    Raises:
        EventError: the major version is another one, or the text is not a version.
    """
    if version in KNOWN_VERSIONS:
        return True
    match = _VERSION.fullmatch(version)
    if match is None:
        raise EventError(
            f"{version[:40]!r} is not a version (expected something like {FACILITY_VERSION!r})", "$.schema"
        )
    if match[1] == FACILITY_VERSION.partition(".")[0]:
        return False
    raise EventError(f"facility version {version} is not one that this release reads (0.x and 1.0.0)", "$.schema")


def adapt(line: bytes, keys: frozenset[str]) -> tuple[bytes, dict[str, dict[str, Raw]]] | None:
    """Return an event of another version in the form of this one: a later minor version, or a 0.0.1 without time zone.

    Args:
        line: the event.
        keys: those of this version.

    Returns:
        The adapted event, and its unknown keys: ``{"": {…}, "header": {…}}``. None if the version does not explain why
        the event was rejected.

    Raises:
        EventError: this release does not read the version.
        msgspec.DecodeError: the line is not JSON.
    """
    try:
        top = _members.decode(line)
        version, header = _text.decode(top["schema"]), _members.decode(top["header"])
        if not is_known(version):
            unknown = {"": _take_unknown(top, keys), "header": _take_unknown(header, _HEADER_KEYS)}
            return msgspec.json.encode({**top, "header": header}), unknown
        timestamp = _text.decode(header["timestamp"])
        zoned = with_zone(timestamp) if version == "0.0.1" else timestamp
    except (KeyError, msgspec.ValidationError):
        return None
    adapted: dict[str, Any] = {**top, "header": {**header, "timestamp": zoned}}
    return None if zoned == timestamp else (msgspec.json.encode(adapted), {})


def _take_unknown(members: dict[str, Raw], known: frozenset[str]) -> dict[str, Raw]:
    return {key: members.pop(key) for key in list(members) if key not in known}


def with_zone(timestamp: str) -> str:
    """Return a timestamp of facility 0.0.1, which is in UTC if it has no zone; other texts stay as they are."""
    return timestamp + "Z" if _NAIVE.fullmatch(timestamp) else timestamp
