"""A server that accepts what Slack documents for incoming webhooks, and answers as Slack does."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/services/T00000000/B00000000/"


class SlackServer:
    """Incoming webhooks at a loopback address.

    Attributes:
        texts: the texts of the messages that the channel has.
        messages: these messages.
        refused: parts of texts that are answered with 400.
        answers: answers to the next requests, instead of those that Slack would give: status, body, headers.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.requests = 0
        self.refused: list[str] = []
        self.answers: list[tuple[int, str, dict[str, str]]] = []
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        """The URL of the webhook, without its last part."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    def start(self) -> None:
        """Listen at the same port as before."""
        slack = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, text, headers = slack.answer(self.path, dict(self.headers), body)
                self.send_response(status)
                for name, value in {"Content-Type": "text/html", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *arguments: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, dict[str, str]]:
        """Check a request against the documented form, and return status, body and headers of the answer."""
        self.requests += 1
        if self.answers:
            return self.answers.pop(0)
        if not path.startswith(PATH) or path == PATH:
            return 404, "no_service", {}
        if headers.get("Content-Type") != "application/json":
            return 400, "invalid_payload", {}
        try:
            message = json.loads(body)
        except ValueError:
            return 400, "invalid_payload", {}
        text = message.get("text") if isinstance(message, dict) else None
        if not isinstance(text, str) or any(character in text for character in "<>"):
            return 400, "invalid_payload", {}
        if not text:
            return 400, "no_text", {}
        if len(text) > 40_000:
            return 400, "msg_too_long", {}
        if not are_blocks(message.get("blocks", [])):
            return 400, "invalid_blocks", {}
        if any(part in text.splitlines() for part in self.refused):
            return 400, "invalid_payload", {}
        self.texts.append(text)
        self.messages.append(message)
        return 200, "ok", {}


def are_blocks(blocks: Any) -> bool:
    """Check blocks against Slack's reference of Block Kit: headers and sections, their fields and lengths."""
    for block in blocks:
        if block["type"] == "header":
            texts, longest = [(block["text"], "plain_text")], 150
        elif block["type"] == "section" and "text" in block:
            texts, longest = [(block["text"], "mrkdwn")], 3000
        elif block["type"] == "section" and 0 < len(block["fields"]) <= 10:
            texts, longest = [(field, "mrkdwn") for field in block["fields"]], 2000
        else:
            return False
        if any(text["type"] != kind or not 0 < len(text["text"]) <= longest for text, kind in texts):
            return False
    return len(blocks) <= 50
