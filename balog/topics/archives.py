"""Read the lines of archives; times and ids of the older form ``time⇥channel⇥payload``."""

from __future__ import annotations

import hashlib
import re
from binascii import b2a_base64
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, timezone
from typing import IO, NamedTuple

from balog.common.errors import EventError
from balog.event import MAX_EVENT_BYTES
from balog.filters.functions import parse_time
from balog.singer.batch.compression import Limits, decompress

LIMITS = Limits(decompressed=256 << 30, ratio=1000.0)
"""Limits of a file. Lines are read one by one, so this bounds time, not memory."""

_DAY = re.compile(r"(?:.*/)?date=(\d{4}-\d\d-\d\d)")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?")


_ALPHANUMERIC = bytes.maketrans(b"+/", b"pS")  # an id has letters and digits only, and need not be decoded
_COMPRESSED = re.compile(r"\.(?:gz|zst|bz2)$", re.IGNORECASE)


class Line(NamedTuple):
    """A line of a file: its number from 1, and its bytes.

    ``is_whole`` is False if the line is longer than any event; ``data`` then is its beginning.
    """

    number: int
    data: bytes
    is_whole: bool = True


def day_of(folder: str) -> date | None:
    """Return the day of an archive's folder ``date=YYYY-MM-DD``; None for other folders."""
    match = _DAY.fullmatch(folder)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def read_lines(source: IO[bytes]) -> Iterator[Line]:
    """Yield the non-empty lines of a plain, gzip or zstd file, detected by its first bytes.

    At most one line and a block of 1 MiB, twice, are in memory.

    Raises:
        BatchError: the file is truncated or damaged, after the lines before that; or it exceeds ``LIMITS``.
        MissingExtraError: the file is compressed with zstd, and zstandard is not installed.
    """
    line, number = bytearray(), 1  # one byte more than an event, to see that it is longer
    for block in decompress(source, None, LIMITS):
        *ends, rest = block.split(b"\n")
        for end in ends:
            line += end[: MAX_EVENT_BYTES + 1 - len(line)]
            yield from _line(number, line)
            number += 1
            line.clear()
        line += rest[: MAX_EVENT_BYTES + 1 - len(line)]
    yield from _line(number, line)


def _line(number: int, data: bytearray) -> Iterator[Line]:
    is_whole = len(data) <= MAX_EVENT_BYTES
    if data.strip() or not is_whole:
        yield Line(number, bytes(data[:MAX_EVENT_BYTES]), is_whole)


def derive_id(file: str, offset: int, line: bytes) -> str:
    """Return a stable id for an event without one: equal for the same file, whenever and wherever it is read.

    Args:
        file: the file's path or URL; only its name counts, without the suffix of a compression.
        offset: where the line begins in the (decompressed) file, in bytes.
        line: the line without its newline.
    """
    origin = f"{_COMPRESSED.sub('', file.rpartition('/')[2])}\0{offset}\0".encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(origin + line).digest()[:18]
    return "LG" + b2a_base64(digest)[:22].translate(_ALPHANUMERIC).decode()


def read_time(text: str) -> datetime:
    """Parse an ISO 8601 time, in UTC without a zone, or seconds since the epoch.

    Raises:
        EventError: the text is not a time.
    """
    when = parse_time(text)
    if when is None and _NUMBER.fullmatch(text):
        with suppress(ValueError, OverflowError, OSError):
            when = datetime.fromtimestamp(float(text), timezone.utc)
    if when is None:
        raise EventError(f"{text[:60]!r} is not a time", "$.header.timestamp")
    return when
