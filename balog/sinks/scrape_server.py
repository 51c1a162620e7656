"""The HTTP server behind ``scraping`` and an engine's health: bounded in clients and in patience, and silent.

A module of its own, so that only a program that is asked imports a server.
"""

from __future__ import annotations

import os
import socket
import socketserver
import threading
import weakref
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple

__all__ = ["Answer", "HttpServer", "Page", "metrics_answer"]

_TIMEOUT = 10.0  # seconds for a client to say what it wants, and to take it
_MAX_CLIENTS = 16
_POLL = 0.1  # seconds until a server that is shut down ends


class Answer(NamedTuple):
    """What a client gets, and what to do once it has it."""

    content_type: str
    body: bytes
    taken: Callable[[], object] = lambda: None
    status: int = 200


Page = Callable[[str], Answer]
"""Gives the answer to what a client accepts, the header ``Accept``."""


def metrics_answer(registry: Any, accept: str, taken: Callable[[], object] = lambda: None) -> Answer:
    """Give what a registry of prometheus-client holds, in the format that a client accepts."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    return Answer(content_type, encode(registry), taken)


class HttpServer(socketserver.ThreadingMixIn, HTTPServer):
    """Answers GET from threads of its own.

    Args:
        family: of the address, AF_UNIX for a path, which only this user may then use.
        pages: by path.

    Raises:
        OSError: the address is not to be had.
    """

    daemon_threads = True

    def __init__(self, family: Any, address: Any, pages: Mapping[str, Page]) -> None:
        self.address_family = family
        self.pages = pages
        self._places = threading.BoundedSemaphore(_MAX_CLIENTS)
        super().__init__(address, _Handler)
        _servers.add(self)
        threading.Thread(target=self.serve_forever, args=(_POLL,), name="balog scraping", daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without asking the DNS for the host's name, as ``HTTPServer`` would; a path is for this user alone."""
        socketserver.TCPServer.server_bind(self)
        if self.address_family == socket.AF_UNIX:
            os.chmod(self.server_address, 0o600)  # type: ignore[arg-type]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a thread for a client, or hang up on one too many."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread is to be had
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a client, and make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep silent: a client that goes away is nobody's trouble."""


_servers: weakref.WeakSet[HttpServer] = weakref.WeakSet()


def _let_go() -> None:
    """Close what a forked child inherited: nobody answers there, and the port would be taken as long as it lives."""
    for server in list(_servers):
        server.socket.close()


os.register_at_fork(after_in_child=_let_go)


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    timeout = _TIMEOUT
    server_version = "balog"
    sys_version = ""

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            self.send_error(404, f"there are {' '.join(path for path in self.server.pages if path != '/')}")
            return
        try:
            answer = page(self.headers.get("Accept", ""))
        except Exception as error:
            self.send_error(500, f"{type(error).__name__} in the page")
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        answer.taken()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: stderr is for people, and scrapes come every few seconds."""
