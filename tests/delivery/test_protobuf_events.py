"""Events that come to the service as protobuf: compiled, judged, and stored as JSON."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import urllib3

from balog.delivery.service import Service
from balog.delivery.settings import ServiceConfig
from balog.event import decode
from balog.registry.protobuf import compile_proto
from balog.topics import open_topics

pytest.importorskip("uvicorn")

PROTO = b"""
syntax = "proto3";
package shop;
import "buf/validate/validate.proto";
message Order {
  string order_id = 1 [(buf.validate.field).string.min_len = 1];
  uint64 total = 2;
  repeated Line lines = 3;
}
message Line { string sku = 1; int32 count = 2 [(buf.validate.field).int32.gt = 0]; }
"""
ORDER = compile_proto(PROTO)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    (home / "schemas" / "order").mkdir(parents=True)
    (home / "schemas" / "order" / "1.0.0.proto").write_bytes(PROTO)
    (home / "schemas" / "broken").mkdir()
    (home / "schemas" / "broken" / "1.0.0.proto").write_bytes(b'syntax = "proto3"; message A { int32 a = 1 }')
    config = ServiceConfig(topics=f"local:{home}/topics", registry=f"{home}/schemas", listen=":0")
    with Service(config) as service:
        yield service.url


def post(url: str, body: bytes, query: str = "?type=order&version=1.0.0", **headers: str) -> tuple[int, Any]:
    kind = {"Content-Type": "application/x-protobuf", **headers}
    with urllib3.PoolManager() as pool:
        answer = pool.request("POST", f"{url}/v1/events{query}", body=body, headers=kind, retries=False)
    return answer.status, msgspec.json.decode(answer.data)


def stored(home: Path, id: str) -> Any:
    with open_topics(f"local:{home}/topics") as topics:
        events = [decode(received.body) for received in topics.topic("order").peek(1000)]
    return next(event.payload for event in events if event.header.id == id)


def test_a_message_is_stored_as_json_with_its_type(url: str, home: Path) -> None:
    status, said = post(url, ORDER.from_json(b'{"orderId": "17", "lines": [{"sku": "A", "count": 2}]}'))
    assert status == 202
    assert stored(home, said["items"][0]["id"]) == {
        "cls_type": "order",
        "version": "1.0.0",
        "orderId": "17",
        "total": "0",
        "lines": [{"sku": "A", "count": 2}],
    }


def test_without_a_version_it_is_of_the_latest(url: str, home: Path) -> None:
    status, said = post(url, ORDER.from_json(b'{"orderId": "18"}'), "?type=order")
    assert status == 202
    assert stored(home, said["items"][0]["id"])["version"] == "1.0.0"


def test_a_packed_message_is_taken(url: str) -> None:
    wire = gzip.compress(ORDER.from_json(b'{"orderId": "19"}'))
    assert post(url, wire, **{"Content-Encoding": "gzip"})[0] == 202


def test_a_broken_rule_is_told_with_its_place(url: str) -> None:
    status, said = post(url, ORDER.from_json(b'{"orderId": "20", "lines": [{"count": 1}, {"count": 0}]}'))
    assert status == 422
    assert said["items"][0]["problems"] == [{"path": "$.lines[1].count", "reason": "must be greater than 0"}]


@pytest.mark.parametrize("wire", [b"\x0a\x05ab", b"\xff" * 50, b"{}", b"\x98\x06\x01"])
def test_bytes_of_something_else_are_refused(url: str, wire: bytes) -> None:
    status, said = post(url, wire)
    assert status == 422
    assert said["items"][0]["problems"][0]["path"] == "$"


def test_the_same_type_is_taken_as_json(url: str) -> None:
    payload = {"cls_type": "order", "version": "1.0.0", "orderId": "21", "total": 5}
    kind = {"Content-Type": "application/json"}
    assert post(url, msgspec.json.encode(payload), "", **kind)[0] == 202
    status, said = post(url, msgspec.json.encode({**payload, "order_id": "21"}), "", **kind)
    assert status == 422
    assert said["items"][0]["problems"][0]["path"] == "$.order_id"


def test_a_type_that_does_not_compile_is_no_answer_now(url: str) -> None:
    status, said = post(url, b"", "?type=broken&version=1.0.0")
    assert status == 503
    assert "broken/1.0.0: 1:44: " in said["items"][0]["problems"][0]["reason"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("?type=nobody&version=1.0.0", 422),
        ("?type=order&version=9.9.9", 422),
        ("?type=log&version=1.0.0", 422),
    ],
)
def test_what_a_body_is_must_be_known(url: str, query: str, status: int) -> None:
    assert post(url, ORDER.from_json(b'{"orderId": "22"}'), query)[0] == status
