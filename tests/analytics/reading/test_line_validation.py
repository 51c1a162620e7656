import json
import re
from datetime import datetime, timezone
from typing import Any

import pytest

from balog.analytics.reading.blocks import Block
from balog.analytics.reading.validation import count_events, normalize, normalize_line
from balog.common.errors import EventError
from balog.event import event as events


def block(*lines: Any) -> memoryview:
    parts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return memoryview(b"".join(part + b"\n" for part in parts))


def test_a_block_of_good_events_is_vouched_for(make: Any) -> None:
    assert count_events(block(*(make() for _ in range(7)))) == 7
    assert count_events(block()) == 0
    assert count_events(block(*(make(schema="0.0.1", level=..., context=...) for _ in range(3)))) == 3


def test_what_balog_writes_is_vouched_for() -> None:
    lines = [events.encode(events.Event.new("a.b", {"cls_type": "log", "message": "é\n"})) for _ in range(3)]
    assert count_events(block(*lines)) == 3


BAD: dict[str, tuple[Any, str]] = {
    "not JSON": (b'{"schema"', "$: not JSON"),
    "two commas": (lambda e: json.dumps(e)[:-1].encode() + b",,}", "$: not JSON"),
    "a text without an end": (lambda e: json.dumps(e)[:-1].encode() + b', "a": NaN, "b\\', "$: not JSON"),
    "an array": (b"[]", "$: expected `object`"),
    "not UTF-8": (lambda e: json.dumps(e).encode().replace(b"done", b"d\xffne"), "$: not UTF-8"),
    "two documents": (lambda e: json.dumps(e).encode() * 2, "$: not JSON: trailing characters"),
    "two documents before CRLF": (lambda e: json.dumps(e).encode() * 2 + b"\r", "$: not JSON: trailing characters"),
    "bare carriage returns": (
        lambda e: b"\r".join([json.dumps(e).encode()] * 20) + b"\r",
        r"$: not JSON: several lines that end in a bare carriage return (\r); end each line with \n or \r\n",
    ),
    "a later major version": (lambda e: e | {"schema": "2.0.0"}, "$.schema: facility version 2.0.0"),
    "no version": (lambda e: e | {"schema": "new"}, "$.schema: not a version"),
    "an odd id": (lambda e: e | {"header": e["header"] | {"id": "LG 1"}}, "$.header.id: expected 1 to 128"),
    "a number for a channel": (
        lambda e: e | {"header": e["header"] | {"channel": 5}},
        "$.header.channel: expected `str`",
    ),
    "an empty channel": (lambda e: e | {"header": e["header"] | {"channel": ""}}, "$.header.channel: "),
    "an unknown level": (lambda e: e | {"header": e["header"] | {"level": "LOUD"}}, "$.header.level: invalid enum"),
    "no level": (
        lambda e: e | {"header": {n: v for n, v in e["header"].items() if n != "level"}},
        "$.header.level: missing",
    ),
    "no time zone": (
        lambda e: e | {"header": e["header"] | {"timestamp": "2026-01-01T00:00:00"}},
        "$.header.timestamp",
    ),
    "no such day": (
        lambda e: e | {"header": e["header"] | {"timestamp": "2026-02-30T00:00:00Z"}},
        "$.header.timestamp",
    ),
    "a list for a context": (
        lambda e: e | {"header": e["header"] | {"context": []}},
        "$.header.context: expected `object`",
    ),
    "a text for a payload": (lambda e: e | {"payload": "x"}, "$.payload: expected an object"),
    "a payload nested too deeply": (
        lambda e: (
            json.dumps(e | {"payload": {"x": 0}}).replace('"x": 0', '"x": ' + "[" * 100_000 + "]" * 100_000).encode()
        ),
        "$: not JSON that can be read",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_not_vouched_for_and_says_what_is_wrong(make: Any, name: str) -> None:
    line, reason = BAD[name]
    line = line(make()) if callable(line) else line
    data = block(make(), line, make())
    count = count_events(data)
    if "two documents" not in name and name != "bare carriage returns":  # left to the parser, which refuses them
        assert count is None
    normalized = normalize(Block(100, data))
    assert len(normalized.events) == 2
    (bad,) = normalized.bad
    assert bad.reason.startswith(reason)
    assert bad.offset == 100 + bytes(data).index(b"\n") + 1
    assert normalized.offsets == [100, 100 + bytes(data)[:-1].rindex(b"\n") + 1]


def test_the_reason_of_one_fault_is_the_same_wherever_in_the_line_it_is() -> None:
    reasons = {bad.reason for bad in normalize(Block(0, block(b"{x", b'{"a": x', b'{"a": 1, "b": x'))).bad}
    assert len(reasons) <= 2
    assert not any("byte" in reason for reason in reasons)


def test_unknown_keys_are_ignored_in_every_version(make: Any) -> None:
    for schema in ("0.1.0", "0.7.0", "1.0.0"):
        document = make(schema=schema, sender="x") | {"trailer": {}}
        (normalized,) = normalize(Block(0, block(document))).events
        assert set(json.loads(normalized)) == {"schema", "header", "payload"}
        assert "sender" not in json.loads(normalized)["header"]


def test_a_normalized_event_is_one_that_the_strict_decoder_takes_and_normalizing_again_changes_nothing(
    make: Any,
) -> None:
    document = make({"value": 1.10}, timestamp="2026-11-20t09:46:12.1234567+02:00", extra=1)
    normalized = normalize_line(json.dumps(document).encode())
    event = events.decode(normalized)
    assert event.header.timestamp == datetime(2026, 11, 20, 7, 46, 12, 123457, timezone.utc)
    assert normalize_line(normalized) == normalized
    assert count_events(memoryview(normalized + b"\n")) == 1


@pytest.mark.parametrize(
    ("once", "twice", "where"),
    [
        ('"level": "INFO"', '"level": "INFO", "level": "ERROR"', "$.header.level"),
        ('"payload": {', '"payload": {"cls_type": "log", "cls_type": "sale", ', "$.payload.cls_type"),
        ('"payload": {', '"payload": {"cls_type": "log", "cls\\u005ftype": "sale", ', "$.payload.cls_type"),
        ('"payload": {', '"payload": {"price": 1, "pr\\u0069ce": 2, ', "$.payload.price"),
        ('"payload": {', '"payload": {"price": 1, "price": 2, ', "$.payload.price"),
        ('"payload": {', '"payload": {"price": 1e999, "price": 2, ', "$.payload.price"),
        ('"payload": {', '"payload": {"a:b": [{"x": 1, "x" : 2}], ', "$.payload.a:b[0].x"),
    ],
)
def test_a_line_with_a_key_twice_is_a_bad_line_whatever_reads_it(make: Any, once: str, twice: str, where: str) -> None:
    line = json.dumps(make({"value": 0})).replace(once, twice).encode()
    with pytest.raises(EventError, match=re.escape(where)):
        normalize_line(line)
    if "level" not in where:  # of the header the parser itself refuses it
        assert count_events(block(make(), line)) is None


def test_events_inside_of_events_are_vouched_for(make: Any) -> None:
    nested = make({"cls_type": "list", "events": [{"cls_type": "log", "text": "caf\u00e9 \u0041"}]})
    assert count_events(block(nested, make())) == 2


@pytest.mark.parametrize("written", ["NaN", "-Infinity", "inf", "[1, nan]", '{"a": [1,]}', '{"a": 1, }'])
def test_what_only_looks_like_json_is_a_bad_line_as_a_whole_block_and_alone(make: Any, written: str) -> None:
    line = json.dumps(make({"value": 0})).replace('{"value": 0}', f'{{"value": {written}}}').encode()
    assert count_events(block(make(), line)) is None
    with pytest.raises(EventError, match="not JSON"):
        normalize_line(line)


def test_blank_lines_are_no_lines(make: Any) -> None:
    normalized = normalize(Block(0, block(b"", make(), b" \t\r", make(), b"")))
    assert (len(normalized.events), normalized.bad) == (2, [])


def test_the_reader_agrees_with_the_strict_decoder_but_for_unknown_keys(make: Any) -> None:
    for line, _ in BAD.values():
        line = line(make()) if callable(line) else line
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        with pytest.raises(EventError):
            normalize_line(data)
        with pytest.raises(EventError):
            events.decode(data)
