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
def test_others_are_served_while_an_event_takes_too_long_and_it_is_refused(tmp_path: Path, kind: str):
    with serving(tmp_path, kind) as (process, url, event), urllib3.PoolManager(retries=False, timeout=120) as http:
        http.request("POST", url + "/v1/events", body=b'{"cls_type": "sale", "version": "1.0.0"}')  # compiles it
        answers: list[tuple[str, int, Any]] = []

        def post() -> None:
            answer = http.request("POST", url + "/v1/events", body=event)
            answers.append(("event", answer.status, answer.json()))

        thread = threading.Thread(target=post)
        thread.start()
        while thread.is_alive() and len(answers) < 3:
            answers.append(("health", http.request("GET", url + "/health").status, None))
        thread.join()
        good = http.request("POST", url + "/v1/events", body=b'{"cls_type": "log", "message": "m"}')
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert [name for name, _, _ in answers] == ["health", "health", "health", "event"]
    assert {status for name, status, _ in answers if name == "health"} == {200}
    assert answers[-1][1] == 422
    assert "takes more than 1 s" in answers[-1][2]["items"][0]["problems"][0]["reason"]
    assert good.status == 202
    assert process.returncode == 0


@pytest.mark.parametrize("kind", ["pattern", "CEL matches"])
def test_sigterm_ends_a_service_in_the_middle_of_such_events(tmp_path: Path, kind: str):
    with serving(tmp_path, kind) as (process, url, event), urllib3.PoolManager(retries=False, timeout=120) as http:
        http.request("POST", url + "/v1/events", body=b'{"cls_type": "sale", "version": "1.0.0"}')
        answers: list[Any] = []
        events = b"[" + b",".join([event] * 3) + b"]"

        def post() -> None:
            try:
                answers.append(http.request("POST", url + "/v1/events", body=events).status)
            except urllib3.exceptions.HTTPError as error:
                answers.append(error)

        threads = [threading.Thread(target=post) for _ in range(4)]
        for thread in threads:
            thread.start()
        http.request("GET", url + "/health")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        for thread in threads:
            thread.join()

    assert process.returncode == 0
    assert err == ""
    assert 202 not in answers


def test_a_request_of_many_such_events_does_not_keep_a_thread_for_long(tmp_path: Path):
    with serving(tmp_path, "pattern") as (_, url, event), urllib3.PoolManager(retries=False, timeout=120) as http:
        answer = http.request("POST", url + "/v1/events", body=b"[" + b",".join([event] * 8) + b"]").json()

    assert [item["status"] for item in answer["items"]] == [422] * 3 + [503] * 5


def test_a_pattern_that_is_too_large_is_not_registered(tmp_path: Path):
    schema = {"properties": {"m": {"pattern": r"[\w\W]{1,4000}[a-z]{1,4000}z"}}}
    with serving(tmp_path, "pattern") as (_, url, _), urllib3.PoolManager(retries=False, timeout=120) as http:
        answer = http.request("POST", url + "/v1/schemas/other/1.0.0", body=json.dumps(schema).encode())

    assert answer.status == 422
    assert answer.json()["path"] == "$.properties.m.pattern"
    assert "compiles to more than 4 MiB" in answer.json()["problem"]
