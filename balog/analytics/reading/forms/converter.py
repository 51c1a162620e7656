"""The base classes of all converters, their options, and the lines and times of converted events."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from balog.analytics.reading.blocks import RAW_LIMIT, BadLine, Block, Damage
from balog.analytics.reading.remote import StoragePool, is_remote, local_path
from balog.analytics.reading.validation import NormalizedLines, normalize_lines, try_decode
from balog.common.errors import ConfigError, EventError
from balog.common.storage import StorageError
from balog.common.text import suggest
from balog.event import FACILITY_VERSION, Level
from balog.topics.archives import day_of, derive_id, read_time

FORMS = ("auto", "events", "sqs", "old", "singer", "stderr")
"""The values of the option ``form``; see ``docs/reference/reading.md``."""


def read_form(options: Mapping[str, str]) -> str:
    """Return the data source's option ``form``; "auto" looks at each file's first bytes.

    Raises:
        ConfigError: there is no such form.
    """
    form = options.get("form") or "auto"
    if form not in FORMS:
        raise ConfigError(f"no form {form!r:.60}{suggest(form, FORMS, limit=20)}", "the option form")
    return form


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


class _Times(Struct):
    timestamp: Any = None
    time: Any = None
    ts: Any = None


_times = msgspec.json.Decoder(_Times).decode


def time_of(document: Raw | bytes) -> datetime | None:
    """Return the time in ``timestamp``, ``time`` or ``ts`` of a JSON object (ISO 8601 or seconds), or None."""
    times = try_decode(_times, document) or _Times()
    for value in (times.timestamp, times.time, times.ts):
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            with suppress(EventError):
                return read_time(f"{value:.9f}" if isinstance(value, float) else str(value))
    return None


TIMELESS_ID = "LG0000"
"""Prefix of the ids of events whose lines have no time.

Such an event gets another time when its file is changed or copied, so only the id identifies it.
"""

_MOST = 4 * 1024 * 1024  # bytes that are passed on together
_OVERHEAD = 250  # memory of a line in addition to its bytes
_PIECE = 128 * 1024  # bytes to convert at a time: a line of one character can become an event of 300


class EventLines:
    """Lines that should be events.

    Attributes:
        events: without newlines.
        offsets: the position of each in the (decompressed) file, in bytes.
        raws: the original lines.
        bad: lines that can't be converted.
    """

    __slots__ = ("bad", "events", "offsets", "raws", "size")

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.offsets: list[int] = []
        self.raws: list[bytes] = []
        self.bad: list[BadLine] = []
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self.events or self.bad)

    @property
    def is_full(self) -> bool:
        """Whether the lines should be passed on."""
        return self.size >= _MOST

    def add(self, event: bytes, offset: int, raw: bytes) -> None:
        """Add a line that should be an event."""
        self.events.append(event)
        self.offsets.append(offset)
        self.raws.append(raw)
        self.size += len(event) + _OVERHEAD

    def reject(self, offset: int, reason: str, raw: bytes) -> None:
        """Add a line that is not an event."""
        raw = raw[:RAW_LIMIT]
        self.bad.append(BadLine(offset, reason, raw))
        self.size += len(raw) + _OVERHEAD

    def normalize(self) -> NormalizedLines:
        """Normalize each line, as ``balog.analytics.reading.validation.normalize`` does for a block."""
        return normalize_lines(zip(self.events, self.offsets, self.raws), list(self.bad))


Part: TypeAlias = "Block | EventLines | BadLine"
"""A part of a file: lines that may be events, or an invalid line."""


class Origin:
    """The properties of a file that its events depend on."""

    def __init__(self, path: str, storages: StoragePool) -> None:
        self._path, self._storages = path, storages
        self.application = path.rpartition("/")[2].partition(".")[0] or "unknown"
        self.context = {"application": self.application}

    def make_id(self, offset: int, line: bytes, *, is_timeless: bool = False) -> str:
        """Return the id of an event without one; ``is_timeless`` if its line has no time either."""
        event_id = derive_id(self._path, offset, line)
        return TIMELESS_ID + event_id[len(TIMELESS_ID) :] if is_timeless else event_id

    @cached_property
    def time(self) -> str:
        """The time of events without one: the day of the file's folder ``date=…``, or when the file was modified."""
        folder = self._path.rpartition("/")[0]
        while folder:
            if day := day_of(folder):
                return f"{day}T00:00:00Z"
            folder = folder.rpartition("/")[0]
        return write_time(datetime.fromtimestamp(self._modified(), timezone.utc))

    def _modified(self) -> float:
        with suppress(OSError, StorageError):  # it vanished, or its store knows no times
            if not is_remote(self._path):
                return os.stat(local_path(self._path)).st_mtime
            storage, name = self._storages.store(self._path)
            for entry in storage.entries(name) or ():
                return entry.modified
        return 0.0


def pieces(block: Block, size: int = _PIECE) -> Iterator[tuple[bytes, int]]:
    """Yield a block's lines in pieces of about ``size`` bytes, each with its offset."""
    data, start = bytes(block.data), 0
    while start < len(data):
        end = data.find(b"\n", start + size) + 1 or len(data)
        yield data[start:end], block.offset + start
        start = end


class FormConverter(ABC):
    """Converts the blocks of one file or slice, in order, to lines of events."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin

    @abstractmethod
    def feed(self, block: Block) -> Iterator[Part]:
        """Convert the next block."""

    def reject(self, bad: BadLine) -> Iterator[Part]:
        """Handle a line that is too long; by default it is invalid."""
        yield bad

    @abstractmethod
    def close(self, damage: Damage | None) -> Iterator[Part]:
        """Convert what is left at the end of the file; ``damage`` is set if it ended early."""


class LineConverter(FormConverter):
    """Converter for a form in which each line is independent."""

    @abstractmethod
    def convert(self, piece: bytes, offset: int, lines: EventLines) -> None:
        """Convert whole lines; the first one begins at ``offset``."""

    def feed(self, block: Block) -> Iterator[Part]:
        """Convert the next block, piece by piece."""
        lines = EventLines()
        for piece, offset in pieces(block):
            self.convert(piece, offset, lines)
            if lines.is_full:
                yield lines
                lines = EventLines()
        if lines:
            yield lines

    def close(self, damage: Damage | None) -> Iterator[Part]:
        """Convert the last line of a damaged file if it is whole, and report the damage after it."""
        if damage is None:
            return
        offset, reason, tail = damage
        lines = EventLines()
        if tail:
            self.convert(tail + b"\n", offset, lines)
        if lines and not lines.normalize().bad:
            yield lines
            offset, tail = offset + len(tail), b""
        yield BadLine(offset, reason, tail[:RAW_LIMIT])


class EventsConverter(LineConverter):
    """Passes blocks of events on as they are."""

    def feed(self, block: Block) -> Iterator[Part]:
        """Return the block."""
        yield block

    def convert(self, piece: bytes, offset: int, lines: EventLines) -> None:
        """Add the last line of a damaged file."""
        lines.add(piece[:-1], offset, piece[:-1])
