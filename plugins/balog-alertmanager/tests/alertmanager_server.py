"""Alertmanager's API v2 as its OpenAPI document has it: checks each request, keeps the alerts by their labels.

It answers which alerts fire, by the label ``key``; it is one of a gateway's if ``is_readable`` is False.
"""

import json
import re
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from tests.stand_ins.http_server import Answer, Request

__all__ = ["AlertmanagerStandIn"]

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_FIELDS = {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}


class AlertmanagerStandIn:
    """The answers of one server.

    Attributes:
        alerts: the last request about each set of labels, by the label ``key``.
        firing: the severities that fire, by the label ``key``.
        posts: the keys of all alerts that came, in order.
        refused: keys of alerts that are invalid.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.alerts: dict[str, dict[str, Any]] = {}
        self.firing: dict[str, dict[str, dict[str, str]]] = {}
        self.is_readable = True
        self.posts: list[str] = []
        self.refused: set[str] = set()

    def __call__(self, request: Request) -> Answer:
        if request.headers["Authorization"] != self.token:
            return Answer(401, b"Unauthorized")
        if request.method == "GET" and request.path.startswith("/api/v2/alerts?filter=") and self.is_readable:
            name, _, value = unquote(request.path.partition("?filter=")[2]).partition("=")
            assert name == "key"
            firing = self.firing.get(json.loads(value), {})
            return Answer(200, json.dumps([{"labels": labels, "receivers": []} for labels in firing.values()]).encode())
        if (request.method, request.path) != ("POST", "/api/v2/alerts"):
            return Answer(404)
        documents = json.loads(request.body)
        for document in documents:
            if errors := _errors(document) or document["labels"]["key"] in self.refused:
                return Answer(400, json.dumps(errors).encode())
        for document in documents:
            self.posts.append(document["labels"]["key"])
            self.alerts[document["labels"]["key"]] = document
            same = self.firing.setdefault(document["labels"]["key"], {})
            same[document["labels"]["severity"]] = document["labels"]
            if datetime.fromisoformat(document["endsAt"]) <= datetime.now(timezone.utc):
                del same[document["labels"]["severity"]]
        return Answer()


def _errors(document: dict[str, Any]) -> list[str]:
    errors = [f"unknown field {name}" for name in document.keys() - _FIELDS]
    for name, value in [*document["labels"].items(), *document["annotations"].items()]:
        if not _NAME.fullmatch(name) or not isinstance(value, str) or not value:
            errors.append(f"{name}={value!r}")
    starts, ends = (datetime.fromisoformat(document[name]) for name in ("startsAt", "endsAt"))
    if ends < starts or starts.tzinfo is None:
        errors.append("start time must be before end time")
    return errors
