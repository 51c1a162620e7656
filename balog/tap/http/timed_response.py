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
        self.fp = io.BufferedReader(_TimedStream(self.fp.detach(), sock, timeout, seconds))


class _TimedStream(io.RawIOBase):
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
        raise SourceError(f"the response took longer than {self._seconds:g} s", retryable=True)

    def close(self) -> None:
        self._raw.close()
        super().close()
