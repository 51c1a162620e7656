"""A bulk API that stands in for Elasticsearch's: strict about its form; it keeps documents by their ``_id``."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.stand_ins.http_server import Answer, HttpStandIn, Request

__all__ = ["ElasticStandIn"]

_FILTER = "errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason"


class ElasticStandIn(HttpStandIn):
    """See the page "Bulk index or delete documents" of Elasticsearch's reference.

    Attributes:
        documents: what was indexed, by ``_id``.
        faults: what to answer for a document instead of indexing it: a status and an ``error``, by ``_id``.
        writes: how often a document was written.
    """

    def __init__(self) -> None:
        super().__init__(self._bulk)
        self.documents: dict[str, Any] = {}
        self.faults: dict[str, tuple[int, dict[str, Any]]] = {}
        self.writes = 0

    def _bulk(self, request: Request) -> Answer:
        parts = urlsplit(request.path)
        index, _, api = parts.path.lstrip("/").partition("/")
        if request.method != "POST" or api != "_bulk" or not index:
            return _refusal(405, f"Incorrect HTTP method for uri [{request.path}] and method [{request.method}]")
        if parse_qs(parts.query) != {"filter_path": [_FILTER]}:
            return _refusal(400, f"request [{parts.path}] contains unrecognized parameter")
        if request.headers["Content-Type"] not in ("application/x-ndjson", "application/json"):
            return _refusal(406, f"Content-Type header [{request.headers['Content-Type']}] is not supported")
        if not request.body.endswith(b"\n"):
            return _refusal(400, "The bulk request must be terminated by a newline [\\n]")
        lines = request.body[:-1].split(b"\n")
        if len(lines) % 2:
            return _refusal(400, "request body is required")
        items = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            [(verb, options)] = json.loads(action).items()
            if verb not in ("create", "index") or set(options) != {"_id"}:
                return _refusal(400, "Malformed action/metadata line")
            items.append({verb: self._item(index, verb, options["_id"], document)})
        errors = any("error" in item for found in items for item in found.values())
        return Answer(200, json.dumps({"errors": errors, "items": items}).encode())

    def _item(self, index: str, verb: str, name: str, line: bytes) -> dict[str, Any]:
        if name in self.faults:
            status, error = self.faults[name]
            return {"status": status, "error": error}
        document = json.loads(line, object_pairs_hook=_without_duplicates)
        is_stream = index.startswith("logs-")
        if is_stream and verb != "create":
            error = "only write ops with an op_type of create are allowed in data streams"
            return {"status": 400, "error": {"type": "illegal_argument_exception", "reason": error}}
        if is_stream and not isinstance(document.get("@timestamp"), str):
            return {"status": 400, "error": {"type": "document_parsing_exception", "reason": "failed to parse"}}
        if verb == "create" and name in self.documents:
            error = f"[{name}]: version conflict, document already exists (current version [1])"
            return {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": error}}
        self.writes += 1
        found = name in self.documents
        self.documents[name] = document
        return {"status": 200 if found else 201}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "Duplicate field"
    return dict(pairs)


def _refusal(status: int, reason: str) -> Answer:
    error = {"type": "illegal_argument_exception", "reason": reason}
    return Answer(status, json.dumps({"error": {"root_cause": [error], **error}, "status": status}).encode())
