"""PagerDuty and a receiver of webhooks, for a demo without the net: both on one free port of this machine."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import json
import secrets
import threading
from collections import defaultdict
from typing import Any

__all__ = ["Receiver"]


class Receiver:
    """Takes what PagerDuty's Events API v2 would take, and callbacks whose signature is right; as a context.

    Attributes:
        routing_key: the key that it asks for at ``/v2/enqueue``.
        secret: what signs the callbacks, to any other path, as Standard Webhooks writes it.
        incidents: the open ones by deduplication key, with their summaries.
        history: all that PagerDuty was told, in order: action and key.
        callbacks: the events that came, by path and ``webhook-id``.
        refused: why requests were.
    """

    def __init__(self) -> None:
        self.routing_key = secrets.token_hex(16)
        self._key = secrets.token_bytes(32)
        self.secret = "whsec_" + base64.b64encode(self._key).decode()
        self.incidents: dict[str, str] = {}
        self.history: list[tuple[str, str]] = []
        self.callbacks: dict[str, dict[str, Any]] = defaultdict(dict)
        self.refused: list[str] = []
        self._lock = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Take one request and give the status of its answer; ``headers`` have names in lower case."""
        with self._lock:
            if path == "/v2/enqueue":
                refusal = self._take_alert(json.loads(body))
            else:
                refusal = self._take_callback(path, headers, body)
            if refusal:
                self.refused.append(refusal)
                return 400
            return 202

    def _take_alert(self, request: dict[str, Any]) -> str:
        if request.get("routing_key") != self.routing_key:
            return "another routing_key"
        action, key = request["event_action"], request["dedup_key"]
        self.history.append((action, key))
        if action == "trigger":
            self.incidents[key] = request["payload"]["summary"]
        else:
            self.incidents.pop(key, None)
        return ""

    def _take_callback(self, path: str, headers: dict[str, str], body: bytes) -> str:
        name = headers.get("webhook-id", "")
        signed = f"{name}.{headers.get('webhook-timestamp', '')}.".encode() + body
        mark = "v1," + base64.b64encode(hmac.digest(self._key, signed, hashlib.sha256)).decode()
        if not hmac.compare_digest(mark, headers.get("webhook-signature", "")):
            return f"callback {name} is not signed as it should be"
        self.callbacks[path][name] = json.loads(body)
        return ""

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status = receiver.take(self.path, {key.lower(): value for key, value in self.headers.items()}, body)
                answer = b'{"status":"success"}'
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing on stderr."""

        return Handler
