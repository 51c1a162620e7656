"""Payloads of a type in protobuf: each fault with its place, and what lies on the wire."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from order_proto import ORDER, encoded

from balog.common.errors import EventError
from balog.registry.protobuf import compile_proto
from balog.registry.protobuf.message import CompiledMessage
from balog.registry.schema import InvalidSchemaError


@pytest.fixture(scope="module")
def order() -> CompiledMessage:
    return compile_proto(ORDER)


@pytest.mark.parametrize(
    ("payload", "path", "reason"),
    [
        ({"order_id": "a"}, "$", "Additional properties are not allowed ('order_id' was unexpected)"),
        ({"nope": 1}, "$", "Additional properties are not allowed ('nope' was unexpected)"),
        ({"orderId": 1}, "$.orderId", 'is not of types "null", "string"'),
        ({"count": "1"}, "$.count", 'is not of types "null", "integer"'),
        ({"count": 1 << 31}, "$.count", "is greater than the maximum of 2147483647"),
        ({"count": True}, "$.count", 'is not of types "null", "integer"'),
        ({"count": 1.5}, "$.count", 'is not of types "null", "integer"'),
        ({"total": "-1"}, "$.total", "has a value that its type does not have"),
        ({"total": "01"}, "$.total", 'does not match "^(0|-?[1-9][0-9]{0,19})$"'),
        ({"weight": 1e39}, "$.weight", "is greater than the maximum of 3.4028235e+38"),
        ({"price": "inf"}, "$.price", r'does not match "^(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity)$"'),
        ({"price": True}, "$.price", "is not valid under any of the schemas listed in the 'anyOf' keyword"),
        ({"paid": 1}, "$.paid", 'is not of types "null", "boolean"'),
        ({"blob": "é"}, "$.blob", 'does not match "^[A-Za-z0-9+/_-]*={0,2}$"'),
        ({"blob": "a"}, "$.blob", "has a value that its type does not have"),
        ({"color": "PINK"}, "$.color", 'is not one of "NONE", "RED" or null'),
        ({"color": 1}, "$.color", 'is not of types "null", "string"'),
        ({"lines": {}}, "$.lines", 'is not of types "null", "array"'),
        ({"lines": [None]}, "$.lines[0]", 'is not of type "object"'),
        ({"lines": [{}, {"sizes": [1, "x"]}]}, "$.lines[1].sizes[1]", 'is not of type "integer"'),
        ({"byName": []}, "$.byName", 'is not of types "null", "object"'),
        ({"byName": {"a b": {"sku": 1}}}, "$.byName['a b'].sku", 'is not of types "null", "string"'),
        ({"byNumber": {"x": "y"}}, "$.byNumber", "has a property whose name the schema forbids"),
        ({"byTruth": {"yes": 1}}, "$.byTruth", "has a property whose name the schema forbids"),
        ({"card": "a", "cash": 1}, "$", "only one field of pay may be given"),
        ({"at": "yesterday"}, "$.at", 'is not a "date-time"'),
        ({"at": "2026-13-01T00:00:00Z"}, "$.at", 'is not a "date-time"'),
        ({"took": "1 s"}, "$.took", r'does not match "^-?[0-9]{1,12}(\.[0-9]{1,9})?s$"'),
        ({"wrapped": "x"}, "$.wrapped", 'does not match "^(0|-?[1-9][0-9]{0,19})$"'),
        ({"free": []}, "$.free", 'is not of types "null", "object"'),
    ],
)
def test_a_fault_has_its_place_and_no_value(order: CompiledMessage, payload: object, path: str, reason: str) -> None:
    assert order.check(json.dumps(payload).encode()) == [(path, reason)]


def test_the_first_fault_of_the_form_is_told(order: CompiledMessage) -> None:
    assert len(order.check(b'{"count": "a", "lines": [{"sku": 1}, {"nope": 2}], "paid": 0}')) == 1
    assert len(order.check(json.dumps({"lines": [1] * 5000}).encode())) == 1


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"1", b"null", b'"\\ud800"', b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_one_fault(order: CompiledMessage, payload: bytes) -> None:
    assert [fault.path for fault in order.check(payload)] == ["$"]


def test_type_and_version_lie_beside_the_fields(order: CompiledMessage) -> None:
    assert order.check(b'{"cls_type": "order", "version": "1.0.0", "count": 1}') == []
    assert order.read(encoded(order, b'{"cls_type": "order", "version": "1.0.0"}'))[0].count(b"version") == 0


def test_a_message_may_have_them_as_fields_of_its_own() -> None:
    own = compile_proto(b'syntax = "proto3"; message A { string version = 1; int32 a = 2; }')
    assert own.read(b"\x0a\x051.0.0")[0] == b'{"version":"1.0.0","a":0}'
    assert own.read(b"")[0] == b'{"a":0}'


def test_a_version_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidSchemaError, match=r"A\.version is not a string"):
        compile_proto(b'syntax = "proto3"; message A { int32 version = 1; }')


def test_null_is_no_value(order: CompiledMessage) -> None:
    assert order.check(b'{"count": null, "lines": null, "card": null, "cash": 1, "at": null}') == []


def test_fields_without_presence_are_stored_with_their_defaults(order: CompiledMessage) -> None:
    stored = json.loads(order.read(b"")[0])
    assert stored["count"] == 0
    assert stored["total"] == "0"
    assert stored["color"] == "NONE"
    assert stored["lines"] == []
    assert "maybe" not in stored
    assert "at" not in stored
    assert "card" not in stored


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (b"\x4a\x03\xa0\x06\x01", "$.lines[0]: field number 100 is not in shop.Line"),
        (b"\x12\x01a", "$: count is encoded as another type"),
        (b"\x40\x09", '$.color: is not of types "null", "string"'),
        (b"\x82\x01\x0c\x08" + b"\xff" * 8 + b"\x7f\x10\x00", "$.at: has a value that its type does not have"),
    ],
    ids=["unknown field", "another wire type", "enum value without a name", "time beyond the calendar"],
)
def test_what_cannot_be_stored_is_refused_with_its_place(order: CompiledMessage, wire: bytes, said: str) -> None:
    with pytest.raises(EventError) as caught:
        order.read(wire)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "wire",
    [
        b"\x0a\x05ab",
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x10" + b"\xff" * 20,
        b"\x00\x01",
        b"\x0b",
        b"\x0a\x01\xff",
        b"{not protobuf}",
        b"\xb2\x01\x80\x80\x80\x80\x08",
    ],
    ids=["cut-off", "length", "varint", "number-0", "open-group", "not-utf8", "json", "huge-length"],
)
def test_broken_bytes_are_refused(order: CompiledMessage, wire: bytes) -> None:
    with pytest.raises(EventError, match=r"is no encoded shop\.Order"):
        order.read(wire)[0]


def nested(depth: int) -> bytes:
    wire = b""
    for _ in range(depth - 1):
        size, length = len(wire), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        wire = b"\xb2\x01" + length + bytes([size]) + wire
    return wire


@pytest.mark.parametrize(("depth", "taken"), [(101, True), (102, False), (5000, False)])
def test_depth_is_bounded_on_the_wire_and_in_json(order: CompiledMessage, depth: int, taken: bool) -> None:
    text = b'{"inner":' * (depth - 1) + b"{}" + b"}" * (depth - 1)
    assert (order.check(text) == []) is taken
    if taken:
        assert encoded(order, text) == nested(depth)
        order.read(nested(depth))[0]
    else:
        with pytest.raises(EventError, match="nested"):
            order.read(nested(depth))[0]


def test_what_proto2_requires_is_a_fault_when_it_is_missing() -> None:
    type_ = compile_proto(
        b'syntax = "proto2"; message A { required int32 my_id = 1; repeated B bs = 2; }'
        b"message B { required string s = 1; }"
    )
    assert type_.check(b'{"bs": [{}]}') == [("$.bs[0]", '"s" is a required property')]
    with pytest.raises(EventError, match=r"^\$\.myId: is required$"):
        type_.read(b"")[0]


def test_a_closed_enums_unknown_value_is_refused() -> None:
    closed = compile_proto(b'syntax = "proto2"; message A { optional E e = 1; enum E { X = 1; } }')
    with pytest.raises(EventError, match=r"^\$: e has a value that A\.E has not$"):
        closed.read(b"\x08\x05")[0]


def test_a_few_bytes_do_not_become_a_giant() -> None:
    fields = " ".join(f"int64 field_{number} = {number};" for number in range(1, 500))
    wide = compile_proto(f'syntax = "proto3"; message A {{ repeated B b = 1; }} message B {{ {fields} }}'.encode())
    assert len(wide.read(b"\x0a\x00" * 100)[0]) > 100 * 499 * 10
    with pytest.raises(EventError, match="more than 1,000,000 fields"):
        wide.read(b"\x0a\x00" * 2100)[0]
    assert len(wide.read(b"\x0a\x03\x08\x80\x01")[0]) > 499 * 10


def test_one_type_serves_many_threads(order: CompiledMessage) -> None:
    def work(number: int) -> bool:
        payload = json.dumps({"count": number, "lines": [{"sku": str(number)}]}).encode()
        good = order.check(payload) == [] and len(order.check(b'{"count": "x"}')) == 1
        return good and json.loads(order.read(encoded(order, payload))[0])["count"] == number

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))
