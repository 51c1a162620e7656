"""Read archived events line by line: JSON lines of the store, and the older ``time⇥channel⇥payload``."""

from __future__ import annotations

import hashlib
import re
from binascii import b2a_base64
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, timezone
from typing import IO, NamedTuple

import msgspec
from msgspec import Raw

from balog.errors import EventError
from balog.event import MAX_EVENT_BYTES, Event, Header, decode, encode
from balog.expressions.functions import parse_time
from balog.singer.batch.compression import Limits, decompress

LIMITS = Limits(decompressed=256 << 30, ratio=1000.0)
"""What a file may hold. Lines are read one by one, so this bounds time, not memory."""

_DAY = re.compile(r"(?:.*/)?date=(\d{4}-\d\d-\d\d)")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?")


_ALPHANUMERIC = bytes.maketrans(b"+/", b"pS")  # an id has letters and digits only, and need not be decoded
_COMPRESSED = re.compile(r"\.(?:gz|zst|bz2)$", re.IGNORECASE)


class Line(NamedTuple):
    """A line of a file: its number from 1, its offset in the decompressed file, and its bytes.

    ``is_whole`` is False for one that is longer than any event; ``data`` is its beginning then. ``is_ended`` is False
    for the last one when no line break follows it: somebody may be writing it.
    """

    number: int
    offset: int
    data: bytes
    is_whole: bool = True
    is_ended: bool = True


def day_of(folder: str) -> date | None:
    """Return the day of an archive's folder ``date=YYYY-MM-DD``; None for other folders."""
    match = _DAY.fullmatch(folder)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def read_lines(source: IO[bytes]) -> Iterator[Line]:
    """Yield the non-empty lines of a plain, gzip or zstd file, detected by its first bytes.

    Never more of it is in memory than a line and a block of 1 MiB.

    Raises:
        BatchError: it is cut off or damaged, after the lines before that; or holds too much, see ``LIMITS``.
        MissingExtraError: zstd, and zstandard is not installed.
    """
    rest, number, offset, too_long = bytearray(), 1, 0, False
    for block in decompress(source, None, LIMITS):
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            length = len(rest) + end - start
            if not too_long:
                rest += block[start:end]
                yield from _line(number, offset, bytes(rest), is_whole=length <= MAX_EVENT_BYTES)
                offset += length + 1
            else:
                offset += end - start + 1
            rest, number, too_long, start = bytearray(), number + 1, False, end + 1
        if too_long:
            offset += len(block) - start
            continue
        rest += block[start:]
        if len(rest) > MAX_EVENT_BYTES:
            yield Line(number, offset, bytes(rest[:MAX_EVENT_BYTES]), is_whole=False)
            offset, too_long, rest = offset + len(rest), True, bytearray()
    yield from _line(number, offset, bytes(rest), is_ended=False)


def _line(number: int, offset: int, data: bytes, is_whole: bool = True, is_ended: bool = True) -> Iterator[Line]:
    if data.strip():
        yield Line(number, offset, data, is_whole, is_ended)


def read_event(line: Line, file: str) -> Event:
    """Read the event in a line.

    One of the older form becomes an event of facility 0.0.1, with an id that follows from the file's name, the line's
    place in it and what it says: read again, also from a copy elsewhere, it is the same event.

    Args:
        file: the file's path or URL; only the last name counts.

    Raises:
        EventError: it is none.
    """
    if not line.is_whole:
        raise EventError(f"longer than {MAX_EVENT_BYTES} bytes, the limit of an event")
    data = line.data.strip(b"\r")
    if data[:1] == b"{" or data.count(b"\t") < 2:
        return decode(data)
    when, channel, payload = data.split(b"\t", 2)
    try:
        header = Header(
            id=derive_id(file, line.offset, line.data),
            channel=channel.decode(),
            timestamp=read_time(when.decode("ascii").strip()),
        )
        return decode(encode(Event(schema="0.0.1", header=header, raw_payload=Raw(_checked(payload)))))
    except UnicodeError as error:
        raise EventError(f"not UTF-8: {error}") from None


def _checked(payload: bytes) -> bytes:
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EventError(f"not JSON: {error}", "$.payload") from None
    return payload


def derive_id(file: str, offset: int, line: bytes) -> str:
    """Return a stable id for an event without one: equal for the same file, whenever and wherever it is read.

    Args:
        file: the file's path or URL; only the last name counts, and of that no ending that names a compression.
        offset: where the line begins in the (decompressed) file, in bytes.
        line: the line without its newline.
    """
    place = f"{_COMPRESSED.sub('', file.rpartition('/')[2])}\0{offset}\0".encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(place + line).digest()[:18]
    return "LG" + b2a_base64(digest)[:22].translate(_ALPHANUMERIC).decode()


def read_time(text: str) -> datetime:
    """Parse an ISO 8601 time, in UTC without a zone, or seconds since the epoch.

    Raises:
        EventError: it is no time.
    """
    when = parse_time(text)
    if when is None and _NUMBER.fullmatch(text):
        with suppress(ValueError, OverflowError, OSError):
            when = datetime.fromtimestamp(float(text), timezone.utc)
    if when is None:
        raise EventError(f"{text[:60]!r} is no time", "$.header.timestamp")
    return when
