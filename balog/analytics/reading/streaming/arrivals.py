"""The log of arrivals: new files, and lines that were added to files. A stream's offsets are numbers in this log.

An offset that named all files ever read would take megabytes. Instead, each arrival (a new file, or lines added to one)
gets a number in a log beside the stream's checkpoint, and the offset is that number. The log is synced to disk before
Spark learns the number, so a restarted stream plans exactly the same bytes.

A plain file on a local disk may still be growing, so only its whole lines arrive. A compressed file, a ``.json`` file
(a document, not lines) and a file on a store arrive whole.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple
from uuid import uuid4

import msgspec

from balog.analytics.reading.blocks import packing
from balog.analytics.reading.remote import is_remote
from balog.analytics.reading.tasks import Slice, SourceFile
from balog.analytics.reading.validation import try_decode
from balog.common.errors import ConfigError
from balog.common.storage import Storage, StorageError
from balog.event import MAX_EVENT_BYTES

SETTLED = 60.0
"""Seconds after which a last line without a newline counts as whole."""

_WHOLE = (".gz", ".zst", ".json")
_HEAD = 1024
_TAIL = 64 * 1024
_FOLD = 50  # segments; then the committed ones are merged into one
_SEEN = ".seen.jsonl"
_SEGMENT = ".jsonl"


class Arrival(NamedTuple):
    """Bytes ``start`` to ``end`` (None: the end of the file) of a file of ``size`` bytes, modified at ``modified``.

    ``head`` is a checksum of the first bytes before ``end``, at most 1024. It distinguishes a file that grew from
    another file of the same name.
    """

    path: str
    start: int
    end: int | None
    size: int
    modified: float
    head: int = 0

    @property
    def slice(self) -> Slice:
        """The slice to read."""
        return Slice(self.path, self.start, self.end)

    @property
    def bytes(self) -> int:
        """The number of bytes to read."""
        return (self.size if self.end is None else self.end) - self.start


_decode = msgspec.json.Decoder(Arrival).decode
_any = msgspec.json.Decoder(msgspec.Raw).decode
_encode = msgspec.json.Encoder().encode


class Arrivals:
    """The log of one stream.

    Args:
        state: the storage of logs.
        name: the log's name; "" creates a log with a new name.

    Raises:
        ConfigError: the log can't be read.
    """

    def __init__(self, state: Storage, name: str = "") -> None:
        self.name = name or uuid4().hex[:12]
        self._state = state
        self._first = 0  # earlier arrivals are known by their files only
        self._arrivals: list[Arrival] = []
        self._seen: dict[str, Arrival] = {}
        self._segments: list[int] = []
        self._committed = 0
        if name:
            self._load()

    @property
    def last(self) -> int:
        """The number of the last arrival."""
        return self._first + len(self._arrivals)

    def _load(self) -> None:
        try:
            listed = [path.partition("/") for path, _ in self._state.files(lambda folder: folder == self.name)]
        except StorageError as error:
            raise ConfigError(f"the log of what came to the stream's files can't be read: {error}") from None
        names = sorted(name for folder, _, name in listed if folder == self.name)
        folded = [name for name in names if name.endswith(_SEEN)]
        if folded:
            self._first = int(folded[-1].removesuffix(_SEEN))
            self._seen = {arrival.path: arrival for arrival in self._read(folded[-1])}
        for name in names:
            if name.endswith(_SEEN) or int(name.removesuffix(_SEGMENT)) <= self._first:
                continue
            self._arrivals += self._read(name)
            self._segments.append(self.last)
        for arrival in self._arrivals:
            self._seen[arrival.path] = arrival

    def _read(self, name: str) -> list[Arrival]:
        data = self._state.read(f"{self.name}/{name}", 1 << 32) or b""
        return [_decode(line) for line in data.splitlines()]

    def check(self, number: int) -> None:
        """Check that an offset is in this log.

        Raises:
            ConfigError: the log does not have this arrival yet, or no longer.
        """
        if not self._first <= number <= self.last:
            raise ConfigError(
                f"the log of what came to the stream's files has no arrival {number}; bring the folder back as it was, "
                "or begin with a new checkpoint",
                f"{self._state.url}/{self.name}",
            )

    def notice(self, files: Sequence[SourceFile]) -> int:
        """Log new files and lines, and return the number of the last arrival."""
        now = time.time()
        new = [arrival for file in files if (arrival := self._arrival(file, now)) is not None]
        if new:
            self._write(self.last + len(new), _SEGMENT, new)
            self._arrivals += new
            self._segments.append(self.last)
            self._seen.update((entry.path, entry) for entry in new)
        return self.last

    def _write(self, number: int, ending: str, arrivals: Sequence[Arrival]) -> None:
        data = b"".join(_encode(arrival) + b"\n" for arrival in arrivals)
        self._state.write(data, f"{self.name}/{number:012d}{ending}")

    def _arrival(self, file: SourceFile, now: float) -> Arrival | None:
        seen = self._seen.get(file.path)
        if seen is not None and (file.size, file.modified) == (seen.size, seen.modified):
            is_read = seen.end is None or seen.end >= seen.size
            if is_read or now - file.modified < SETTLED:
                return None
        if is_remote(file.path) or file.path.endswith(_WHOLE):
            return Arrival(file.path, 0, None, file.size, file.modified)
        try:
            with open(file.path, "rb") as opened:
                return _lines_of(opened, file, seen, is_settled=now - file.modified >= SETTLED)
        except FileNotFoundError:
            return None
        except OSError:  # the reader reports it
            return Arrival(file.path, 0, None, file.size, file.modified)

    def end_within(self, start: int, most_bytes: int | None = None) -> int:
        """Return the number of the last arrival after ``start`` within the limit, at least one if there is any."""
        self.check(start)
        end, size = start, 0
        for arrival in self._arrivals[start - self._first :]:
            size += arrival.bytes
            if end > start and size > (most_bytes or math.inf):
                break
            end += 1
        return end

    def between(self, start: int, end: int) -> list[Arrival]:
        """Return the arrivals after ``start`` up to ``end``."""
        self.check(start)
        self.check(end)
        return self._arrivals[start - self._first : end - self._first]

    def commit(self, number: int, files: Sequence[SourceFile]) -> None:
        """Mark arrivals up to ``number`` as read, and compact the log from time to time.

        Args:
            number: the number of an arrival.
            files: the files that exist; the log forgets all others when it is compacted.
        """
        done, self._committed = self._committed, number
        old = [last for last in self._segments if last <= done]
        if len(old) < _FOLD:
            return
        there = {file.path for file in files}
        count = old[-1] - self._first
        folded = {arrival.path: arrival for arrival in self._seen_before(count) if arrival.path in there}
        self._write(old[-1], _SEEN, list(folded.values()))
        previous, self._first = self._first, old[-1]
        self._arrivals = self._arrivals[count:]
        self._segments = self._segments[len(old) :]
        self._seen = folded | {arrival.path: arrival for arrival in self._arrivals}
        for last in old:
            self._state.remove(f"{self.name}/{last:012d}{_SEGMENT}")
        if previous:
            self._state.remove(f"{self.name}/{previous:012d}{_SEEN}")

    def _seen_before(self, count: int) -> Iterator[Arrival]:
        later = {arrival.path for arrival in self._arrivals[count:]}
        yield from (arrival for path, arrival in self._seen.items() if path not in later)
        yield from self._arrivals[:count]


def _lines_of(opened: IO[bytes], file: SourceFile, seen: Arrival | None, *, is_settled: bool) -> Arrival | None:
    head = opened.read(_HEAD)
    if packing(head[:4]):
        return Arrival(file.path, 0, None, file.size, file.modified)
    start = 0
    if seen is not None and seen.end is not None and seen.end <= file.size:
        is_same = zlib.crc32(head[: min(_HEAD, seen.end)]) == seen.head
        start = seen.end if is_same else 0
    end = _end_of_lines(opened, start, file.size, is_settled=is_settled)
    if end <= start:
        return None
    return Arrival(file.path, start, end, file.size, file.modified, zlib.crc32(head[: min(_HEAD, end)]))


def _end_of_lines(opened: IO[bytes], start: int, end: int, *, is_settled: bool) -> int:
    """Return the position of the end of the last whole line between two positions."""
    at, rest = end, b""
    while at > start and len(rest) <= MAX_EVENT_BYTES:
        step = min(max(_TAIL, len(rest)), at - start)
        at -= step
        opened.seek(at)
        piece = opened.read(step)
        rest = piece + rest
        newline = piece.rfind(b"\n")
        if newline >= 0:
            at, rest = at + newline + 1, rest[newline + 1 :]
            break
    return end if is_settled or _is_object(rest) else at


def _is_object(text: bytes) -> bool:
    """Return whether a text without a newline is a whole line: a truncated JSON object is not valid JSON."""
    return text.lstrip().startswith(b"{") and try_decode(_any, text) is not None
