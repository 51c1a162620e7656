"""A server that accepts the messages that Microsoft documents for webhooks of workflows, and answers 202."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/workflows/0123456789abcdef/triggers/manual/paths/invoke/"
LARGEST = 28_000
COLORS = {"Default", "Dark", "Light", "Accent", "Good", "Warning", "Attention"}


class TeamsServer:
    """The webhook of a workflow at a loopback address.

    Attributes:
        cards: the cards that the channel has.
        refused: titles that are answered with 400.
        answers: statuses of the next requests, instead of 202.
    """

    def __init__(self) -> None:
        self.cards: list[dict[str, Any]] = []
        self.requests = 0
        self.refused: list[str] = []
        self.answers: list[int] = []
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        """The URL of the webhook, without its last part."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    def start(self) -> None:
        """Listen at the same port as before."""
        teams = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(teams.answer(self.path, self.headers.get("Content-Type", ""), body))
                self.send_header("Content-Length", "0")
                self.end_headers()

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

    def answer(self, path: str, kind: str, body: bytes) -> int:
        """Check a request against the documented form, and return the status of the answer."""
        self.requests += 1
        if self.answers:
            return self.answers.pop(0)
        if not path.startswith(PATH) or path == PATH:
            return 404
        if kind != "application/json":
            return 415
        if len(body) > LARGEST:
            return 413
        message = json.loads(body)
        if message.keys() != {"type", "attachments"} or message["type"] != "message":
            return 400
        (attachment,) = message["attachments"]
        if attachment["contentType"] != "application/vnd.microsoft.card.adaptive" or attachment["contentUrl"]:
            return 400
        card = attachment["content"]
        if not is_card(card) or title_of(card) in self.refused:
            return 400
        self.cards.append(card)
        return 202


def is_card(card: dict[str, Any]) -> bool:
    """Check a card against the schema of Adaptive Cards 1.4: the elements that the sink uses."""
    if (card["type"], card["version"]) != ("AdaptiveCard", "1.4"):
        return False
    for element in card["body"]:
        if element["type"] == "RichTextBlock":
            texts = [run["text"] for run in element["inlines"] if run["type"] == "TextRun"]
            if not all(texts) or any(run.get("color", "Default") not in COLORS for run in element["inlines"]):
                return False
        elif element["type"] != "FactSet" or not all(row.keys() == {"title", "value"} for row in element["facts"]):
            return False
    return all(action["type"] == "Action.OpenUrl" and action["url"] for action in card.get("actions", []))


def title_of(card: dict[str, Any]) -> str:
    """Return the title of a card."""
    return str(card["body"][0]["inlines"][0]["text"])
