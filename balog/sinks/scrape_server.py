"""The HTTP server behind ``scraping``: bounded in clients and in patience, and silent.

A module of its own, so that only a broker that is scraped imports a server.
"""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple

__all__ = ["Answer", "HttpServer"]

_TIMEOUT = 10.0  # seconds for a client to say what it wants, and to take it
_MAX_CLIENTS = 16
_POLL = 0.1  # seconds until a server that is shut down ends


class Answer(NamedTuple):
    """What a client gets, and what to do once it has it."""

    content_type: str
    body: bytes
    taken: Callable[[], None]


class HttpServer(socketserver.ThreadingMixIn, HTTPServer):
    """Answers GET /metrics from a thread of its own.

    Args:
        family: of the address.
        answer: gives the answer to what a client accepts, the header ``Accept``.

    Raises:
        OSError: the address is not to be had.
    """

    daemon_threads = True

    def __init__(self, family: Any, address: Any, answer: Callable[[str], Answer]) -> None:
        self.address_family = family
        self.answer = answer
        self._places = threading.BoundedSemaphore(_MAX_CLIENTS)
        super().__init__(address, _Handler)
        threading.Thread(target=self.serve_forever, args=(_POLL,), name="balog scraping", daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without asking the DNS for the host's name, as ``HTTPServer`` would."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a thread for a client, or hang up on one too many."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a client, and make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep silent: a client that goes away is nobody's trouble."""


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    timeout = _TIMEOUT
    server_version = "balog"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/metrics", "/"):
            self.send_error(404, "the metrics are at /metrics")
            return
        answer = self.server.answer(self.headers.get("Accept", ""))
        self.send_response(200)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        answer.taken()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: stderr is for people, and scrapes come every few seconds."""
