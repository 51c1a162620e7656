"""Answers of a server that may be slow or packed: read until a given time, however slowly their bytes come."""

from __future__ import annotations

import http.client
import io
import socket
import time
import zlib
from typing import Any

from balog.tap.errors import SourceError

__all__ = ["Timed", "Unpacker"]


class Timed(http.client.HTTPResponse):
    """An answer, headers and body, that must be whole in ``seconds``; a wait for a piece of it takes ``timeout``."""

    def __init__(self, sock: socket.socket, *said: Any, timeout: float, seconds: float, **options: Any) -> None:
        super().__init__(sock, *said, **options)
        self.fp = io.BufferedReader(_Raw(self.fp.detach(), sock, timeout, seconds))


class _Raw(io.RawIOBase):
    def __init__(self, raw: Any, sock: socket.socket, timeout: float, seconds: float) -> None:
        self._raw = raw
        self._sock = sock
        self._timeout = timeout
        self._seconds = seconds
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        left = self._until - time.monotonic()
        if left > 0:
            self._sock.settimeout(min(self._timeout, left))
            try:
                return self._raw.readinto(buffer)
            except TimeoutError:
                if self._timeout < left:
                    raise
        raise SourceError(f"the answer took longer than {self._seconds:g} s", retryable=True)

    def close(self) -> None:
        self._raw.close()
        super().close()


class Unpacker:
    """Unpacks a body of gzip or zlib that comes in pieces; of gzip also one of several members (RFC 1952, 2.2)."""

    def __init__(self) -> None:
        self._open = zlib.decompressobj(47)

    def add(self, piece: bytes, most: int) -> bytes:
        """Give what a piece unpacks to, no more than ``most`` bytes of it.

        Raises:
            SourceError: it is damaged.
        """
        found = bytearray()
        try:
            while piece and len(found) < most:
                if self._open.eof:
                    if piece[:1] != b"\x1f":
                        break  # padding
                    self._open = zlib.decompressobj(47)
                found += self._open.decompress(piece, most - len(found))
                piece = self._open.unused_data
        except zlib.error:
            raise SourceError("the answer's packed body is damaged", retryable=True) from None
        return bytes(found)

    @property
    def is_whole(self) -> bool:
        """Tell whether it ended where a packed body ends."""
        return self._open.eof
