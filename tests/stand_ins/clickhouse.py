"""An HTTP interface that stands in for ClickHouse's: it knows the few statements that the sink says, and their form.

The real server is in ``tests/services/test_clickhouse_server.py``; this one is for faults, and for other versions.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.stand_ins.http_server import Answer, HttpStandIn, Request

__all__ = ["ClickHouseStandIn"]

_NAME = r"`((?:[^`\\]|\\.)+)`"
_CREATE = re.compile(
    rf"CREATE TABLE IF NOT EXISTS {_NAME}\.{_NAME} \((.*)\) ENGINE = ReplacingMergeTree PARTITION BY .*"
)
_ALTER = re.compile(rf"ALTER TABLE {_NAME}\.{_NAME} (ADD COLUMN .*)")
_ADDED = re.compile(rf"ADD COLUMN {_NAME} (Nullable\(\w+\))(?:, |$)")
_COLUMNS = re.compile(
    r"SELECT name, type FROM system\.columns WHERE database = '(.*)' AND table = '(.*)' FORMAT JSONCompact"
)
_PROBE = re.compile(
    r"SELECT toUInt32\(\(SELECT count\(\) FROM system\.databases WHERE name = '(.*)'\)\), "
    r"\(SELECT value FROM system\.settings WHERE name = 'readonly'\) FORMAT JSONCompact"
)
_INSERT = re.compile(rf"INSERT INTO {_NAME}\.{_NAME} \((.*)\) FORMAT JSONEachRow")


class ClickHouseStandIn(HttpStandIn):
    """See the page "HTTP interface" of ClickHouse's reference.

    Attributes:
        version: what ``version()`` says.
        password: the user's; requests with another are refused.
        tables: by name, column → type.
        rows: what was inserted, in order, with the table under ``""``.
        faults: what to answer to an INSERT with this event: code and text; ``{row}`` in it is the row's number.
        statements: all that was asked for but INSERTs.
    """

    def __init__(self, version: str = "18.16.1", password: str = "") -> None:
        super().__init__(self._serve)
        self.version = version
        self.password = password
        self.tables: dict[str, dict[str, str]] = {}
        self.rows: list[dict[str, Any]] = []
        self.faults: dict[str, tuple[int, str]] = {}
        self.statements: list[str] = []

    def _serve(self, request: Request) -> Answer:
        scheme, _, given = (request.headers["Authorization"] or "").partition(" ")
        user, _, password = base64.b64decode(given).decode().partition(":")
        if scheme != "Basic" or not user or password != self.password:
            return _refusal(193, f"Wrong password for user {user}")
        if request.method != "POST":
            return _refusal(164, "Cannot execute query in readonly mode")
        query = parse_qs(urlsplit(request.path).query, strict_parsing=True) if "?" in request.path else {}
        if "query" in query:
            if set(query) - {"query", "async_insert"} or ("async_insert" in query and self.version < "21"):
                return _refusal(115, "Unknown setting")
            return self._insert(query["query"][0], request.body)
        statement = request.body.decode()
        self.statements.append(statement)
        return self._run(statement)

    def _run(self, statement: str) -> Answer:
        if _PROBE.fullmatch(statement):
            return _data([[1, "0"]])
        if statement == "SELECT version() FORMAT JSONCompact":
            return _data([[self.version]])
        if found := _COLUMNS.fullmatch(statement):
            return _data([list(pair) for pair in self.tables.get(found[2], {}).items()])
        if found := _CREATE.fullmatch(statement):
            columns = [column.split(" ", 1) for column in re.split(r", (?=[a-z_]+ )", found[3])]
            self.tables.setdefault(found[2], dict(columns))
            return Answer()
        if found := _ALTER.fullmatch(statement):
            table = self.tables[found[2]]
            added = _ADDED.findall(found[3])
            if "".join(f"ADD COLUMN `{name}` {kind}, " for name, kind in added) != found[3] + ", ":
                return _refusal(62, "Syntax error")
            if taken := next((name for name, _ in added if name in table), None):
                return _refusal(44, f"Cannot add column {taken}: column with this name already exists")
            table.update(added)
            return Answer()
        return _refusal(62, f"Syntax error: failed at position 1: {statement[:40]}")

    def _insert(self, query: str, body: bytes) -> Answer:
        found = _INSERT.fullmatch(query)
        if not found:
            return _refusal(62, "Syntax error")
        table = self.tables.get(found[2])
        if table is None:
            return _refusal(60, f"Table {found[1]}.{found[2]} doesn't exist.")
        columns = re.findall(_NAME, found[3])
        if unknown := set(columns) - set(table):
            return _refusal(16, f"There is no column {min(unknown)}")
        rows = []
        for number, line in enumerate(body.removesuffix(b"\n").split(b"\n"), 1):
            row = json.loads(line)
            if set(row) - set(columns):
                return _refusal(117, f"Unknown field found while parsing JSONEachRow format: (at row {number})")
            if row["id"] in self.faults:
                code, said = self.faults[row["id"]]
                return _refusal(code, said.format(row=number))
            rows.append({"": found[2], **row})
        self.rows += rows
        return Answer()


def _data(rows: list[Any]) -> Answer:
    return Answer(200, json.dumps({"meta": [], "data": rows, "rows": len(rows)}).encode())


def _refusal(code: int, said: str) -> Answer:
    return Answer(500, f"Code: {code}, e.displayText() = DB::Exception: {said}, e.what() = DB::Exception\n".encode())
