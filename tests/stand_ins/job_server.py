"""A bulk API: jobs are created, run for some polls, and have files to download."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from typing import Any

from tests.stand_ins.http_server import Answer, Request

__all__ = ["Jobs"]


class Jobs:
    """Jobs that export rows.

    Args:
        rows: the rows, dicts.
        parts: the number of files of a job.
        polls: the number of polls until a job is done.

    Attributes:
        jobs: the bodies of the requests that created jobs, by id.
        requests: what came: ``create``, ``poll 1``, ``part 1/0``.
        before: called with each of these before the request is answered.
        fates: for each job in the order of creation, ``failed``, ``expired`` or ``unknown`` instead of ``done``.
    """

    def __init__(self, rows: list[dict[str, Any]], *, parts: int = 3, polls: int = 1, format: str = "csv") -> None:
        self.rows, self.count, self.polls, self.format = rows, parts, polls, format
        self.is_packed = False
        self.jobs: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.before: Callable[[str], None] = lambda request: None
        self.fates: list[str] = []
        self.answers: dict[str, list[Answer]] = {}
        self.host = ""
        self._keys: dict[str, str] = {}
        self._polled: dict[str, int] = {}

    def respond(self, request: Request) -> Answer:
        steps = request.path.strip("/").split("/")
        name = {("POST", 2): "create", ("GET", 3): f"poll {steps[-1]}"}.get(
            (request.method, len(steps)), f"part {'/'.join(steps[-2:])}"
        )
        self.before(name)
        self.requests.append(name)
        if self.answers.get(name):
            return self.answers[name].pop(0)
        if name == "create":
            key = request.headers.get("Idempotency-Key", str(len(self.jobs)))
            id = self._keys.setdefault(key, str(len(self.jobs) + 1))
            self.jobs.setdefault(id, json.loads(request.body))
            return _json({"job": {"id": int(id)}}, 201)
        id = steps[2]
        fate = self.fates[int(id) - 1] if int(id) <= len(self.fates) else "done"
        if name.startswith("part"):
            return self._part(self._rows(id), int(steps[3]))
        self._polled[id] = self._polled.get(id, 0) + 1
        if self._polled[id] <= self.polls:
            return _json({"state": "running"})
        if fate == "unknown":
            return _json({}, 404)
        urls = [{"url": f"{self.host}/v1/exports/{id}/{number}"} for number in range(self.count)]
        found = {"state": fate, "files": urls, "rows": len(self._rows(id)), "why": "out of\nmemory"}
        return _json(found)

    def _rows(self, id: str) -> list[dict[str, Any]]:
        since = self.jobs[id].get("since", "")
        return [row for row in self.rows if row["updated"] >= since]

    def _part(self, rows: list[dict[str, Any]], number: int) -> Answer:
        chosen = rows[number :: self.count]
        if self.format == "csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, list(self.rows[0]) if self.rows else ["id"])
            writer.writeheader()
            writer.writerows(chosen)
            body = text.getvalue().encode()
        else:
            body = b"".join(json.dumps(row).encode() + b"\n" for row in chosen)
        return Answer(200, gzip.compress(body) if self.is_packed else body)


def _json(document: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(document).encode())
