"""Separates events from invalid lines: whole blocks if all lines are valid, otherwise line by line.

A reader of history is more lenient than ``balog.event.decode``: it ignores unknown keys in the header and at the top
level in every facility version. It rejects everything else for the same reasons.

This module checks every line with a strict parser, because DuckDB, which reads the values, accepts NaN, Infinity and
trailing commas. Such lines are invalid: whether a line is an event must not depend on the reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from balog.analytics.reading.blocks import RAW_LIMIT, BadLine, Block, oversized
from balog.common.duplicate_keys import has_duplicate_key
from balog.common.errors import EventError
from balog.event import FACILITY_VERSION, MAX_EVENT_BYTES, MAX_ID_LENGTH, Level, check_id, check_keys, with_zone

_Channel = Annotated[str, Meta(min_length=1, max_length=1000)]
_Timestamp = Annotated[datetime, Meta(tz=True)]
LONGEST_LINE = 1024 * 1024
"""Longer lines are read line by line."""

_PIECE = 256 * 1024  # bytes of events that stay in the processor's cache


class AnyObject(Struct, frozen=True, gc=False):
    """Any JSON object; its content is only checked to be JSON."""


class _Header(Struct, gc=False):
    id: str
    channel: _Channel
    timestamp: _Timestamp
    level: Level
    composition: bool = False
    context: AnyObject = AnyObject()


class _Header001(_Header, gc=False):
    level: Level | UnsetType = UNSET  # type: ignore[assignment]


class _Line(Struct, gc=False):
    schema: Literal["0.1.0", "1.0.0"]
    header: _Header
    payload: Raw


class _Line001(_Line, gc=False):
    schema: Literal["0.0.1"]  # type: ignore[assignment]
    header: _Header001


_Decoded = TypeVar("_Decoded")


def try_decode(decode: Callable[[bytes], _Decoded], data: bytes) -> _Decoded | None:
    """Return decoded JSON, or None if it is not valid."""
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_objects = msgspec.json.Decoder(list[dict[str, Any]]).decode
_encode = msgspec.json.Encoder().encode
_strict_decoders = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Line001)


def count_events(data: memoryview) -> int | None:
    """Return the number of events in a block of lines, or None if the block has to be read line by line.

    That is the case for an invalid line, a line of more than a megabyte, a later facility version, or several versions.
    """
    for decoder in _strict_decoders:
        total = 0
        for piece in _pieces(data):
            if piece is None:
                return None
            try:
                if not piece.isascii():
                    str(piece, "utf-8")
                events = decoder.decode_lines(piece)
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
    """Yield pieces of whole lines; None for a line that is too long."""
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
_ESCAPED_CHARACTER = re.compile(rb"\\u00(?:[4-7]|3[0-9])")


def _are_ids(ids: list[str]) -> bool:
    """Return whether all texts can be ids; this is fast for the ids that balog generates."""
    text = "".join(ids)
    is_visible = (text.isascii() and text.isalnum()) or _VISIBLE.fullmatch(text) is not None
    lengths = set(map(len, ids))
    return not ids or (is_visible and min(lengths) > 0 and max(lengths) <= MAX_ID_LENGTH)


def _are_objects_of_distinct_keys(payloads: list[Raw]) -> bool:
    """Return whether all payloads are objects without duplicate keys, at any level.

    For duplicate keys, DuckDB uses the first value and msgspec the last. All payloads are decoded in one call, because
    one call for each would take longer than everything else here.
    """
    joined = b"[" + b",".join(payloads) + b"]"
    try:
        again = _encode(_objects(joined))  # each key once
    except (msgspec.DecodeError, RecursionError, OverflowError):
        again = b""  # not an object, or a number that only Python reads, such as 1e999
    # A colon may be written as \u003a; otherwise count the colons of keys and strings.
    if again == joined or (b"\\u003" not in joined and again.count(b":") == joined.count(b":")):
        return True
    try:
        return not any(not bytes(payload).startswith(b"{") or has_duplicate_key(payload) for payload in payloads)
    except RecursionError:
        return False


def _may_hide_a_key(piece: bytes) -> bool:
    """Return whether a line with Unicode escapes, which can hide a duplicate key from a search, has a duplicate key."""
    if _ESCAPED_CHARACTER.search(piece) is None:
        return False
    return any(has_duplicate_key(line) for line in piece.split(b"\n") if line.strip())


class _LenientHeader(Struct, kw_only=True):
    id: str
    channel: _Channel
    timestamp: str
    level: Level | UnsetType = UNSET
    composition: bool = False
    context: dict[str, Raw] = {}

    def check_time(self, *, needs_zone: bool) -> None:
        """Check the time, and write it as the parser reads it: with a zone and a capital T and Z.

        Raises:
            EventError: it is not a time, or beyond the years 1 to 9999.
        """
        timestamp = self.timestamp if needs_zone else with_zone(self.timestamp)
        try:
            msgspec.convert(timestamp, _Timestamp).astimezone(timezone.utc)
        except msgspec.ValidationError as error:
            raise EventError(str(error)[:1].lower() + str(error)[1:], "$.header.timestamp") from None
        except OverflowError:  # the parser would reject all lines of the same query
            raise EventError("not in the years 1 to 9999 in UTC", "$.header.timestamp") from None
        self.timestamp = timestamp.upper()


class _LenientLine(Struct, kw_only=True):
    schema: str
    header: _LenientHeader
    payload: Raw


_decode_lenient = msgspec.json.Decoder(_LenientLine).decode


class NormalizedLines(NamedTuple):
    """The normalized events of a block, their offsets, and the invalid lines."""

    events: list[bytes]
    offsets: list[int]
    bad: list[BadLine]


def normalize(block: Block) -> NormalizedLines:
    """Normalize a block line by line; blank lines are skipped."""
    return normalize_lines(_lines(block), [])


def _lines(block: Block) -> Iterator[tuple[bytes, int, bytes]]:
    offset = block.offset
    for line in bytes(block.data).split(b"\n"):
        if line.strip(b" \t\r"):
            yield line, offset, line
        offset += len(line) + 1


def normalize_lines(lines: Iterable[tuple[bytes, int, bytes]], bad: list[BadLine]) -> NormalizedLines:
    """Normalize lines that should be events, each with its offset and its original; add invalid ones to ``bad``."""
    normalized = NormalizedLines([], [], bad)
    for line, offset, raw in lines:
        try:
            if len(line) > MAX_EVENT_BYTES:
                bad.append(oversized(offset, raw))
            else:
                normalized.events.append(normalize_line(line))
                normalized.offsets.append(offset)
        except EventError as error:
            bad.append(BadLine(offset, str(error), raw[:RAW_LIMIT]))
    return normalized


def normalize_line(line: bytes) -> bytes:
    """Return an event's line in normal form: only known keys, each once.

    Raises:
        EventError: the line is not an event; the same error has the same text.
    """
    try:
        str(line, "utf-8")
        event = _decode_lenient(line)
    except UnicodeDecodeError:
        raise EventError("not UTF-8") from None
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `")
        raise EventError(reason[:1].lower() + reason[1:], where.rstrip("`") or "$") from None
    except msgspec.DecodeError as error:
        reason = re.sub(r" \(byte \d+\)", "", str(error)).removeprefix("JSON is malformed: ")
        if reason == "trailing characters" and b"\r" in line.strip():
            reason = r"several lines that end in a bare carriage return (\r); end each line with \n or \r\n"
        raise EventError(f"not JSON: {reason}") from None
    except RecursionError:
        raise EventError("not JSON that can be read: nested too deeply") from None
    header = event.header
    _check_version(event.schema)
    check_id(header.id)
    if not bytes(event.payload).startswith(b"{"):
        raise EventError("expected an object", "$.payload")
    if header.level is UNSET and event.schema != "0.0.1":
        raise EventError("missing; each event since facility 0.1.0 has one", "$.header.level")
    header.check_time(needs_zone=event.schema != "0.0.1")
    check_keys(line)
    return _encode(event)


@lru_cache(maxsize=256)
def _check_version(version: str) -> None:
    major = FACILITY_VERSION.partition(".")[0]
    if version == "1.0.0" or re.fullmatch(rf"{major}\.[0-9]+\.[0-9]+", version):
        return
    if re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version):
        raise EventError(
            f"facility version {version[:20]} is not one that this release reads ({major}.x and 1.0.0)", "$.schema"
        )
    raise EventError(f"not a version (expected something like {FACILITY_VERSION!r})", "$.schema")
