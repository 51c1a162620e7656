"""Compress and decompress files by gzip and zstd, with limits against decompression bombs."""

from __future__ import annotations

import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import IO, Any, NamedTuple

from balog.common.errors import MissingExtraError
from balog.singer.batch.dialects import BatchError

BLOCK_BYTES = 1 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PAR1": "parquet"}
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # a zstd frame without data, with which pzstd begins
_FREE_BYTES = 64 << 20
_PIECE_BYTES = 1 << 16
_ZSTD_WINDOW = 128 << 20


class Limits(NamedTuple):
    """Limits of a file's size.

    Attributes:
        decompressed: bytes of a file when it is decompressed.
        ratio: how many times as large as the file that may be; checked from 64 MiB on.
    """

    decompressed: int = 8 << 30
    ratio: float = 250.0


NO_LIMITS = Limits(1 << 62, math.inf)


class _Counted(io.RawIOBase):
    """A source that counts the bytes read from it, and ends even if it has only empty gzip streams."""

    def __init__(self, source: IO[bytes], begun: bytes, limit: int) -> None:
        self._source = source
        self._begun = begun
        self._limit = limit
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        data = self._begun[:size] or self._source.read(size)
        self._begun = self._begun[size:]
        self.count += len(data)
        if self.count > self._limit:
            raise BatchError(f"has more than {self._limit} bytes")
        buffer[: len(data)] = data
        return len(data)


def seen_compression(begun: bytes) -> str:
    """Return a file's format from its first four bytes: ``gzip``, ``zstd``, ``parquet``, else ``none``."""
    if _SKIPPABLE.match(begun):
        return "zstd"
    return next((name for magic, name in _MAGIC.items() if begun.startswith(magic)), "none")


def decompress(source: IO[bytes], declared: str | None, limits: Limits) -> Iterator[bytes]:
    """Return a file's bytes in blocks of about 1 MiB at most. All bytes before a damage are returned before its error.

    Args:
        source: the file.
        declared: the compression that the message declares; None to detect it from the file's first bytes.
        limits: see ``Limits``.

    Raises:
        BatchError: the file has another compression, is truncated, fails its checksum, or exceeds the limits.
        MissingExtraError: zstd, and zstandard is not installed.
    """
    begun = _begin(source)
    seen = seen_compression(begun)
    if declared not in (None, "none", "gzip", "zstd"):
        raise BatchError(f"is compressed as {declared}, and only gzip and zstd are read")
    if declared is not None and declared != seen and not (declared == "none" and seen == "parquet"):
        raise BatchError(f"should be {_name(declared)} and is {_name(seen)}")
    counted = _Counted(source, begun, limits.decompressed)
    blocks = {"gzip": _gunzip, "zstd": _unzstd}.get(seen, _plain)(counted)
    return _bounded(blocks, counted, limits)


def _name(compression: str) -> str:
    return "not compressed" if compression == "none" else compression


def _begin(source: IO[bytes]) -> bytes:
    begun = b""
    while len(begun) < 4 and (more := source.read(4 - len(begun))):
        begun += more
    return begun


def _plain(source: _Counted) -> Iterator[bytes]:
    while block := source.read(BLOCK_BYTES):
        yield block


def _gunzip(source: _Counted) -> Iterator[bytes]:
    """Decompress the members of a gzip file; zeros between and after them are padding."""
    inflate = zlib.decompressobj(31)
    while data := source.read(_PIECE_BYTES):
        while data:
            if inflate.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                inflate = zlib.decompressobj(31)
            before = inflate.copy()
            try:
                block = inflate.decompress(data, BLOCK_BYTES)
            except zlib.error:
                yield _before_damage(before, data)
                raise BatchError("is damaged: its gzip stream can't be read") from None
            yield block
            data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
    if not inflate.eof:
        yield _before_damage(inflate, b"")
        raise BatchError("is cut off: its gzip stream ends early")


def _before_damage(inflate: zlib._Decompress, data: bytes) -> bytes:
    """Return the output before the damaged byte, which is about 1 MiB at most."""
    output = bytearray()
    with suppress(zlib.error):
        for number in range(len(data)):
            output += inflate.decompress(data[number : number + 1])
        output += inflate.flush()
    return bytes(output)


def _unzstd(source: _Counted) -> Iterator[bytes]:
    """Decompress the frames of a zstd file, block by block: a damaged block takes no block before it along."""
    zstandard = _zstandard()
    make = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj
    file = io.BufferedReader(source, _PIECE_BYTES)
    while magic := file.read(4):
        frame = make()
        for piece in chain([magic], _skippable_frame(file) if _SKIPPABLE.match(magic) else _frame(file)):
            try:
                block = frame.decompress(piece)
            except zstandard.ZstdError:
                raise BatchError("is damaged: its zstd stream can't be read") from None
            yield block
        if not frame.eof:
            raise BatchError("is cut off: its zstd stream ends early")


def _skippable_frame(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a frame without data after its magic number, in pieces (RFC 8878, 3.1.2)."""
    yield (head := file.read(4))
    size = int.from_bytes(head, "little")
    while size and (piece := file.read(min(size, BLOCK_BYTES))):
        size -= len(piece)
        yield piece


def _frame(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a frame after its magic number: header, blocks of at most 128 KiB decompressed, checksum (3.1.1)."""
    head = file.read(1)
    flags = int.from_bytes(head, "little")
    is_single = flags >> 5 & 1
    yield head + file.read(1 - is_single + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6])
    is_last = False
    while not is_last and (head := file.read(3)):
        number = int.from_bytes(head, "little")
        is_last = bool(number & 1)
        yield head + file.read(1 if number >> 1 & 3 == 1 else number >> 3)
    if flags & 4:
        yield file.read(4)


def _bounded(blocks: Iterator[bytes], source: _Counted, limits: Limits) -> Iterator[bytes]:
    total = 0
    for block in blocks:
        if not block:
            continue
        total += len(block)
        if total > limits.decompressed:
            raise BatchError(f"holds more than {limits.decompressed} bytes when it is decompressed")
        if total > _FREE_BYTES and total > source.count * limits.ratio:
            raise BatchError(f"is more than {limits.ratio:g} times as large when it is decompressed")
        yield block


class BlocksFile(io.RawIOBase):
    """Blocks of bytes as a file; an error of theirs comes after the last byte before it."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes; return their number, 0 at the end."""
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def compress(file: IO[bytes], compression: str) -> IO[bytes]:
    """Return a writer that compresses by gzip or zstd; closing it ends the stream and leaves the file open.

    Raises:
        MissingExtraError: zstd, and zstandard is not installed.
    """
    if compression == "gzip":
        packed: Any = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, filename="", mtime=0)
    else:
        packed = _zstandard().ZstdCompressor(level=3, write_checksum=True).stream_writer(file, closefd=False)
    return io.BufferedWriter(packed, 1 << 16)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("a file compressed with zstd", "store") from None
    return zstandard
