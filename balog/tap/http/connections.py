"""Connections to one server, kept and used again; answers are read whole, in bounded time and memory."""

from __future__ import annotations

import threading
import zlib
from functools import partial
from typing import Any, NamedTuple

from balog.http.body import PACKINGS, Unpacker
from balog.http.pool import open_pool, tls_context
from balog.tap.errors import SourceError

__all__ = ["Connections", "Request"]

_PIECE = 64 * 1024
_MAX_IDLE = 16


class Request(NamedTuple):
    """A request; ``is_repeatable`` says whether sending it twice does no harm."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None
    is_repeatable: bool


class Connections:
    """Sends requests to one server; threads may share it.

    Args:
        url: any URL of the server.
        timeout: seconds for connecting, and for each wait for a piece of an answer.
        max_bytes: of one answer's body, unpacked.
        max_seconds: for one answer.
        ca_file: see ``Client``.

    Raises:
        ConfigError: ``ca_file`` cannot be used.
    """

    def __init__(self, url: str, timeout: float, max_bytes: int, max_seconds: float, ca_file: str | None) -> None:
        if ca_file:
            tls_context(ca_file)
        self._url = url
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._ca_file = ca_file
        self._pool: Any = None
        self._lock = threading.Lock()

    def send(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        """Return an answer's status, headers by lower-case names, and body.

        Raises:
            ConfigError: the environment's proxy cannot be used.
            SourceError: the answer is too large, takes too long or is packed wrong.
            OSError: no answer; or ``http.client.HTTPException``, or ValueError for what cannot be sent.
        """
        import urllib3

        with self._lock:
            if self._pool is None:
                self._pool = self._open()
        while True:
            try:
                return self._exchange(request)
            except urllib3.exceptions.HTTPError as error:
                cause = _cause(error)
                if not isinstance(cause, _ClosedMeanwhileError) or not request.is_repeatable:
                    raise cause from None

    def close(self) -> None:
        """Close the connections that are not in use."""
        if self._pool is not None:
            self._pool.clear()

    def _exchange(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        headers = {"Accept-Encoding": "gzip", **request.headers}
        options = {"redirect": False, "retries": False, "preload_content": False, "decode_content": False}
        answer = self._pool.request(request.method, request.url, body=request.body, headers=headers, **options)
        is_whole = False
        try:
            data = self._read(answer)
            is_whole = True
        finally:
            answer.release_conn() if is_whole else answer.close()
        return answer.status, {name.lower(): value for name, value in answer.headers.itermerged()}, data

    def _open(self) -> Any:
        from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

        from balog.tap.http.answers import Timed

        pool = open_pool(self._url, self._timeout, self._ca_file, size=_MAX_IDLE, path="base_url")
        answer_class = partial(Timed, timeout=self._timeout, seconds=self._max_seconds)
        pool.pool_classes_by_scheme = {
            scheme: type(kind.__name__, (kind,), {"ConnectionCls": _answering(kind.ConnectionCls, answer_class)})
            for scheme, kind in (("http", HTTPConnectionPool), ("https", HTTPSConnectionPool))
        }
        return pool

    def _read(self, answer: Any) -> bytes:
        packing = answer.headers.get("Content-Encoding", "identity").strip().lower()
        unpacker = Unpacker() if packing in PACKINGS else None
        if unpacker is None and packing not in ("identity", ""):
            raise SourceError(f"the answer is packed as {packing[:40]!r}, which was not asked for")
        data = bytearray()
        while piece := answer.read(_PIECE, decode_content=False):
            try:
                data += unpacker.add(piece, self._max_bytes + 1 - len(data)) if unpacker else piece
            except zlib.error:
                raise SourceError("the answer's packed body is damaged", retryable=True) from None
            if len(data) > self._max_bytes:
                raise SourceError(
                    f"the answer is larger than {self._max_bytes} bytes; ask for smaller pages, or raise max_bytes"
                )
        if left := answer.length_remaining:
            raise ConnectionResetError(f"the answer broke off {left} bytes before its end")
        if unpacker is not None and data and not unpacker.is_whole:
            raise SourceError("the answer's packed body broke off", retryable=True)
        return bytes(data)


class _ClosedMeanwhileError(ConnectionError):
    """The server closed a kept connection between two requests."""


def _answering(kind: Any, answer_class: Any) -> Any:
    """Return a class of connections whose answers are of a class."""

    def getresponse(self: Any, *arguments: Any, **options: Any) -> Any:
        self.response_class = answer_class
        try:
            answer = kind.getresponse(self, *arguments, **options)
        except ConnectionError as error:
            if getattr(self, "is_kept", False):
                raise _ClosedMeanwhileError(*error.args) from None
            raise
        self.is_kept = True
        return answer

    return type(kind.__name__, (kind,), {"getresponse": getresponse})


def _cause(error: BaseException) -> BaseException:
    """Return the exception of the standard library behind one of urllib3's, which says the same in fewer words."""
    from http.client import HTTPException

    found: BaseException | None = error
    for _ in range(8):
        if found is None or isinstance(found, (OSError, HTTPException)):
            break
        found = getattr(found, "original_error", None) or found.__cause__ or found.__context__
    return found or error
