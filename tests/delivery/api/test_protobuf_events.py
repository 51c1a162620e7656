from pathlib import Path

import pytest

from balog.registry.protobuf import compile_proto
from tests.delivery.serving import serving

PROTO = b"""syntax = "proto3";
package shop;
import "buf/validate/validate.proto";
message Sale {
  string id = 1;
  int64 cents = 2 [(buf.validate.field).int64.gt = 0];
}
"""
WIRE = {"content_type": "application/x-protobuf"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("service")
    place = folder / "schemas" / "sale" / "1.0.0.proto"
    place.parent.mkdir(parents=True)
    place.write_bytes(PROTO)
    with serving(folder) as asked:
        yield asked


def encoded(cents: int) -> bytes:
    return compile_proto(PROTO).from_json(b'{"id":"a","cents":"%d"}' % cents)


def test_an_encoded_message_becomes_an_event_of_its_type(service):
    status, answer = service.post(encoded(5), "?type=sale&version=1.0.0&channel=shop.sales", **WIRE)

    assert status == 202, answer
    [event] = service.stored("sale")
    assert event.header.channel == "shop.sales"
    assert event.payload == {"cls_type": "sale", "version": "1.0.0", "id": "a", "cents": "5"}


def test_the_rules_of_a_message_hold(service):
    status, answer = service.post(encoded(-1), "?type=sale", **WIRE)

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
