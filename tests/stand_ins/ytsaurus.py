"""An HTTP proxy that stands in for YTsaurus', for the commands that the sink gives, strict about their form.

See the pages "HTTP proxy" and "Commands" of YTsaurus' reference: a command is ``/api/v4/NAME``, by GET, POST or PUT as
it is not volatile, volatile, or takes data; its parameters are YSON in ``X-YT-Parameters``; an error is JSON in
``X-YT-Error`` with ``X-YT-Response-Code``.
"""

from __future__ import annotations

import json
from typing import Any

from yt import yson

from tests.stand_ins.http_server import Answer, HttpStandIn, Request

__all__ = ["YTsaurusStandIn"]

_COMMANDS = {
    "exists": ("GET", "null", "structured", False, False),
    "create": ("POST", "null", "structured", True, False),
    "mount_table": ("POST", "null", "structured", True, False),
    "insert_rows": ("PUT", "tabular", "null", True, True),
}
_MAX_ROWS = 100_000
_TYPES = {"string": str, "int64": int}


class YTsaurusStandIn(HttpStandIn):
    """One cluster.

    Attributes:
        token: the one that it takes.
        tables: by path: the schema's columns, ``rows`` by id, and whether it is ``mounted``.
        writes: how often a row was written.
        refuse_mounting: answer as a cluster without a healthy tablet cell does.
    """

    def __init__(self, token: str) -> None:
        super().__init__(self._serve)
        self.token = token
        self.tables: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.refuse_mounting = False

    def _serve(self, request: Request) -> Answer:
        if request.path == "/api/v4":
            named = ("input_type", "output_type", "is_volatile", "is_heavy")
            listed = [{"name": name, **dict(zip(named, parts[1:]))} for name, parts in _COMMANDS.items()]
            return _json(listed)
        if request.path.startswith("/hosts"):
            return _json([f"127.0.0.1:{self.port}"])
        if request.headers["Authorization"] != f"OAuth {self.token}":
            return _error(900, f"Authentication failed with {request.headers['Authorization']}", 401)
        name = request.path.removeprefix("/api/v4/")
        method = _COMMANDS[name][0]
        if request.method != method:
            return _error(1, f"Command {name} is called with {request.method}, expected {method}", 405)
        has_data = _COMMANDS[name][1] != "null"
        is_json = request.headers["Content-Type"] == "application/json"
        if method == "POST" and not has_data:  # then the body holds the parameters
            given = json.loads(request.body) if is_json else yson.loads(request.body)
        else:
            given = yson.loads(request.headers["X-YT-Parameters"].encode())
        return getattr(self, f"_{name}")(given, request.body)

    def _exists(self, given: Any, body: bytes) -> Answer:
        return _json({"value": str(given["path"]) in self.tables})

    def _create(self, given: Any, body: bytes) -> Answer:
        if given["type"] != "table" or not given["ignore_existing"] or not given["recursive"]:
            return _error(1, "expected a table")
        columns = [dict(column) for column in given["attributes"]["schema"]]
        keys = [column for column in columns if "sort_order" in column]
        if not given["attributes"]["dynamic"] or columns[: len(keys)] != keys or not keys:
            return _error(314, "Sorted dynamic table must have key columns in front")
        table = {"columns": {str(one["name"]): one for one in columns}, "rows": {}, "mounted": False}
        self.tables.setdefault(str(given["path"]), table)
        return _json({"node_id": "1-2-3-4"})

    def _mount_table(self, given: Any, body: bytes) -> Answer:
        if self.refuse_mounting:
            return _error(1, "Error mounting table", inner=[{"code": 1733, "message": "No healthy tablet cells"}])
        self.tables[str(given["path"])]["mounted"] = True
        return _json({})

    def _insert_rows(self, given: Any, body: bytes) -> Answer:
        table = self.tables.get(str(given["path"]))
        if table is None:
            return _error(500, f"Error resolving path {given['path']}")
        if not table["mounted"]:
            return _error(1702, "Tablet is not mounted")
        rows = [
            {str(name): None if isinstance(value, yson.YsonEntity) else value for name, value in row.items()}
            for row in yson.loads(body, yson_type="list_fragment")
        ]
        if len(rows) > _MAX_ROWS:
            return _error(1, "Transaction row limit exceeded")
        for row in rows:
            for name, value in row.items():
                column = table["columns"].get(name)
                if column is None or "expression" in column:
                    return _error(307, f"No such column {name!r}")
                if value is not None and not isinstance(value, _TYPES[str(column["type"])]):
                    return _error(307, f"Invalid type of value in column {name!r}")
        for row in rows:
            self.writes += 1
            table["rows"][str(row["id"])] = row
        return _json({})


def _json(value: object) -> Answer:
    return Answer(200, json.dumps(value).encode(), {"Content-Type": "application/json", "X-YT-Request-Id": "1-2-3-4"})


def _error(code: int, message: str, status: int = 400, inner: list[Any] | None = None) -> Answer:
    said = {"code": code, "message": message, "attributes": {}, "inner_errors": inner or []}
    text = json.dumps(said)
    headers = {"Content-Type": "application/json", "X-YT-Error": text, "X-YT-Response-Code": str(code)}
    return Answer(status, text.encode(), {**headers, "X-YT-Request-Id": "1-2-3-4"})
