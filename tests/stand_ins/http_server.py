"""A server over HTTP(S) that stands in for a real one: it answers what it was told to, and keeps what it was sent."""

from __future__ import annotations

import gzip
import http.client
import http.server
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from typing import Literal, NamedTuple

__all__ = ["Answer", "HttpStandIn", "Request"]


class Request(NamedTuple):
    """What a client sent; ``path`` has the query, ``headers`` are found in any case, ``body`` is unzipped."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What the server does with one request.

    Attributes:
        trouble: instead of answering: ``hang`` until the server stops, ``reset`` the connection, ``close`` it, or break
            off ``half`` way through the body.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    trouble: Literal["", "hang", "reset", "close", "half", "status", "header"] = ""


class HttpStandIn:
    """A server on a free port of 127.0.0.1, a thread a connection, connections kept.

    Answers come from ``will(…)`` first, one a request, then from ``respond``. It can be stopped and started again on
    the same port.

    Args:
        respond: gives the answer to a request when nothing is scripted; 200 with no body if none.
        tls: the context of a server; the URL is then ``https://localhost:…``.

    Attributes:
        requests: what came, in order; a request is in it before it is answered.
        connections: how many there were.
    """

    def __init__(
        self, respond: Callable[[Request], Answer] | None = None, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.respond = respond or (lambda request: Answer())
        self.requests: list[Request] = []
        self.connections = 0
        self._tls = tls
        self._script: list[Answer] = []
        self._lock = threading.Lock()
        self._port = 0
        self._server: _Server | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"https://localhost:{self._port}" if self._tls else f"http://127.0.0.1:{self._port}"

    def will(self, *answers: Answer) -> None:
        """Answer the next requests so."""
        with self._lock:
            self._script += answers

    def start(self) -> HttpStandIn:
        self._server = _Server(self, self._tls, self._port)
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close every connection and the port; again does nothing."""
        server, self._server = self._server, None
        if server:
            server.stop()
            self._thread.join()

    def __enter__(self) -> HttpStandIn:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            scripted = self._script.pop(0) if self._script else None
        return scripted or self.respond(request)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    request_queue_size = 100

    def __init__(self, stand_in: HttpStandIn, tls: ssl.SSLContext | None, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.stand_in = stand_in
        self.stopping = threading.Event()
        self._tls = tls
        self._open: set[socket.socket] = set()

    def finish_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        self.stand_in.connections += 1
        if self._tls:
            request.settimeout(10)
            request = self._tls.wrap_socket(request, server_side=True)
            request.settimeout(None)
        with request:
            self._open.add(request)
            try:
                if not self.stopping.is_set():
                    super().finish_request(request, client_address)
            finally:
                self._open.discard(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away, or refuses the certificate, is no trouble of the server's."""

    def stop(self) -> None:
        self.stopping.set()
        self.shutdown()
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has just gone
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        is_chunked = self.headers.get("Transfer-Encoding") == "chunked"
        size = int(self.headers.get("Content-Length") or 0)
        body = self._chunks() if is_chunked else self.rfile.read(size)
        if not is_chunked and len(body) < size:  # the client was killed while it sent
            self.close_connection = True
            return
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        answer = self.server.stand_in.answer(Request(self.command, self.path, self.headers, body))
        if answer.trouble == "hang":
            self.server.stopping.wait(60)
        if answer.trouble == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if answer.trouble in ("hang", "reset", "close"):
            self.close_connection = True
            return
        if answer.trouble in ("status", "header"):
            self.wfile.write(b"HTTP/1.1 200" if answer.trouble == "status" else b"HTTP/1.1 200 OK\r\nContent-Le")
            self.close_connection = True
            return
        body = b"" if self.command == "HEAD" else answer.body
        self.wfile.write(_head(answer) + body[: len(body) // 2 if answer.trouble else None])
        if answer.trouble == "half" or answer.headers.get("Connection") == "close":
            self.close_connection = True

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_CONNECT = _serve

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


def _head(answer: Answer) -> bytes:
    try:
        reason = HTTPStatus(answer.status).phrase
    except ValueError:
        reason = http.client.responses.get(answer.status, "")
    length = {} if "Transfer-Encoding" in answer.headers else {"Content-Length": str(len(answer.body))}
    headers = {**length, **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
