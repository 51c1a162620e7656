"""Compression of archive files, in which each batch is readable after it was written."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, ClassVar, Protocol

from balog.errors import MissingExtraError

_READ = 1 << 20
_ZSTD_READ = 1024  # a kilobyte of zstd decompresses to 32 MiB at most
_OUT = 1 << 24


class Codec(Protocol):
    """Compresses the batches of one file.

    Attributes:
        name: its name in the config.
        ending: the suffix of its files.
    """

    name: ClassVar[str]
    ending: ClassVar[str]

    def pack(self, data: bytes) -> bytes:
        """Compress a batch. Call ``keep`` after its bytes were written, since writing may fail."""

    def keep(self) -> None:
        """Note that the last packed batch was written."""

    def end(self) -> bytes:
        """Return the bytes that end the file. May be called several times."""

    @staticmethod
    def unpack(source: IO[bytes]) -> Iterator[bytes]:
        """Yield the content of a file in blocks of a few MiB, up to where it is truncated or damaged."""


class GzipCodec:
    """One gzip stream, flushed after each batch."""

    name: ClassVar[str] = "gzip"
    ending: ClassVar[str] = ".jsonl.gz"

    def __init__(self) -> None:
        self._stream = self._next = zlib.compressobj(6, zlib.DEFLATED, 31)

    def pack(self, data: bytes) -> bytes:
        """See ``Codec``."""
        self._next = self._stream.copy()
        return self._next.compress(data) + self._next.flush(zlib.Z_SYNC_FLUSH)

    def keep(self) -> None:
        """See ``Codec``."""
        self._stream = self._next

    def end(self) -> bytes:
        """See ``Codec``."""
        return self._stream.copy().flush(zlib.Z_FINISH)

    @staticmethod
    def unpack(source: IO[bytes]) -> Iterator[bytes]:
        """See ``Codec``."""
        gunzip = zlib.decompressobj(31)
        try:
            while chunk := source.read(_READ):
                while chunk:
                    yield gunzip.decompress(chunk, _OUT)
                    chunk = gunzip.unconsumed_tail
        except zlib.error:
            return
        yield gunzip.flush()


class ZstdCodec:
    """One zstd frame per batch, because an unfinished frame can't be undone if writing it fails."""

    name: ClassVar[str] = "zstd"
    ending: ClassVar[str] = ".jsonl.zst"

    def __init__(self) -> None:
        import zstandard

        self._compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)

    def pack(self, data: bytes) -> bytes:
        """See ``Codec``."""
        return self._compressor.compress(data)

    def keep(self) -> None:
        """See ``Codec``."""

    def end(self) -> bytes:
        """See ``Codec``."""
        return b""

    @staticmethod
    def unpack(source: IO[bytes]) -> Iterator[bytes]:
        """See ``Codec``."""
        import zstandard

        decompressor = zstandard.ZstdDecompressor()
        frame = decompressor.decompressobj()
        try:
            while chunk := source.read(_ZSTD_READ):
                while chunk:
                    yield frame.decompress(chunk)
                    chunk = frame.unused_data if frame.eof else b""
                    if frame.eof:
                        frame = decompressor.decompressobj()
        except zstandard.ZstdError:
            return


CODECS: dict[str, type[Codec]] = {"gzip": GzipCodec, "zstd": ZstdCodec}


def codec_of(file: Path) -> type[Codec]:
    """Return the codec of a file, finished or not, by its name; gzip by default."""
    name = file.name.removesuffix(".part")
    return next((codec for codec in CODECS.values() if name.endswith(codec.ending)), GzipCodec)


def check_codec(name: str) -> None:
    """Check that the package of a compression is installed.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        CODECS[name]()
    except ImportError:
        raise MissingExtraError(f"compression {name}", "store") from None
