"""Compress and decompress files by gzip and zstd, with limits against decompression bombs."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from balog.common.errors import MissingExtraError
from balog.singer.batch.dialects import BatchError

BLOCK_BYTES = 1 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PAR1": "parquet"}
_FREE_BYTES = 64 << 20
# The output of one call is limited only by its input: a zstd block of 4 bytes may decompress to 128 KiB.
_ZSTD_PIECE = 1024
_ZSTD_WINDOW = 128 << 20


class Limits(NamedTuple):
    """Limits of a file's size.

    Attributes:
        decompressed: bytes of a file when it is decompressed.
        ratio: how many times as large as the file that may be; checked from 64 MiB on.
    """

    decompressed: int = 8 << 30
    ratio: float = 250.0


class _Counted(io.RawIOBase):
    """A source that counts the bytes read from it, and ends even if it has only empty gzip streams."""

    def __init__(self, source: IO[bytes], begun: bytes, limit: int) -> None:
        self._source = source
        self._begun = begun
        self._limit = limit
        self.count = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._begun:
            size = len(self._begun) if size < 0 else size
            data, self._begun = self._begun[:size], self._begun[size:]
        else:
            data = self._source.read(size)
        self.count += len(data)
        if self.count > self._limit:
            raise BatchError(f"has more than {self._limit} bytes")
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def seen_compression(begun: bytes) -> str:
    """Return a file's format from its first bytes: ``gzip``, ``zstd``, ``parquet``, else ``none``."""
    return next((name for magic, name in _MAGIC.items() if begun.startswith(magic)), "none")


def decompress(source: IO[bytes], declared: str | None, limits: Limits) -> Iterator[bytes]:
    """Return a file's bytes in blocks of about 1 MiB at most.

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
    try:
        with gzip.GzipFile(fileobj=io.BufferedReader(source, 1 << 16)) as file:
            while block := file.read(BLOCK_BYTES):
                yield block
    except EOFError:
        raise BatchError("is cut off: its gzip stream has no end") from None
    except (gzip.BadGzipFile, zlib.error):
        raise BatchError("is damaged: its gzip stream can't be read") from None


def _unzstd(source: _Counted) -> Iterator[bytes]:
    zstandard = _zstandard()
    make = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj
    frame: Any = None
    rest = b""
    while piece := rest or source.read(_ZSTD_PIECE):
        frame, rest = frame or make(), b""
        try:
            block = frame.decompress(piece)
        except zstandard.ZstdError:
            raise BatchError("is damaged: its zstd stream can't be read") from None
        if frame.eof:  # another frame may follow
            frame, rest = None, frame.unused_data
        for start in range(0, len(block), BLOCK_BYTES):
            yield block[start : start + BLOCK_BYTES]
    if frame is not None:
        raise BatchError("is cut off: its zstd stream has no end")


def _bounded(blocks: Iterator[bytes], source: _Counted, limits: Limits) -> Iterator[bytes]:
    total = 0
    for block in blocks:
        total += len(block)
        if total > limits.decompressed:
            raise BatchError(f"holds more than {limits.decompressed} bytes when it is decompressed")
        if total > _FREE_BYTES and total > source.count * limits.ratio:
            raise BatchError(f"is more than {limits.ratio:g} times as large when it is decompressed")
        yield block


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
        raise MissingExtraError("a BATCH compressed with zstd", "store") from None
    return zstandard
