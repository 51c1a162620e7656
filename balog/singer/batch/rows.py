"""Rows as bytes of JSON objects, for readers and writers of every format; files of such rows, JSON lines."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import IO, Any

import msgspec
from msgspec import Raw

from balog.singer.batch.compression import compress
from balog.singer.batch.dialects import BatchError


def read_jsonl(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Return the rows of a file, without empty lines and a byte order mark.

    Raises:
        BatchError: a line is not a JSON object, or too long; with its number.
    """
    for number, line in enumerate(split_lines(blocks), 1):
        row = (line.removeprefix(BOM_UTF8) if number == 1 else line).strip()
        if not row:
            continue
        if not is_object(row):
            raise BatchError(f"line {number} is not a JSON object")
        yield row


MAX_ROW_BYTES = 16 << 20
"""The longest row that is read, and so the memory that one needs."""

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode


class DoesNotFit(Exception):
    """A row has a property without a column in the open file, or a value that its column can't hold.

    The columns know it now: a new file takes the row.
    """


class RowWriter(ABC):
    """Writes rows into one file.

    Args:
        file: the file; it stays open.
        compression: ``none``, ``gzip`` or ``zstd``.

    Attributes:
        count: rows written.
        size: bytes of the rows written, as JSON.

    Raises:
        MissingExtraError: zstd, and zstandard is not installed.
    """

    def __init__(self, file: IO[bytes], compression: str = "none") -> None:
        self._compressed = None if compression == "none" else compress(file, compression)
        self._file = self._compressed or file
        self.count = self.size = 0

    def write(self, row: bytes) -> None:
        """Write a row.

        Raises:
            DoesNotFit: nothing was written; finish this file and begin another.
            BatchError: not a row that this format can hold.
        """
        self._write(row)
        self.count += 1
        self.size += len(row)

    def finish(self) -> None:
        """Write the rest, and end the compressed stream."""
        with self._compressed or nullcontext():
            self._write_rest()

    @abstractmethod
    def _write(self, row: bytes) -> None: ...

    def _write_rest(self) -> None:  # noqa: B027
        """Write what is held."""


class JsonlWriter(RowWriter):
    """See ``RowWriter``."""

    def _write(self, row: bytes) -> None:
        self._file.write(row + b"\n")


def split_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file read in blocks, without their newlines.

    Raises:
        BatchError: a line is longer than ``MAX_ROW_BYTES``.
    """
    pieces: list[bytes] = []
    waiting = 0
    for block in blocks:
        first, newline, rest = block.partition(b"\n")
        pieces.append(first)
        waiting += len(first)
        if waiting > MAX_ROW_BYTES:
            raise BatchError(f"has a line of more than {MAX_ROW_BYTES} bytes")
        if not newline:
            continue
        yield b"".join(pieces)
        *lines, last = rest.split(b"\n")
        yield from lines
        pieces, waiting = [last], len(last)
    if waiting:
        yield b"".join(pieces)


def lenient_object(row: bytes, **options: Any) -> dict[str, Any] | None:
    """Decode a JSON object with Python's reader, which accepts ``NaN`` and half a surrogate pair; None for other rows.

    Given bytes, that reader would also accept a byte order mark and UTF-16.

    Args:
        options: of ``json.loads``.
    """
    try:
        document = json.loads(row.decode("utf-8", "surrogatepass"), **options)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def is_object(text: bytes) -> bool:
    """Return whether a text is a JSON object; Python's ``NaN`` and half a surrogate pair are allowed."""
    try:
        _decode_object(text)
        return text.isascii() or bool(text.decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return lenient_object(text) is not None


def fields_of(row: bytes) -> dict[str, bytes]:
    """Return a row's encoded values; for a duplicate key, the last one.

    Raises:
        BatchError: it is not a JSON object.
    """
    try:
        return {name: bytes(value) for name, value in _decode_object(row).items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        members = lenient_object(row)
    if members is None:
        raise BatchError("a row is not a JSON object")
    return {name: json.dumps(value).encode() for name, value in members.items()}
