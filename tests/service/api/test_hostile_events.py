"""A real service, and events whose validation would take minutes: everybody else is served, and SIGTERM ends it."""

import json
import signal
import threading
from pathlib import Path
from typing import Any

import urllib3

from balog.registry.schema import TOO_LONG
from tests.service.serving import put_schema, serving_alone

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
    "protovalidate": (PATTERN, {"m": LONG}),
    "cel": (CEL, {"m": "b?" * 120_000}),
}


def test_events_that_would_take_minutes_are_refused_and_others_are_served(tmp_path: Path):
    """Four hostile types at once. A pattern that is too large is not even registered."""
    for kind, (schema, _) in SCHEMAS.items():
        if isinstance(schema, str):
            (tmp_path / "schemas" / kind).mkdir(parents=True)
            (tmp_path / "schemas" / kind / "1.0.0.proto").write_text(schema)
        else:
            put_schema(tmp_path / "schemas", kind, "1.0.0", schema)
    alone = serving_alone(tmp_path, registry="schemas")
    with alone as (process, url), urllib3.PoolManager(retries=False, timeout=120, maxsize=16) as http:
        answers: list[tuple[str, Any]] = []

        def post(kind: str) -> None:
            event = json.dumps({"cls_type": kind, "version": "1.0.0", **SCHEMAS[kind][1]}).encode()
            body = b"[" + b",".join([event] * 4) + b"]"
            answers.append((kind, http.request("POST", url + "/v1/events", body=body).json()))

        threads = [threading.Thread(target=post, args=(kind,)) for kind in SCHEMAS for _ in range(2)]
        for thread in threads:
            thread.start()
        health = http.request("GET", url + "/health").status
        for thread in threads:
            thread.join()
        good = http.request("POST", url + "/v1/events", body=b'{"cls_type": "log", "message": "m"}')
        large = {"properties": {"m": {"pattern": r"[\w\W]{1,4000}[a-z]{1,4000}z"}}}
        refused = http.request("POST", url + "/v1/schemas/other/1.0.0", body=json.dumps(large).encode())
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)

    assert sorted(kind for kind, _ in answers) == sorted([*SCHEMAS, *SCHEMAS])
    for kind, answer in answers:
        assert [item["status"] for item in answer["items"]] == [422] * 4, kind
        assert {item["problems"][0]["reason"] for item in answer["items"]} == {TOO_LONG}, kind
    assert (health, good.status, refused.status) == (200, 202, 422)
    assert refused.json()["path"] == "$.properties.m.pattern"
    assert "compiles to more than 4 MiB" in refused.json()["problem"]
    assert (process.returncode, err) == (0, "")
