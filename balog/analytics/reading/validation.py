"""Tell events from bad lines: a whole block at once when all is well, line by line when it is not.

A reader of history is more lenient than ``balog.event.decode``: unknown keys in the header or at the top are ignored in
every facility version. All else is refused for the same reasons.

Every line is looked at here by a strict parser, since DuckDB, which reads the values, takes NaN, Infinity and a comma
before a closing bracket for JSON. They are bad lines: what is an event must not depend on who reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from balog.analytics.reading.blocks import RAW_LIMIT, Bad, Block, oversized
from balog.duplicate_keys import has_duplicate_key
from balog.errors import EventError
from balog.event import FACILITY_VERSION, MAX_EVENT_BYTES, MAX_ID_LENGTH, Level, check_id, check_keys

__all__ = ["LONGEST_LINE", "NormalizedLines", "count_events", "normalize", "normalize_line"]

_Channel = Annotated[str, Meta(min_length=1, max_length=1000)]
_Timestamp = Annotated[datetime, Meta(tz=True)]
LONGEST_LINE = 1024 * 1024
"""A longer line is left to the line by line reader."""

_PIECE = 256 * 1024  # so many bytes of events at a time stay in the processor's cache


class _Object(Struct, frozen=True, gc=False):
    """Any JSON object; its content is only checked to be JSON."""


class _Header(Struct, gc=False):
    id: str
    channel: _Channel
    timestamp: _Timestamp
    level: Level
    composition: bool = False
    context: _Object = _Object()


class _Header001(Struct, gc=False):
    id: str
    channel: _Channel
    timestamp: _Timestamp
    level: Level | UnsetType = UNSET
    composition: bool = False
    context: _Object = _Object()


class _Line(Struct, gc=False):
    schema: Literal["1.0.0"]
    header: _Header
    payload: Raw


class _Line001(Struct, gc=False):
    schema: Literal["0.0.1"]
    header: _Header001
    payload: Raw


_objects = msgspec.json.Decoder(list[dict[str, Any]]).decode
_encode = msgspec.json.Encoder().encode
_vouchers = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Line001)


def count_events(data: memoryview) -> int | None:
    """Give the number of events in a block of lines, or None when it holds anything that wants a closer look.

    That is a bad line, but also a line of a megabyte, or events of a later facility version or of two together.
    """
    for voucher in _vouchers:
        total = 0
        for piece in _pieces(data):
            if piece is None:
                return None
            try:
                if not piece.isascii():
                    str(piece, "utf-8")
                events = voucher.decode_lines(piece)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                if total:
                    return None
                break
            if not _are_ids([event.header.id for event in events]):
                return None
            if not _are_objects_of_distinct_keys([event.payload for event in events]) or _may_hide_a_key(piece):
                return None
            total += len(events)
        else:
            return total
    return None


def _pieces(data: memoryview) -> Iterator[bytes | None]:
    """Give whole lines, some at a time; None for one that is longer than the longest."""
    start = 0
    while start < len(data):
        piece = bytes(data[start : start + _PIECE])
        end = piece.rfind(b"\n") + 1
        if not end:
            piece = bytes(data[start : start + LONGEST_LINE])
            end = piece.find(b"\n") + 1
        yield piece[:end] if end else None
        start += end


_VISIBLE = re.compile("[!-~]*")
_ESCAPED_LETTER = re.compile(rb"\\u00(?:[4-7]|3[0-9])")


def _are_ids(ids: list[str]) -> bool:
    """Return whether all texts can be ids; quick for those of letters and digits, as balog's own are."""
    text = "".join(ids)
    is_visible = (text.isascii() and text.isalnum()) or _VISIBLE.fullmatch(text) is not None
    lengths = set(map(len, ids))
    return not ids or (is_visible and min(lengths) > 0 and max(lengths) <= MAX_ID_LENGTH)


