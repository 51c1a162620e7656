"""protovalidate's annotations: which payloads break them, and how they read as lines."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from balog.registry.protobuf import compile_proto
from balog.registry.protobuf.message import CompiledMessage
from balog.registry.protobuf.rules import annotated_rules, rule_lines
from balog.registry.schema import TOO_LONG, InvalidSchemaError

HEAD = 'syntax = "proto3"; package p; import "buf/validate/validate.proto"; import "google/protobuf/timestamp.proto"; '


def compiled(source: str, message: str = "") -> CompiledMessage:
    return compile_proto((HEAD + source).encode(), message)


def rule(type_: str, rules: str) -> CompiledMessage:
    return compiled(
        f"message A {{ {type_} a = 1 [{', '.join(f'(buf.validate.field).{one}' for one in rules.split('; '))}]; }}"
    )


@pytest.mark.parametrize(
    ("type_", "rules", "good", "bad", "reason"),
    [
        ("int32", "int32.gt = 0", 1, 0, "must be greater than 0"),
        ("int64", "int64 = {gte: 1, lt: 5}", "4", "5", "must be greater than or equal to 1 and less than 5"),
        ("double", "double.finite = true", 1.5, "NaN", "must be finite"),
        ("string", "string.min_len = 2", "ab", "é", "must be at least 2 characters"),
        ("string", "string.email = true", "a@example.com", "nobody", "must be a valid email address"),
        ("string", 'string.pattern = "^[a-z]+$"', "ab", "AB", "does not match regex pattern `^[a-z]+$`"),
        ("string", 'string = {in: ["x", "y"]}', "x", "z", "must be in list [x, y]"),
        ("bytes", "bytes.max_len = 1", "YQ==", "YWI=", "must be at most 1 bytes"),
        ("repeated int32", "repeated.max_items = 1", [1], [1, 2], "must contain no more than 1 item(s)"),
        ("map<string, int32>", "map.min_pairs = 1", {"a": 1}, {}, "map must be at least 1 entries"),
        ("optional int32", "required = true", 0, None, "value is required"),
        ("string", "string.min_len = 3; ignore = IGNORE_IF_ZERO_VALUE", "", "a", "must be at least 3 characters"),
    ],
)
def test_a_broken_rule_is_a_fault(type_: str, rules: str, good: Any, bad: Any, reason: str) -> None:
    type_of = rule(type_, rules)
    assert type_of.check(json.dumps({"a": good}).encode()) == []
    (fault,) = type_of.check(json.dumps({"a": bad}).encode())
    assert fault.path == "$.a"
    assert fault.reason == reason


def test_places_go_through_lists_and_maps() -> None:
    type_ = compiled(
        "message A { repeated B my_bs = 1; map<int32, B> by_key = 2; map<string, int32> m = 3"
        " [(buf.validate.field).map.keys.string.max_len = 1, (buf.validate.field).map.values.int32.gt = 0]; }"
        "message B { repeated int32 xs = 1 [(buf.validate.field).repeated.items.int32.lt = 5]; }"
    )
    found = type_.check(b'{"myBs": [{}, {"xs": [1, 5]}], "byKey": {"7": {"xs": [9]}}, "m": {"ab": 1, "c": -1}}')
    assert sorted(fault.path for fault in found) == ["$.byKey['7'].xs[0]", "$.m.ab", "$.m.c", "$.myBs[1].xs[1]"]
    assert next(fault.reason for fault in found if fault.path == "$.m.ab").startswith("key must be at most")


ONEOF = "message A { oneof pay { option (buf.validate.oneof).required = true; int32 a = 1; int32 b = 2; } }"
CEL = (
    'message A { option (buf.validate.message).cel = {id: "order" message: "low after high"'
    ' expression: "this.low <= this.high"};'
    " int32 low = 1; int32 high = 2; string s = 3 [(buf.validate.field).cel_expression = \"this != 'no'\"]; }"
)
COMPUTED = """message A { string s = 1 [(buf.validate.field).cel =
    {id: "s.short" expression: "this.size() < 9 ? '' : this + ' is long'"}]; }"""
TWO = "message A { int32 a = 1 [(buf.validate.field).int32.gt = 0]; int32 b = 2 [(buf.validate.field).int32.gt = 0]; }"
DIVIDES = 'message A { int32 a = 1 [(buf.validate.field).cel = {id: "x" message: "m" expression: "10 / this > 2"}]; }'
NAMED = (
    'message A { option (buf.validate.message).cel = {id: "x" message: "m" expression: "this.m[\'k\'] > 1"};'
    " map<string, int32> m = 1; }"
)
POSITIVE = "must be greater than 0"


@pytest.mark.parametrize(
    ("source", "payload", "faults"),
    [
        (ONEOF, b"{}", [("$", "pay: exactly one field is required in oneof")]),
        (CEL, b'{"low": 1, "high": 2}', []),
        (CEL, b'{"low": 3, "high": 2}', [("$", "low after high")]),
        (CEL, b'{"s": "no"}', [("$.s", "breaks the rule this != 'no'")]),
        (COMPUTED, b'{"s": "hunter2hunter2"}', [("$.s", "breaks the rule s.short")]),  # the text has the value
        (TWO, b'{"a": -1, "b": -1}', [("$.a", POSITIVE), ("$.b", POSITIVE)]),
        (TWO, b'{"a": "x", "b": -1}', [("$.a", 'is not of types "null", "integer"')]),
        (DIVIDES, b'{"a": 1}', []),
        (DIVIDES, b'{"a": 0}', [("$", "a rule of it cannot be evaluated for these values")]),
        (NAMED, b'{"m": {"k": 3}}', []),
    ],
)
def test_each_broken_rule_is_told_without_a_value(source: str, payload: bytes, faults: list[Any]) -> None:
    assert compiled(source).check(payload) == faults


NO_FIELD = "no_such_field : nope"
TOO_SLOW = "a rule may take too long"


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("this +", "failed to compile"),
        ("nope(this)", "failed to compile"),
        ("this.nope > 1", NO_FIELD),
        ("this.one.nope > 1", NO_FIELD),
        ("this.many.all(m, m.nope > 1)", NO_FIELD),
        ("this.named.all(n, this.named[n].nope > 1)", NO_FIELD),
        ("[this]" + ".map(x, x + x + x + x + x)" * 3 + "[0].size() > 0", TOO_SLOW),
        ("[1].all(a, [1].all(b, [1].all(c, [1].all(d, true))))", TOO_SLOW),
    ],
)
def test_a_rule_that_cannot_be_is_refused_at_once(expression: str, said: str) -> None:
    cel = f'{{id: "x" message: "m" expression: "{expression}"}}'
    with pytest.raises(InvalidSchemaError, match=said) as caught:
        compiled(
            f"message R {{ A a = 1; }} message A {{ option (buf.validate.message).cel = {cel}; B one = 1;"
            " repeated B many = 2; map<int32, B> named = 3; } message B { int32 n = 1; }"
        )
    assert "\n" not in str(caught.value)


def test_a_rule_that_walks_lists_within_lists_ends() -> None:
    cel = '{id: "x" message: "m" expression: "this.all(i, this.all(j, i + j > 0))"}'
    type_ = compiled(f"message A {{ repeated int32 a = 1 [(buf.validate.field).cel = {cel}]; }}")
    assert type_.check(b'{"a": [' + b",".join([b"1"] * 5000) + b"]}") == [
        ("$", "a rule of it cannot be evaluated for these values")
    ]


def test_a_pattern_from_the_value_itself_is_matched_on_short_values_only() -> None:
    type_ = rule("string", 'cel = {id: "m", message: "m", expression: "!this.matches(this)"}')
    assert type_.check(b'{"a": "b?b?"}') == [("$.a", "m")]
    assert type_.check(b'{"a": "%s"}' % (b"b?" * 120_000)) == [("$", TOO_LONG)]


def test_a_rule_for_another_type_is_refused_at_once() -> None:
    with pytest.raises(InvalidSchemaError):
        rule("int32", "string.min_len = 1")


def test_one_types_rules_serve_many_threads() -> None:
    type_ = rule("int32", "int32.gt = 100")

    def work(number: int) -> bool:
        return (type_.check(b'{"a": %d}' % number) == []) == (number > 100)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))


def test_the_wire_is_held_to_the_rules_too() -> None:
    type_ = rule("int32", "int32.gt = 5")
    assert type_.read(b"\x08\x06") == (b'{"a":6}', [])
    assert type_.read(b"\x08\x05") == (b'{"a":5}', [("$.a", "must be greater than 5")])


@pytest.mark.parametrize(
    ("type_", "rules", "lines"),
    [
        ("int32", "int32 = {gt: 9, lt: 1}", ["int32.lt: 1", "int32.gt: 9"]),
        ("string", 'string = {in: ["a", "b"]}', ["string.in: ['a', 'b']"]),
        ("int32", "int32.gt = 5; ignore = IGNORE_IF_ZERO_VALUE", ["int32.gt: 5 unless zero"]),
        ("int32", "int32.gt = 5; ignore = IGNORE_ALWAYS", []),
        ("repeated int32", "repeated.items.int32.gt = 5", ["repeated.items.int32.gt: 5"]),
        ("int32", 'cel = {id: "x" expression: "this > 1"}', ['cel: id: "x" expression: "this > 1"']),
    ],
)
def test_each_rule_is_a_line(type_: str, rules: str, lines: list[str]) -> None:
    type_of = rule(type_, rules)
    [(name, annotation)] = annotated_rules(type_of.descriptor, type_of.pool)
    assert (name, list(rule_lines(annotation))) == ("a", lines)
