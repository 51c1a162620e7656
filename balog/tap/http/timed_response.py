"""Responses with a time limit, however slowly their bytes come."""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any

from balog.tap.errors import SourceError


class TimedResponse(http.client.HTTPResponse):
    """A response whose headers and body must be complete in ``seconds``, and each read in ``timeout`` seconds."""

    def __init__(self, sock: socket.socket, *arguments: Any, timeout: float, seconds: float, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._stream = _TimedStream(self.fp.detach(), sock, timeout, seconds)
        self.fp = io.BufferedReader(self._stream)

    def begin(self) -> None:
        """Read the status and headers.

        Raises:
            ConnectionResetError: the connection ended in them, which http.client takes for their end.
        """
        super().begin()
        if self._stream.is_ended:
            raise ConnectionResetError("the response ended in its headers")


class _TimedStream(io.RawIOBase):
    def __init__(self, raw: Any, sock: socket.socket, timeout: float, seconds: float) -> None:
        self._raw = raw
        self._sock = sock
        self._timeout = timeout
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self.is_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        left = self._until - time.monotonic()
        if left > 0:
            self._sock.settimeout(min(self._timeout, left))
            try:
                size = self._raw.readinto(buffer)
                self.is_ended = size == 0
                return size
            except TimeoutError:
                if self._timeout < left:
                    raise
        raise SourceError(f"the response took longer than {self._seconds:g} s", retryable=True)

    def close(self) -> None:
        self._raw.close()
        super().close()
