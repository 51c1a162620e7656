from pathlib import Path

import pytest

from balog.registry.protobuf import compile_proto
from balog.service.settings import RequestLimits
from tests.registry.protobuf.order_proto import encoded
from tests.service.serving import serving

PROTO = b"""syntax = "proto3";
package shop;
import "buf/validate/validate.proto";
message Sale {
  string id = 1;
  int64 cents = 2 [(buf.validate.field).int64.gt = 0];
}
"""
WIDE = b"""syntax = "proto3";
message Wide {
  repeated bool flags = 1;
  Wide inside = 2;
}
"""
DISGUISED = b"""syntax = "proto3";
message Disguised {
  string cls_type = 1 [json_name = "cls_type"];
  string version = 2;
}
"""
WIRE = {"content_type": "application/x-protobuf"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("service")
    place = folder / "schemas" / "sale" / "1.0.0.proto"
    place.parent.mkdir(parents=True)
    place.write_bytes(PROTO)
    (folder / "schemas" / "wide").mkdir()
    (folder / "schemas" / "wide" / "1.0.0.proto").write_bytes(WIDE)
    (folder / "schemas" / "disguised").mkdir()
    (folder / "schemas" / "disguised" / "1.0.0.proto").write_bytes(DISGUISED)
    with serving(folder, RequestLimits(event_bytes=5000, depth=8)) as asked:
        yield asked


def sale(cents: int) -> bytes:
    return encoded(compile_proto(PROTO), b'{"id":"a","cents":"%d"}' % cents)


def test_an_encoded_message_becomes_an_event_of_its_type(service):
    status, answer = service.post(sale(5), "?type=sale&version=1.0.0&channel=shop.sales", **WIRE)

    assert status == 202, answer
    [event] = service.stored("sale")
    assert event.header.channel == "shop.sales"
    assert event.payload == {"cls_type": "sale", "version": "1.0.0", "id": "a", "cents": "5"}


def test_the_rules_of_a_message_hold(service):
    status, answer = service.post(sale(-1), "?type=sale", **WIRE)

    assert (status, answer["items"][0]["problems"][0]["path"]) == (422, "$.cents")


def test_a_message_as_json_is_held_against_the_same_rules(service):
    good = {"cls_type": "sale", "version": "1.0.0", "id": "b", "cents": "7"}

    assert service.post(good)[0] == 202
    assert service.post({**good, "cents": "0"})[0] == 422


@pytest.mark.parametrize(
    ("body", "query", "status"),
    [
        (b"\xff\xff\xff", "?type=sale", 422),
        (b"", "?type=nope", 422),
        (b"", "?type=sale&version=3.0.0", 422),
        (b"", "?type=order", 422),
        (b"", "", 400),
    ],
)
def test_what_is_no_such_message_is_refused(service, body, query, status):
    assert service.post(body, query, **WIRE)[0] == status


def test_the_limits_hold_for_the_json_that_is_stored_too(service):
    many = b"\x0a" + bytes([0xA0, 0x1F]) + bytes(4000)  # `flags`, packed: a byte each
    deep = b""
    for _ in range(20):
        deep = b"\x12" + bytes([len(deep)]) + deep

    status, answer = service.post(many, "?type=wide", **WIRE)
    assert (status, answer["items"][0]["problems"][0]["path"]) == (413, "$")
    status, answer = service.post(deep, "?type=wide", **WIRE)
    assert (status, answer["items"][0]["problems"][0]["reason"]) == (422, "nested deeper than 8")
    assert service.post(many[:1] + b"\x64" + bytes(100), "?type=wide", **WIRE)[0] == 202


def test_a_message_is_parsed_once(service, monkeypatch):
    kind = compile_proto(PROTO)
    calls = []
    monkeypatch.setattr(type(kind), "check", lambda *given: calls.append(given))

    assert service.post(sale(9), "?type=sale", **WIRE)[0] == 202
    assert calls == []


def test_a_message_that_says_itself_of_which_type_it_is_is_held_against_that_one(service):
    order = encoded(compile_proto(DISGUISED), b'{"cls_type":"order","version":"1.0.0"}')

    status, answer = service.post(order, "?type=disguised", **WIRE)
    assert (status, answer["items"][0]["problems"][0]["reason"]) == (422, '"price" is a required property')
