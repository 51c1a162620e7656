"""Stands in for an event service, for what a real one seldom answers: it takes lines of events, and tells of each."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from balog.event import decode
from tests.stand_ins.http_server import Answer, Request

__all__ = ["ServiceStandIn"]


class ServiceStandIn:
    """Answers as docs/reference/service.md has it.

    Attributes:
        events: those that were taken, by id.
        writes: how often one was.
        refused: by id, the status and the problems of events that are not taken; with 429, ``retry_after`` is 2.
        most: events in a request, above which it is refused with 413.
    """

    def __init__(self, token: str | None = None) -> None:
        self._token = token
        self.events: dict[str, bytes] = {}
        self.writes = 0
        self.refused: dict[str, tuple[int, list[dict[str, str]]]] = {}
        self.most = 10_000

    def __call__(self, request: Request) -> Answer:
        if self._token is not None and request.headers.get("Authorization") != f"Bearer {self._token}":
            return _say(401, {"problem": "no token"})
        url = urlsplit(request.path)
        if url.path == "/ready":
            return _say(200, {"status": "ready"})
        assert (request.method, url.path) == ("POST", "/v1/events")
        assert request.headers["Content-Type"] == "application/x-ndjson"
        lines = request.body.splitlines()
        if len(lines) > self.most:
            return _say(413, {"problem": f"more than {self.most} events"})
        items = [self._take(line) for line in lines]
        accepted = sum(item["status"] == 202 for item in items)
        statuses = {item["status"] for item in items}
        if parse_qs(url.query).get("items") == ["failed"]:
            items = [item | {"index": index} for index, item in enumerate(items) if item["status"] != 202]
        told = {
            "accepted": accepted,
            "refused": len(lines) - accepted,
            "stores": {"topics": accepted},
            "items": items,
        }
        return _say(202 if accepted or not lines else statuses.pop() if len(statuses) == 1 else 422, told)

    def _take(self, line: bytes) -> dict[str, Any]:
        event = decode(line)
        name = event.header.id
        if name in self.refused:
            status, problems = self.refused[name]
            return {"status": status, "problems": problems} | ({"retry_after": 2.0} if status == 429 else {})
        self.writes += 1
        is_there = name in self.events
        self.events[name] = line
        return {"id": name, "status": 202, "store": "topics", "duplicate": is_there}


def _say(status: int, told: dict[str, Any]) -> Answer:
    return Answer(status, json.dumps(told).encode(), {"Content-Type": "application/json"})
