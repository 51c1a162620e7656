"""The HTTP server for scrapes and an engine's health, with limited clients and timeouts, and without logs.

It is a module of its own so that only programs that serve import an HTTP server.
"""

from __future__ import annotations

import os
import socketserver
import threading
import weakref
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_TIMEOUT = 10.0  # seconds for a client to send its request, and to read the answer
_MAX_CLIENTS = 16
_POLL = 0.1  # seconds until a server notices its shutdown


class PageAnswer(NamedTuple):
    """The answer to a client."""

    content_type: str
    body: bytes
    status: int = 200


Page = Callable[[str], PageAnswer]
"""Returns the answer to a request, by its header ``Accept``."""


def metrics_answer(registry: Any, accept: str) -> PageAnswer:
    """Return the metrics of a prometheus-client registry in the format that a client accepts."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    return PageAnswer(content_type, encode(registry))


class PageServer(ThreadingHTTPServer):
    """Answers GET requests in threads of its own.

    Args:
        pages: the pages by path.

    Raises:
        OSError: the server can't listen at the address.
    """

    def __init__(self, family: Any, address: Any, pages: Mapping[str, Page]) -> None:
        self.address_family = family
        self.pages = pages
        self._places = threading.BoundedSemaphore(_MAX_CLIENTS)
        super().__init__(address, _Handler)
        _servers.add(self)
        threading.Thread(target=self.serve_forever, args=(_POLL,), name="balog scraping", daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a client, or close the connection if there are too many clients."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread can be started
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a client, then make room for another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def server_bind(self) -> None:
        """Bind without a DNS request for the host's name, as ``HTTPServer`` makes."""
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


_servers: weakref.WeakSet[PageServer] = weakref.WeakSet()


def _close_inherited() -> None:
    """Close the sockets that a forked child inherited; they would keep the port occupied."""
    for server in list(_servers):
        server.socket.close()


os.register_at_fork(after_in_child=_close_inherited)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
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

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: stderr is for people, and scrapes come every few seconds."""
