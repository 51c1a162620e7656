"""A pool whose connections go to public addresses only, and can be cut when a request takes too long.

Each connection resolves its host once, requires every address to be public, and connects to one of these addresses,
so a second DNS answer (DNS rebinding) has no effect. ``Host``, SNI and the certificate still name the host. The
environment's proxies are not used: they would resolve the host again.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from balog.common.http.addresses import Networks
from balog.common.http.pool import tls_context

_NODELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class PrivateAddressError(OSError):
    """The host has an address to which no connection is allowed."""

    def __init__(self, kind: str, advice: str) -> None:
        super().__init__(errno.EACCES, f"the host has an address of {kind}; {advice}")


class Cutter:
    """Ends requests that take too long as a whole; timeouts of single reads do not notice slow drips."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[int, _Request] = {}

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Allow this thread's request in the block at most so many seconds."""
        thread = threading.get_ident()
        request = _Request(time.monotonic() + seconds)
        with self._lock:
            self._requests[thread] = request
        try:
            yield
        finally:
            with self._lock:
                del self._requests[thread]
                request.attach(None)

    def attach(self, handle: socket.socket) -> None:
        """Register the connection of this thread's request.

        Args:
            handle: a duplicate of its socket, which this object closes.
        """
        with self._lock:
            request = self._requests.get(threading.get_ident())
            if request is not None:
                request.attach(handle)
            else:
                handle.close()

    def cut(self, before: float | None = None) -> None:
        """End the requests whose time is over.

        Args:
            before: end those due by this moment (monotonic seconds); all of them when None.
        """
        with self._lock:
            for request in self._requests.values():
                if before is None or request.end <= before:
                    request.cut()


class _Request:
    def __init__(self, end: float) -> None:
        self.end = end
        self._handle: socket.socket | None = None

    def attach(self, handle: socket.socket | None) -> None:
        if self._handle is not None:
            self._handle.close()
        self._handle = handle

    def cut(self) -> None:
        if self._handle is not None:
            with suppress(OSError):  # it has just gone
                self._handle.shutdown(socket.SHUT_RDWR)


ASK_OPERATOR = "the service's settings list no such network: document_access.networks"
"""Advice in the error for a refused address that only the operator can allow."""


def open_guarded_pool(
    url: str,
    timeout: float,
    ca_file: str | None,
    *,
    networks: Networks,
    cutter: Cutter,
    advice: str = ASK_OPERATOR,
) -> Any:
    """Return a urllib3 pool for ``HttpClient`` that verifies certificates and checks addresses.

    Args:
        timeout: seconds for connecting, to all addresses of the host together, and for each wait for an answer.
        ca_file: a PEM file of the authorities to trust instead of the system's.
        networks: private networks to which connections are allowed.
        cutter: ends requests that take too long.
        advice: the end of the error for a refused address.

    Raises:
        ConfigError: ``ca_file`` cannot be used.
    """
    import urllib3
    from urllib3.connection import HTTPConnection, HTTPSConnection

    def connect(connection: Any) -> socket.socket:
        host = (connection.host or "").strip("[]")
        try:
            return _connect(host, connection.port, timeout, networks, advice)
        except TimeoutError:
            raise urllib3.exceptions.ConnectTimeoutError(connection, "no connection in time") from None
        except OSError as error:
            raise urllib3.exceptions.NewConnectionError(connection, "cannot connect") from error

    class _Guarded:
        """The part that both kinds of connections share; urllib3 gets each socket from ``_new_conn``."""

        _handle: socket.socket | None = None

        def _new_conn(self) -> socket.socket:
            sock = connect(self)
            self._handle = sock.dup()  # TLS takes the socket over, and an answer outlives the connection's own
            cutter.attach(sock.dup())
            return sock

        def request(self, *arguments: Any, **options: Any) -> Any:
            if self._handle is not None:
                cutter.attach(self._handle.dup())
            return super().request(*arguments, **options)  # type: ignore[misc]

        def close(self) -> None:
            super().close()  # type: ignore[misc]
            handle, self._handle = self._handle, None
            if handle is not None:
                handle.close()

    class _Plain(_Guarded, HTTPConnection):
        pass

    class _Tls(_Guarded, HTTPSConnection):
        pass

    class _PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = _Plain

    class _TlsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = _Tls

    options: dict[str, Any] = {}
    if urlsplit(url).scheme == "https":
        options["ssl_context"] = tls_context(ca_file)
        options["cert_reqs"] = "CERT_REQUIRED"
    pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=timeout, read=timeout), maxsize=64, **options)
    pool.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
    return pool


def _connect(host: str, port: int, timeout: float, networks: Networks, advice: str) -> socket.socket:
    from urllib3.util.connection import create_connection

    end = time.monotonic() + timeout
    places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, address in places:
        if kind := networks.why_refused(str(address[0])):
            raise PrivateAddressError(kind, advice)
    last: OSError = OSError(errno.EHOSTUNREACH, "the host has no address")
    for *_, address in places:
        rest = end - time.monotonic()
        if rest <= 0:
            raise TimeoutError
        try:
            sock = create_connection((str(address[0]), port), rest, socket_options=[_NODELAY])
        except OSError as error:
            last = error
        else:
            sock.settimeout(timeout)
            return sock
    raise last
