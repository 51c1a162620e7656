"""Compression of archive files, in which each batch is readable after it was written."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO

_READ = 1 << 20
_OUT = 1 << 24


class GzipCodec:
    """One gzip stream, flushed after each batch."""

    def __init__(self) -> None:
        self._stream = self._next = zlib.compressobj(6, zlib.DEFLATED, 31)

    def pack(self, data: bytes) -> bytes:
        """Compress a batch. Call ``keep`` after its bytes were written, since writing may fail."""
        self._next = self._stream.copy()
        return self._next.compress(data) + self._next.flush(zlib.Z_SYNC_FLUSH)

    def keep(self) -> None:
        """Note that the last packed batch was written."""
        self._stream = self._next

    def end(self) -> bytes:
        """Return the bytes that end the file. May be called several times."""
        return self._stream.copy().flush(zlib.Z_FINISH)

    @staticmethod
    def unpack(source: IO[bytes]) -> Iterator[bytes]:
        """Yield the content of a file in blocks of a few MiB, up to where it is truncated or damaged."""
        gunzip = zlib.decompressobj(31)
        try:
            while chunk := source.read(_READ):
                while chunk:
                    yield gunzip.decompress(chunk, _OUT)
                    chunk = gunzip.unconsumed_tail
        except zlib.error:
            return
        yield gunzip.flush()
