"""Connections to one server, kept and used again, on the standard library."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, unquote, urldefrag, urlsplit

from balog.errors import ConfigError
from balog.tap.errors import SourceError

if TYPE_CHECKING:
    import http.client
    import ssl

    from balog.tap.http.answers import Unpacker

__all__ = ["Connections", "Request"]

_PIECE = 64 * 1024
_MAX_IDLE = 16


class Request(NamedTuple):
    """What is sent; ``is_repeatable`` tells whether sending it twice does no harm."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None
    is_repeatable: bool


class Connections:
    """Sends requests and reads answers whole; threads may share it.

    Args:
        timeout: seconds for connecting, and for each wait for a piece of an answer.
        max_bytes: of one answer's body, unpacked.
        max_seconds: for one answer.
        ca_file: see ``Client``.
    """

    def __init__(self, timeout: float, max_bytes: int, max_seconds: float, ca_file: str | None) -> None:
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._context = _context(ca_file) if ca_file else None
        self._idle: deque[http.client.HTTPConnection] = deque()

    def send(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        """Give status, headers by lower-case names, and the body.

        Raises:
            SourceError: an answer that is too large, takes too long or is packed wrong.
            OSError: no answer; or ``http.client.HTTPException``, or ValueError for what cannot be sent.
        """
        import http.client

        while True:
            connection, is_kept = self._connection(request.url)
            try:
                return self._exchange(connection, request)
            except (ConnectionError, http.client.BadStatusLine):
                # A kept connection may have been closed by the server between two requests: that is no failure.
                if not is_kept or not request.is_repeatable:
                    raise

    def close(self) -> None:
        """Close what is not in use."""
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, connection: http.client.HTTPConnection, request: Request) -> tuple[int, dict[str, str], bytes]:
        is_whole = False
        answer: http.client.HTTPResponse | None = None
        try:
            if connection.sock is not None:
                connection.sock.settimeout(self._timeout)
            connection.response_class = self._answer_class()
            target, headers = _target(request.url), {"Accept-Encoding": "gzip", **request.headers}
            if getattr(connection, "is_through_proxy", False):
                target = urldefrag(request.url)[0]
                headers.update(_proxy_headers(connection))
            connection.request(request.method, target, request.body, headers)
            answer = connection.getresponse()
            data = self._read(answer)
            is_whole = not answer.will_close
            found: dict[str, str] = {}
            for said, value in answer.getheaders():
                name = said.lower()
                found[name] = f"{found[name]}, {value}" if name in found else value
            return answer.status, found, data
        finally:
            if is_whole and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
            else:
                connection.close()
                if answer is not None:  # which would keep the socket open for as long as somebody holds the error
                    answer.close()

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        packed = answer.getheader("Content-Encoding", "identity").strip().lower()
        unpack: Unpacker | None = None
        if packed in ("gzip", "x-gzip", "deflate"):
            from balog.tap.http.answers import Unpacker

            unpack = Unpacker()
        elif packed not in ("identity", ""):
            raise SourceError(f"the answer is packed as {packed[:40]!r}, which was not asked for")
        data = bytearray()
        while piece := answer.read1(_PIECE):
            data += unpack.add(piece, self._max_bytes + 1 - len(data)) if unpack else piece
            if len(data) > self._max_bytes:
                raise SourceError(
                    f"the answer is larger than {self._max_bytes} bytes; ask for smaller pages, or raise max_bytes"
                )
        left = answer.length
        answer.close()  # read1 does not at the end, and the connection is not free before
        if left:  # nor does it say that less came than Content-Length promised
            raise ConnectionResetError(f"the answer broke off {left} bytes before its end")
        if unpack is not None and data and not unpack.is_whole:
            raise SourceError("the answer's packed body broke off", retryable=True)
        return bytes(data)

    def _answer_class(self) -> Any:
        from functools import partial

        from balog.tap.http.answers import Timed

        return partial(Timed, timeout=self._timeout, seconds=self._max_seconds)

    def _connection(self, url: str) -> tuple[http.client.HTTPConnection, bool]:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._open(urlsplit(url)), False
            if _is_quiet(connection):
                return connection, True
            connection.close()

    def _open(self, parts: SplitResult) -> http.client.HTTPConnection:
        import http.client

        # Said, or http.client would look for a port behind the last colon of an IPv6 address.
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        proxy = _proxy(parts.scheme, host)
        to, at = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
        if parts.scheme == "http":
            plain = http.client.HTTPConnection(to, at, timeout=self._timeout)
            plain.is_through_proxy = bool(proxy)  # type: ignore[attr-defined]
            plain.proxy = proxy  # type: ignore[attr-defined]
            return plain
        if self._context is None:
            self._context = _context(None)
        secure = http.client.HTTPSConnection(to, at, timeout=self._timeout, context=self._context)
        if proxy:
            secure.set_tunnel(host, port, _authorization(proxy))
        return secure


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Tell whether a kept connection is still one: there is something to read where the server has closed it."""
    from select import POLLIN, poll

    if connection.sock is None:
        return False
    polled = poll()
    polled.register(connection.sock, POLLIN)
    return not polled.poll(0)


def _target(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _context(ca_file: str | None) -> ssl.SSLContext:
    import ssl

    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{ca_file}: {error.strerror or 'is no PEM file'}", path="ca_file") from None


def _proxy(scheme: str, host: str) -> SplitResult | None:
    """Give the proxy that the environment names for a host, if it names one."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # brings http.client and more

    proxies = getproxies()
    named = proxies.get(scheme) or proxies.get("all")
    if not named or proxy_bypass(host):
        return None
    try:
        proxy = urlsplit(named if "://" in named else f"http://{named}")
        if proxy.scheme == "http" and proxy.hostname and proxy.port != 0:
            return proxy
    except ValueError:
        pass
    raise ConfigError(
        f"the environment's proxy for {scheme} is not http://HOST:PORT; correct {scheme}_proxy or all_proxy, or name "
        "the host in no_proxy",
        path="base_url",
    )


def _proxy_headers(connection: Any) -> dict[str, str]:
    return _authorization(connection.proxy)


def _authorization(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    from base64 import b64encode

    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
