"""The tests of a new project: a stand-in of the source, and its answers, made from the schemas of the streams."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from balog.projects.model import ApiDescription, StreamPlan
from balog.projects.python_files import client_class
from balog.projects.source_text import Code, literal

_RECORDS = 3
_MAX_DEPTH = 6


def sample_config(api: ApiDescription) -> dict[str, Any]:
    """Return a config with a placeholder for each setting."""
    settings = {**api.sign_in.settings, **api.settings}
    found: dict[str, Any] = {"base_url": api.base_url or "https://api.example.com"}
    for name, value in settings.items():
        if name != "token_file":
            kind = value.get("type")
            text = f"your {name.replace('_', ' ')}"
            found[name] = value.get("default", text if kind == "string" else sample_value(value, 1))
    return found


def answers(api: ApiDescription) -> dict[str, Any]:
    """Return the answers of the stand-in by path, and the parameters by which it filters."""
    records: dict[str, list[Any]] = {}
    found: dict[str, Any] = {}
    filters: dict[str, list[str]] = {}
    for plan in api.streams:
        for parent in records.get(plan.parent.name, []) if plan.parent is not None else [None]:
            path = _filled(plan.path, parent)
            made = [sample(plan, len(records.get(plan.name, [])) + number) for number in range(1, _RECORDS + 1)]
            records.setdefault(plan.name, []).extend(made)
            found[path] = {plan.items: made} if plan.items else made
            if plan.replication_key:
                filters[path] = [plan.since, plan.replication_key, plan.items]
    if "token_url" in api.sign_in.settings:
        found["/token"] = {"access_token": "token-of-the-tests", "token_type": "bearer", "expires_in": 3600}
    return {"answers": found, "filters": filters}


def sample(plan: StreamPlan, number: int) -> dict[str, Any]:
    """Return a record of a stream, without the properties from its parent."""
    return {
        name: sample_value(schema, number)
        for name, schema in plan.schema["properties"].items()
        if name not in plan.from_parent
    }


def sample_value(schema: Mapping[str, Any], number: int, depth: int = 0) -> Any:
    """Return a value of a schema; numbers and texts differ by a number."""
    if depth > _MAX_DEPTH:
        return None
    for keyword in ("anyOf", "allOf"):
        parts = [part for part in schema.get(keyword, ()) if part != {"type": "null"}]
        if parts and "type" not in schema:
            return sample_value(parts[0], number, depth + 1)
    kinds = schema.get("type", "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    kind = next((each for each in kinds if each != "null"), "null")
    if kind == "object":
        return {name: sample_value(inner, number, depth + 1) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample_value(schema["items"], number, depth + 1)] if schema.get("items") else []
    day = f"2026-01-{1 + number % 28:02}"
    text = {"date-time": f"{day}T00:00:00Z", "date": day}.get(str(schema.get("format")), f"text {number}")
    return {"integer": number, "number": number + 0.5, "boolean": True, "string": text}.get(kind)


def _filled(path: str, parent: Any) -> str:
    def fill(found: re.Match[str]) -> str:
        name = found[1]
        value = f"your {name.partition('.')[2].replace('_', ' ')}" if name.startswith("config.") else parent[name]
        return quote(str(value), safe="")

    return re.sub(r"\{([^{}]*)\}", fill, path)


STAND_IN = '''"""A stand-in of the source on a free port of 127.0.0.1; ``answers.json`` has its answers by path."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_KNOWN = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))


def answer(target: str, body: bytes) -> bytes | None:
    """Return the answer to a request; lists are filtered as the source does."""
    parts = urlsplit(target)
    found = _KNOWN["answers"].get(parts.path)
    if found is None:
        return None
    param, key, items = _KNOWN["filters"].get(parts.path, ("", "", ""))
    since = dict(parse_qsl(parts.query)).get(param)
    if since is not None:
        records = [record for record in (found[items] if items else found) if record[key] >= since]
        found = {**found, items: records} if items else records
    return json.dumps(found).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = answer(self.path, body)
        data = b"" if found is None else found
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class StandIn:
    """The stand-in, as a context manager."""

    def __enter__(self) -> StandIn:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self._server.server_port}"
'''


def test_file(package: str, api: ApiDescription) -> str:
    """Return the tests: discovery, a sync, the client, and the practices of Singer."""
    client = client_class(package)
    config = {**sample_config(api), "base_url": Code("source.url")}
    if "token_url" in api.sign_in.settings:
        config["token_url"] = Code('f"{source.url}/token"')
    counts = {plan.name: _RECORDS * (_RECORDS if plan.parent is not None else 1) for plan in api.streams}
    paths = {plan.path: plan for plan in api.streams if plan.parent is None}
    methods = [
        each.name
        for each in api.operations
        if each.verb == "GET" and each.path in paths and not any(part.is_required for part in each.parameters)
    ]
    text = _TESTS.replace("@PACKAGE@", package).replace("@NAME@", package.replace("_", "-"))
    text = text.replace("@CONFIG@", literal(config, 4, len("return "))).replace("@CLIENT@", client)
    text = text.replace("@COUNTS@", literal(counts, 0, len("RECORDS = ")))
    return text.replace("@METHODS@", literal(methods, 0, len("LISTS: list[str] = ")))


_TESTS = '''"""@NAME@ against a stand-in of its source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from balog.verify import Options
from balog.verify.testing import TapPractices

from @PACKAGE@.client import @CLIENT@
from tests.stand_in import StandIn

ROOT = Path(__file__).parents[1]
RECORDS: dict[str, int] = @COUNTS@
LISTS: list[str] = @METHODS@


def config_for(source: StandIn) -> dict[str, Any]:
    """Return a config for the stand-in."""
    return @CONFIG@


@pytest.fixture(scope="module")
def source() -> Iterator[StandIn]:
    """Start the stand-in."""
    with StandIn() as found:
        yield found


@pytest.fixture(scope="module")
def command(source: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[str]]:
    """Return the tap's command line."""
    path = tmp_path_factory.mktemp("config") / "config.json"
    path.write_text(json.dumps(config_for(source)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
        yield [sys.executable, "-m", "@PACKAGE@", "--config", str(path)]


def test_discovery(command: Sequence[str]) -> None:
    """It finds all streams."""
    done = subprocess.run([*command, "--discover"], capture_output=True, text=True, timeout=60, check=True)
    assert [stream["tap_stream_id"] for stream in json.loads(done.stdout)["streams"]] == list(RECORDS)


def test_sync(command: Sequence[str]) -> None:
    """It writes all records."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert Counter(message["stream"] for message in messages if message["type"] == "RECORD") == RECORDS


@pytest.mark.parametrize("name", LISTS)
def test_client(source: StandIn, name: str) -> None:
    """Its methods read what the source answers."""
    with @CLIENT@(config_for(source)) as client:
        assert getattr(client, name)()


class TestPractices(TapPractices):
    """It keeps to the practices of Singer, each a test on one verification."""

    options = Options(states=1)

    @pytest.fixture(scope="module")
    @classmethod
    def tap_command(cls, command: Sequence[str]) -> Sequence[str]:
        """Return the tap's command line."""
        return command
'''
