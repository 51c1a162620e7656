"""A service under test, and what is asked of it."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3

from balog.event import Event, decode, encode
from balog.service.service import Service
from balog.service.settings import RequestLimits, ServiceConfig
from balog.topics import Message, Topics

ORDER = {
    "type": "object",
    "required": ["cls_type", "price"],
    "properties": {"cls_type": {"const": "order"}, "price": {"type": "number"}, "note": {"type": "string"}},
}


def put_schema(folder: Path, type: str, version: str, schema: Any) -> None:
    place = folder / type / f"{version}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(schema))


def publish(topics: Topics, topic: str, *payloads: Any) -> list[Event]:
    """Publish payloads as events, past any service."""
    events = [Event.new("shop", payload) for payload in payloads]
    topics.topic(topic).publish([Message(event.header.id, encode(event)) for event in events])
    return events


class Asked:
    """A running service, and a client of it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.http = urllib3.PoolManager(retries=False, timeout=30)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> urllib3.BaseHTTPResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.request(method, self.service.url + path, body=body, headers=named)

    def post(self, body: Any, query: str = "", **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.ask("POST", "/v1/events" + query, data, **{"content_type": "application/json", **headers})
        return answer.status, answer.json()

    def stored(self, topic: str) -> list[Any]:
        found = self.service.topics.topic(topic)
        return [decode(one.body) for one in found.peek(10_000)] if found.exists() else []

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        """A connection on which a test says what it wants, HTTP or not."""
        found = urlsplit(self.service.url)
        with socket.create_connection((found.hostname or "", found.port or 0), timeout=30) as one:
            yield one


def answer_of(connection: socket.socket) -> tuple[int, Any]:
    """Read one answer, whose connection then ends or not."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return 0, None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    length = int(next(line.split(":")[1] for line in lines if line.startswith("content-length:")))
    while len(body) < length:
        body += connection.recv(65536)
    return int(lines[0].split()[1]), json.loads(body)


@contextmanager
def serving(tmp_path: Path, limits: RequestLimits | None = None, **options: Any) -> Iterator[Asked]:
    registry = tmp_path / "schemas"
    put_schema(registry, "order", "1.0.0", ORDER)
    config = ServiceConfig(
        **{
            "topics": f"local:{tmp_path / 'topics'}",
            "listen": ":0",
            "registry": str(registry),
            "limits": limits or RequestLimits(),
            "drain": 5.0,
            **options,
        }
    )
    with Service(config) as service:
        asked = Asked(service)
        try:
            yield asked
        finally:
            asked.http.clear()


@contextmanager
def serving_alone(folder: Path, **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run ``balog serve`` in a folder as a process of its own; give it with its URL when it is ready."""
    (folder / "serve.json").write_text(json.dumps({"topics": "local:topics", "listen": ":0", **options}))
    command = [sys.executable, "-m", "balog", "serve", "--config", "serve.json"]
    env = {**os.environ, "PYTHONUNBUFFERED": ""}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().removeprefix("balog serve: ready at ").strip()
        finally:
            process.kill()
