"""Reads a file as blocks of whole lines, in bounded memory, decompressed up to the first damaged byte."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from io import BufferedReader
from typing import BinaryIO, NamedTuple

from balog.analytics.reading.remote import StoragePool
from balog.analytics.reading.tasks import Slice
from balog.event import MAX_EVENT_BYTES
from balog.singer.batch.compression import NO_LIMITS, BlocksFile, decompress, seen_compression
from balog.singer.batch.dialects import BatchError


def packing(first: bytes) -> str:
    """Return the compression of a file from its first four bytes: "gzip", "zstd", or "" for none."""
    seen = seen_compression(first)
    return seen if seen in ("gzip", "zstd") else ""


RAW_LIMIT = 64 * 1024
"""Bytes of an invalid line that are kept."""

_BLOCK = 20 * 1024 * 1024  # more than the largest event
_READ = 1024 * 1024
_LOOK = 64 * 1024  # bytes to read at a time in search of a newline


_HERE = StoragePool()


class Block(NamedTuple):
    """Whole lines, each with its newline. ``offset`` is their position in the (decompressed) file, in bytes.

    ``data`` is a view of a buffer; the next block overwrites it.
    """

    offset: int
    data: memoryview


class BadLine(NamedTuple):
    """A line that is not an event: its offset, the reason, and its first bytes."""

    offset: int
    reason: str
    raw: bytes


class Damage(NamedTuple):
    """The position from which a file can't be read. ``tail`` is the incomplete line before it, which may be empty."""

    offset: int
    reason: str
    tail: bytes


def new_buffer() -> bytearray:
    """Return a buffer for blocks; reuse it for every slice."""
    return bytearray(_BLOCK + _READ)


def read_blocks(piece: Slice, buffer: bytearray, storages: StoragePool = _HERE) -> Iterator[Block | BadLine | Damage]:
    """Yield the lines that begin in a slice. A line of more than 16 MiB is yielded as ``BadLine``.

    The first slice of a compressed file has the whole file. An error of opening or reading is yielded as ``Damage``.
    """
    try:
        file = storages.open(piece.path)
    except OSError as error:
        yield Damage(piece.start, _unreadable(error), b"")
        return
    with file:
        try:
            packed = packing(file.read(4))
            if packed:
                start, length = 0, None
                file.seek(0)
            else:
                start = _next_line(file, piece.start)
                length = None if piece.end is None else _next_line(file, piece.end) - start
                file.seek(start)
        except OSError as error:
            yield Damage(piece.start, _unreadable(error), b"")
            return
        if not packed:
            yield from map(_without_mark, _blocks(_Plain(file, length), start, buffer))
        elif not piece.start:
            yield from map(_without_mark, _blocks(BlocksFile(decompress(file, packed, NO_LIMITS)), 0, buffer))


def _without_mark(part: Block | BadLine | Damage) -> Block | BadLine | Damage:
    """Remove a byte order mark from the beginning of a file."""
    size = len(BOM_UTF8)
    if isinstance(part, Block) and not part.offset and bytes(part.data[:size]) == BOM_UTF8:
        return Block(size, part.data[size:])
    if isinstance(part, Damage) and not part.offset and part.tail.startswith(BOM_UTF8):
        return Damage(size, part.reason, part.tail[size:])
    return part


def _unreadable(error: OSError) -> str:
    return f"can't be read: {error.strerror or error}"


def _blocks(source: _Plain | BlocksFile, offset: int, buffer: bytearray) -> Iterator[Block | BadLine | Damage]:
    view = memoryview(buffer)
    size, skipping, damage = 0, False, ""
    while True:
        try:
            count = source.readinto(view[size : size + _READ])
        except BatchError as error:
            count, damage = 0, str(error)
        except OSError as error:
            count, damage = 0, _unreadable(error)
        if not count:
            break
        if skipping:
            end = buffer.find(b"\n", 0, count) + 1
            offset += end or count
            if not end:
                continue
            skipping, size = False, count - end
            view[:size] = view[end:count]
            continue
        size += count
        if size < _BLOCK:
            continue
        end = buffer.rfind(b"\n", 0, size) + 1
        if end:
            yield Block(offset, view[:end])
            offset += end
            view[: size - end] = view[end:size]
            size -= end
        else:
            yield oversized(offset, view[:size])
            offset, size, skipping = offset + size, 0, True
    end = buffer.rfind(b"\n", 0, size) + 1 if damage else size
    whole = end
    if whole and buffer[whole - 1] != 10:
        buffer[whole] = 10
        whole += 1
    if whole:
        yield Block(offset, view[:whole])
    if damage:
        yield Damage(offset + end, damage, bytes(view[end:size]))


def oversized(offset: int, line: bytes | memoryview) -> BadLine:
    """Return the invalid line for a line that is too long."""
    return BadLine(offset, f"longer than {MAX_EVENT_BYTES >> 20} MiB", bytes(line[:RAW_LIMIT]))


def _next_line(file: BinaryIO, position: int) -> int:
    """Return the offset of the first line that begins at or after ``position``."""
    if position == 0:
        return 0
    at = position - 1
    file.seek(at)
    while chunk := file.read(_LOOK):
        newline = chunk.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(chunk)
    return at


class _Plain:
    """The next ``length`` bytes of a file, or the rest of it if ``length`` is None.

    ``readinto`` returns the number of bytes, 0 at the end.
    """

    def __init__(self, file: BufferedReader, length: int | None) -> None:
        self._file, self._left = file, length

    def readinto(self, into: memoryview) -> int:
        if self._left is not None:
            into = into[: self._left]
        count = self._file.readinto(into) if len(into) else 0
        if self._left is not None:
            self._left -= count
        return count
