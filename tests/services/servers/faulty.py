"""A proxy in front of an HTTP server that fails as it is told to, and counts."""

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Fault = Callable[[str, str], str]


class FaultyProxy:
    """Passes requests on as they are, host and all, so that signatures stay good.

    ``fault`` is asked with method and path of each request: "" passes it on, "503" answers that, "cut" ends the
    answer in the middle of its body. ``counted`` holds the requests by method.
    """

    def __init__(self, port: int) -> None:
        self.fault: Fault = lambda method, path: ""
        self.counted: Counter[str] = Counter()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy.counted[self.command] += 1
                fault = proxy.fault(self.command, self.path)
                if fault == "503":
                    body = b"<Error><Code>ServiceUnavailable</Code><Message>Please reduce</Message></Error>"
                    self.send_response(503)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body if self.command != "HEAD" else b"")
                    return
                upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    upstream.putheader(name, value)
                upstream.endheaders()
                answer = upstream.getresponse()
                body = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(body))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)
                upstream.close()
                if fault == "cut":
                    self.close_connection = True

            do_HEAD = do_GET

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@contextmanager
def running_proxy(port: int) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
