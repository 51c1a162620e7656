"""What converters of all forms have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone, tzinfo
from functools import cached_property

from balog.analytics.reading.blocks import RAW_LIMIT, Bad, Block, Damage, oversized
from balog.analytics.reading.forms.event_lines import write_time
from balog.analytics.reading.forms.options import FormOptions
from balog.analytics.reading.remote import StoragePool, is_remote, local_path
from balog.analytics.reading.validation import NormalizedLines, normalize_line
from balog.errors import EventError
from balog.event import MAX_EVENT_BYTES
from balog.storage import StorageError
from balog.topics.archives import day_of, derive_id

__all__ = ["TIMELESS_ID", "EventLines", "FormConverter", "LineConverter", "Origin", "pieces"]

TIMELESS_ID = "LG0000"
"""What the ids of events begin with whose lines say no time: they get another one when their file is changed or copied,
so that only the id tells that they are the same."""

_MOST = 4 * 1024 * 1024  # bytes that are handed on together
_OVERHEAD = 250  # what a line takes in memory beside its bytes
_PIECE = 128 * 1024  # bytes that are converted at a time: a line of one character becomes an event of 300


class EventLines:
    """Lines that should be events.

    Attributes:
        events: without newlines.
        offsets: where in the (decompressed) file each came from, in bytes.
        raws: what each came from.
        bad: what no event could be made of.
    """

    __slots__ = ("bad", "events", "offsets", "raws", "size")

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.offsets: list[int] = []
        self.raws: list[bytes] = []
        self.bad: list[Bad] = []
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self.events or self.bad)

    @property
    def is_full(self) -> bool:
        """Whether it is time to hand these on."""
        return self.size >= _MOST

    def add(self, event: bytes, offset: int, raw: bytes) -> None:
        """Add a line that should be an event."""
        self.events.append(event)
        self.offsets.append(offset)
        self.raws.append(raw)
        self.size += len(event) + _OVERHEAD

    def refuse(self, offset: int, reason: str, raw: bytes) -> None:
        """Add something that is none."""
        raw = raw[:RAW_LIMIT]
        self.bad.append(Bad(offset, reason, raw))
        self.size += len(raw) + _OVERHEAD

    def normalize(self) -> NormalizedLines:
        """Look at each line by itself, as ``balog.analytics.reading.validation.normalize`` does at those of a block."""
        normalized = NormalizedLines([], [], list(self.bad))
        for event, offset, raw in zip(self.events, self.offsets, self.raws):
            if len(event) > MAX_EVENT_BYTES:
                normalized.bad.append(oversized(offset, raw))
                continue
            try:
                normalized.events.append(normalize_line(event))
            except EventError as error:
                normalized.bad.append(Bad(offset, str(error), raw[:RAW_LIMIT]))
            else:
                normalized.offsets.append(offset)
        return normalized


class Origin:
    """The file that lines come from, as far as events made of them depend on it."""

    def __init__(self, path: str, options: FormOptions, storages: StoragePool) -> None:
        self._path, self._storages = path, storages
        self.zone: tzinfo = options.zone
        self.application: str = options.application or path.rpartition("/")[2].partition(".")[0] or "unknown"
        self.context = {"application": self.application}

    def make_id(self, offset: int, line: bytes, *, is_timeless: bool = False) -> str:
        """Make the id of an event that came without one; ``is_timeless`` when its line does not say its time either."""
        made = derive_id(self._path, offset, line)
        return TIMELESS_ID + made[len(TIMELESS_ID) :] if is_timeless else made

    @cached_property
    def time(self) -> str:
        """The time of events that came without one: the day of the file's folder ``date=…``, else its last change."""
        folder = self._path.rpartition("/")[0]
        while folder:
            if day := day_of(folder):
                return f"{day}T00:00:00Z"
            folder = folder.rpartition("/")[0]
        return write_time(datetime.fromtimestamp(self._modified(), timezone.utc))

    def _modified(self) -> float:
        with suppress(OSError, StorageError):  # it went away meanwhile, or is nothing that anybody knows a time of
            if not is_remote(self._path):
                return os.stat(local_path(self._path)).st_mtime
            storage, name = self._storages.store(self._path)
            for entry in storage.entries(name) or ():
                return entry.modified
        return 0.0


def pieces(block: Block, size: int = _PIECE) -> Iterator[tuple[bytes, int]]:
    """Give a block's lines some at a time, about so many bytes, each piece with its offset."""
    data, start = bytes(block.data), 0
    while start < len(data):
        end = data.find(b"\n", start + size) + 1 or len(data)
        yield data[start:end], block.offset + start
        start = end


class FormConverter(ABC):
    """Makes lines of events out of one file's (or slice's) blocks, which come in order."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin

    @abstractmethod
    def feed(self, block: Block) -> Iterator[EventLines]:
        """Take the next block."""

    def refuse(self, bad: Bad) -> Iterator[EventLines | Bad]:
        """Take a line that was too long to be read; by default it is as bad as it looks."""
        yield bad

    def close(self, damage: Damage | None) -> Iterator[EventLines | Bad]:
        """End the file; ``damage`` says why it ended where it should not have."""
        if damage is not None:
            yield Bad(damage.offset, damage.reason, damage.tail[:RAW_LIMIT])


class LineConverter(FormConverter):
    """Of a form in which every line stands for itself."""

    @abstractmethod
    def convert(self, piece: bytes, offset: int, lines: EventLines) -> None:
        """Make lines of events out of whole lines, the first of which begins at ``offset``."""

    def feed(self, block: Block) -> Iterator[EventLines]:
        """Take the next block, piece by piece."""
        lines = EventLines()
        for piece, offset in pieces(block):
            self.convert(piece, offset, lines)
            if lines.is_full:
                yield lines
                lines = EventLines()
        if lines:
            yield lines

    def close(self, damage: Damage | None) -> Iterator[EventLines | Bad]:
        """Take the line at which the file stops if it is whole, and report the damage behind it."""
        if damage is None:
            return
        offset, reason, tail = damage
        found = list(self.feed(Block(offset, memoryview(tail + b"\n")))) if tail else []
        if found and not any(lines.normalize().bad for lines in found):
            yield from found
            offset, tail = offset + len(tail), b""
        yield Bad(offset, reason, tail[:RAW_LIMIT])
