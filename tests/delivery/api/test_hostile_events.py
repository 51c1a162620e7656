"""A real service, and events whose validation would take minutes: everybody else is served, and SIGTERM ends it."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from balog.registry.schema import TOO_LONG
from tests.delivery.serving import put_schema

LONG = "b" * 900_000
WIDE = r"[\w\W]{1,1000}[a-z]{1,1000}z"
PATTERN = """
edition = "2023";
import "buf/validate/validate.proto";
message Sale {
  string m = 1 [(buf.validate.field).string.pattern = "[a-z]{1,900}[a-y]{1,900}z"];
}
"""
CEL = """
edition = "2023";
import "buf/validate/validate.proto";
message Sale {
  string m = 1 [(buf.validate.field).cel = {id: "m", message: "m", expression: "!this.matches(this)"}];
}
"""

SCHEMAS: dict[str, tuple[Any, dict[str, Any]]] = {
    "pattern": ({"properties": {"m": {"pattern": WIDE}}}, {"m": LONG}),
    "propertyNames": ({"propertyNames": {"pattern": WIDE}}, {LONG: 1}),
    "protovalidate pattern": (PATTERN, {"m": LONG}),
    "CEL matches": (CEL, {"m": "b?" * 120_000}),
}


@contextmanager
def serving(folder: Path, kind: str) -> Iterator[tuple[subprocess.Popen[str], str, bytes]]:
    schema, payload = SCHEMAS[kind]
    if isinstance(schema, str):
        (folder / "schemas" / "sale").mkdir(parents=True)
        (folder / "schemas" / "sale" / "1.0.0.proto").write_text(schema)
    else:
        put_schema(folder / "schemas", "sale", "1.0.0", schema)
    (folder / "c.json").write_text('{"topics": "local:topics", "listen": ":0", "registry": "schemas"}')
    with subprocess.Popen(
        [sys.executable, "-m", "balog", "serve", "--config", "c.json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    ) as process:
        try:
            url = process.stdout.readline().removeprefix("balog serve: ready at ").strip()
            yield process, url, json.dumps({"cls_type": "sale", "version": "1.0.0", **payload}).encode()
        finally:
            process.kill()


@pytest.mark.parametrize("kind", SCHEMAS)
def test_events_that_would_take_minutes_are_refused_and_others_are_served(tmp_path: Path, kind: str):
    with serving(tmp_path, kind) as (process, url, event), urllib3.PoolManager(retries=False, timeout=120) as http:
        events = b"[" + b",".join([event] * 8) + b"]"
        answers: list[Any] = []

        def post() -> None:
            answers.append(http.request("POST", url + "/v1/events", body=events).json())

        threads = [threading.Thread(target=post) for _ in range(4)]
        for thread in threads:
            thread.start()
        health = http.request("GET", url + "/health").status
        for thread in threads:
            thread.join()
        good = http.request("POST", url + "/v1/events", body=b'{"cls_type": "log", "message": "m"}')
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)

    items = [item for answer in answers for item in answer["items"]]
    assert [item["status"] for item in items] == [422] * 32
    assert {item["problems"][0]["reason"] for item in items} == {TOO_LONG}
    assert (health, good.status) == (200, 202)
    assert (process.returncode, err) == (0, "")


def test_a_pattern_that_is_too_large_is_not_registered(tmp_path: Path):
    schema = {"properties": {"m": {"pattern": r"[\w\W]{1,4000}[a-z]{1,4000}z"}}}
    with serving(tmp_path, "pattern") as (_, url, _), urllib3.PoolManager(retries=False, timeout=120) as http:
        answer = http.request("POST", url + "/v1/schemas/other/1.0.0", body=json.dumps(schema).encode())

    assert answer.status == 422
    assert answer.json()["path"] == "$.properties.m.pattern"
    assert "compiles to more than 4 MiB" in answer.json()["problem"]