def _are_objects_of_distinct_keys(payloads: list[Raw]) -> bool:
    """Return whether all payloads are objects in which, at any level, no key comes twice.

    Of two values DuckDB takes the first and msgspec the last. One call reads all payloads, because a call for each
    would take longer than all else that is done here.
    """
    joined = b"[" + b",".join(payloads) + b"]"
    try:
        again = _encode(_objects(joined))  # each key once
    except (msgspec.DecodeError, RecursionError, OverflowError):  # no object, or what only Python reads, such as 1e999
        again = b""
    # A colon may be written as \u003a; else there are as many as keys and colons in texts.
    if again == joined or (b"\\u003" not in joined and again.count(b":") == joined.count(b":")):
        return True
    try:
        return not any(not bytes(payload).startswith(b"{") or has_duplicate_key(payload) for payload in payloads)
    except RecursionError:
        return False


def _may_hide_a_key(piece: bytes) -> bool:
    """Return whether a line has escaped letters, in which a second key can hide from a search, and has a key twice."""
    if b"\\" not in piece or b"\\u00" not in piece or _ESCAPED_LETTER.search(piece) is None:
        return False
    return any(has_duplicate_key(line) for line in piece.split(b"\n") if line.strip())


class _CloseHeader(Struct, kw_only=True):
    id: str
    channel: _Channel
    timestamp: str
    level: Level | UnsetType = UNSET
    composition: bool = False
    context: dict[str, Raw] = {}


class _CloseLine(Struct, kw_only=True):
    schema: str
    header: _CloseHeader
    payload: Raw


_close = msgspec.json.Decoder(_CloseLine)


class NormalizedLines(NamedTuple):
    """The events of a block in their plainest form, where each began, and the lines that are none."""

    events: list[bytes]
    offsets: list[int]
    bad: list[Bad]


def normalize(block: Block) -> NormalizedLines:
    """Look at a block line by line. Lines of nothing but white space are no lines."""
    normalized = NormalizedLines([], [], [])
    offset = block.offset
    for line in bytes(block.data).split(b"\n"):
        if line.strip(b" \t\r"):
            try:
                if len(line) > MAX_EVENT_BYTES:
                    normalized.bad.append(oversized(offset, line))
                else:
                    normalized.events.append(normalize_line(line))
                    normalized.offsets.append(offset)
            except EventError as error:
                normalized.bad.append(Bad(offset, str(error), line[:RAW_LIMIT]))
        offset += len(line) + 1
    return normalized


def normalize_line(line: bytes) -> bytes:
    """Write an event's line in its plainest form: known keys only, and each once.

    Raises:
        EventError: not an event; the text is the same for lines that have the same fault.
    """
    try:
        str(line, "utf-8")
        event = _close.decode(line)
    except UnicodeDecodeError:
        raise EventError("not UTF-8") from None
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `")
        raise EventError(reason[:1].lower() + reason[1:], where.rstrip("`") or "$") from None
    except msgspec.DecodeError as error:
        raise EventError(
            "not JSON: " + re.sub(r" \(byte \d+\)", "", str(error)).removeprefix("JSON is malformed: ")
        ) from None
    except RecursionError:
        raise EventError("not JSON that can be read: nested too deeply") from None
    header = event.header
    _check_version(event.schema)
    check_id(header.id)
    if not bytes(event.payload).startswith(b"{"):
        raise EventError("want an object", "$.payload")
    if header.level is UNSET and event.schema != "0.0.1":
        raise EventError("missing; facility 1.x has one in every event", "$.header.level")
    try:
        msgspec.convert(header.timestamp, _Timestamp).astimezone(timezone.utc)
    except msgspec.ValidationError as error:
        raise EventError(str(error)[:1].lower() + str(error)[1:], "$.header.timestamp") from None
    except OverflowError:  # the parser would refuse all lines that are asked together with this one
        raise EventError("not in the years 1 to 9999 in UTC", "$.header.timestamp") from None
    check_keys(line)
    header.timestamp = header.timestamp.upper()  # RFC 3339 allows a small t and z, the parser does not
    return _encode(event)


@lru_cache(maxsize=256)
def _check_version(version: str) -> None:
    major = FACILITY_VERSION.partition(".")[0]
    if version == "0.0.1" or re.fullmatch(rf"{major}\.[0-9]+\.[0-9]+", version):
        return
    if re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version):
        raise EventError(
            f"facility version {version[:20]} is not one that this release reads ({major}.x and 0.0.1)", "$.schema"
        )
    raise EventError(f"not a version (want something like {FACILITY_VERSION!r})", "$.schema")
