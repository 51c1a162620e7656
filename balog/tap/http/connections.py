"""Persistent connections to one server; responses are read in bounded time and memory."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, BinaryIO, NamedTuple

from balog.common.errors import ConfigError
from balog.common.http.body import PACKINGS, Unpacker
from balog.common.http.pool import ClientCertificate, open_pool, tls_context
from balog.tap.errors import SourceError
from balog.tap.http.outcomes import causes_of

_PIECE = 64 * 1024
_MAX_IDLE = 16
_MAX_COOKIES = 1_000


class Request(NamedTuple):
    """A request.

    Attributes:
        is_repeatable: it can be sent twice.
        granted: the headers that a function for authorization returned.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None
    is_repeatable: bool = True
    granted: Mapping[str, str] = MappingProxyType({})


def _cookie_jar() -> Any:
    from http.cookiejar import CookieJar

    return CookieJar()


@dataclass(eq=False)
class Connections:
    """Sends requests to one server. It is thread-safe.

    Args:
        url: any URL of the server.
        timeout: seconds for connecting, and for each read of a response.
        max_bytes: the maximum size of one decompressed body.
        max_seconds: the maximum time of one response.
        ca_file, certificate: see ``Client``.
        cookies: a ``http.cookiejar.CookieJar``.
        file: receives the bodies of successes; None returns them.

    Raises:
        ConfigError: ``ca_file`` or ``certificate`` cannot be used.
    """

    url: str
    timeout: float
    max_bytes: int
    max_seconds: float
    ca_file: str | None
    certificate: ClientCertificate | None = None
    cookies: Any = field(default_factory=_cookie_jar)
    file: BinaryIO | None = None
    _pool: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.ca_file == "":
            raise ConfigError("expected the path of a PEM file", path="ca_file")
        if not isinstance(self.certificate, ClientCertificate | None):
            raise ConfigError("expected ClientCertificate(cert_file, key_file)", path="certificate")
        if self.ca_file or self.certificate:
            tls_context(self.ca_file, self.certificate)

    def send(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        """Send a request, and return the response's status, headers by lower-case names, and body.

        Raises:
            ConfigError: the environment's proxy cannot be used.
            SourceError: the response is too large, takes too long or is compressed wrongly.
            OSError: no response; or ``http.client.HTTPException``, or ValueError for an invalid request.
        """
        from http.client import HTTPException

        import urllib3

        self.open()
        while True:
            try:
                return self._exchange(request)
            except urllib3.exceptions.HTTPError as error:
                # The standard library's exception is shorter than urllib3's.
                known = (OSError, HTTPException)
                cause = next((cause for cause in causes_of(error) if isinstance(cause, known)), error)
                if not isinstance(cause, _ClosedMeanwhileError) or not request.is_repeatable:
                    raise cause from None

    def open(self) -> None:
        """Make the pool of connections, once.

        Raises:
            ConfigError: the environment's proxy cannot be used.
        """
        with self._lock:
            if self._pool is None:
                self._pool = self._open()

    def close(self) -> None:
        """Close the connections that are not in use."""
        if self._pool is not None:
            self._pool.clear()

    def _exchange(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        from urllib.request import Request as Carrier

        headers = {"Accept-Encoding": "gzip", **request.headers}
        carrier = Carrier(request.url)  # noqa: S310 (nothing is opened)
        self.cookies.add_cookie_header(carrier)
        if kept := carrier.get_header("Cookie"):
            name = next((name for name in headers if name.lower() == "cookie"), "Cookie")
            headers[name] = f"{headers[name]}; {kept}" if name in headers else kept
        options = {"redirect": False, "retries": False, "preload_content": False, "decode_content": False}
        response = self._pool.request(request.method, request.url, body=request.body, headers=headers, **options)
        is_complete = False
        if "set-cookie" in response.headers and len(self.cookies) < _MAX_COOKIES:
            self.cookies.extract_cookies(SimpleNamespace(info=lambda: response.headers), carrier)
        try:
            data = self._read(response)
            is_complete = True
        finally:
            response.release_conn() if is_complete else response.close()
        return response.status, {name.lower(): value for name, value in response.headers.itermerged()}, data

    def _open(self) -> Any:
        from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

        from balog.tap.http.timed_response import TimedResponse

        pool = open_pool(
            self.url, self.timeout, self.ca_file, certificate=self.certificate, size=_MAX_IDLE, path="base_url"
        )
        response_class = partial(TimedResponse, timeout=self.timeout, seconds=self.max_seconds)
        with_class = partial(_connection_class, response_class=response_class)
        pool.pool_classes_by_scheme = {
            scheme: type(kind.__name__, (kind,), {"ConnectionCls": with_class(kind.ConnectionCls)})
            for scheme, kind in (("http", HTTPConnectionPool), ("https", HTTPSConnectionPool))
        }
        return pool

    def _read(self, response: Any) -> bytes:
        """Return a response's decompressed body, or write that of a success to the file."""
        if self.file is None or not 200 <= response.status < 300:
            return b"".join(self._pieces(response))
        self.file.seek(0)
        self.file.truncate()
        self.file.writelines(self._pieces(response))
        self.file.flush()
        return b""

    def _pieces(self, response: Any) -> Iterator[bytes]:
        """Yield a response's decompressed body in pieces.

        Raises:
            SourceError: it is too large, or compressed wrongly.
            ConnectionResetError: it is incomplete.
        """
        packing = response.headers.get("Content-Encoding", "identity").strip().lower()
        unpacker = Unpacker() if packing in PACKINGS else None
        if unpacker is None and packing not in ("identity", ""):
            raise SourceError(f"the response has the encoding {packing[:40]!r}, which was not requested")
        size = 0
        while piece := response.read(_PIECE, decode_content=False):
            try:
                data = unpacker.add(piece, self.max_bytes + 1 - size) if unpacker else piece
            except zlib.error:
                raise SourceError("the response's compressed body is damaged", retryable=True) from None
            size += len(data)
            if size > self.max_bytes:
                raise SourceError(
                    f"the response is larger than {self.max_bytes} bytes; request smaller pages, or raise max_bytes"
                )
            yield data
        if left := response.length_remaining:
            raise ConnectionResetError(f"the response ended {left} bytes early")
        if unpacker is not None and size and not unpacker.is_whole:
            raise SourceError("the response's compressed body is incomplete", retryable=True)


class _ClosedMeanwhileError(ConnectionError):
    """The server closed a persistent connection between two requests."""


def _connection_class(kind: Any, response_class: Any) -> Any:
    """Return a class of connections with a class of responses."""

    def getresponse(self: Any, *arguments: Any, **options: Any) -> Any:
        self.response_class = response_class
        try:
            response = kind.getresponse(self, *arguments, **options)
        except ConnectionError as error:
            if getattr(self, "is_kept", False):
                raise _ClosedMeanwhileError(*error.args) from None
            raise
        self.is_kept = True
        return response

    return type(kind.__name__, (kind,), {"getresponse": getresponse})
