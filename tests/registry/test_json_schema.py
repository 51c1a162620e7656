"""Payloads held against a JSON Schema: every fault, with its path and without a value."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.registry import InvalidSchemaError
from balog.registry.json_schema import JsonValidator
from balog.registry.reasons import json_path
from balog.registry.schema import TOO_LONG


def faults(schema: Any, payload: Any) -> list[str]:
    return [f"{path}: {reason}" for path, reason in JsonValidator(schema).check(json.dumps(payload).encode())]


def test_every_fault_is_told_with_its_path() -> None:
    line = {"type": "object", "required": ["sku"], "properties": {"n": {"type": "integer"}}}
    schema = {
        "required": ["id"],
        "properties": {"lines": {"type": "array", "items": line}, "a b": {"type": "string"}},
    }

    assert sorted(faults(schema, {"lines": [{"sku": "x"}, {"n": 1.5}], "a b": 1})) == [
        '$.lines[1].n: is not of type "integer"',
        '$.lines[1]: "sku" is a required property',
        '$: "id" is a required property',
        "$['a b']: is not of type \"string\"",
    ]


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": ["integer", "null"]}, "hunter2", 'is not of types "null", "integer"'),
        ({"const": "order"}, "hunter2", '"order" was expected'),
        ({"enum": ["EUR", "USD"]}, "hunter2", 'is not one of "EUR" or "USD"'),
        ({"pattern": "^[A-Z]+$"}, "hunter2", 'does not match "^[A-Z]+$"'),
        ({"format": "date-time"}, "hunter2", 'is not a "date-time"'),
        ({"format": "uuid"}, "hunter2", 'is not a "uuid"'),
        ({"minimum": 3}, 2, "is less than the minimum of 3"),
        ({"exclusiveMaximum": 3}, 3, "is greater than or equal to the maximum of 3"),
        ({"multipleOf": 2}, 3, "is not a multiple of 2"),
        ({"maxLength": 3}, "hunter2", "is longer than 3 characters"),
        ({"minItems": 1}, [], "has less than 1 item"),
        ({"uniqueItems": True}, [1, 1], "has non-unique elements"),
        ({"contains": {"const": 1}}, [2], "None of … are valid under the given schema"),
        ({"not": {"type": "string"}}, "hunter2", '{"type":"string"} is not allowed for …'),
        ({"additionalProperties": False}, {"a": "hunter2"}, "False schema does not allow …"),
        (
            {"properties": {}, "additionalProperties": False},
            {"a": "hunter2"},
            "Additional properties are not allowed ('a'",
        ),
        ({"unevaluatedProperties": False}, {"a": "hunter2"}, "Unevaluated properties are not allowed ('a'"),
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1, 2], "Unevaluated items are not allowed (1 item)"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, '"b" is a required property'),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "has a property whose name the schema forbids"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "hunter2", "is not valid under any of the schemas"),
        ({"oneOf": [True, {"type": "string"}]}, "hunter2", "is valid under more than one of the schemas"),
        ({"if": {"type": "string"}, "then": {"minLength": 20}}, "hunter2", "is shorter than 20 characters"),
        (False, 1, "False schema does not allow …"),
    ],
    ids=str,
)
def test_a_fault_says_the_rule_and_no_value(schema: Any, value: Any, reason: str) -> None:
    found = faults({"properties": {"at": schema}}, {"at": value})

    assert found[0].startswith(f"$.at: {reason}")
    assert "hunter2" not in " ".join(found)


def test_of_alternatives_the_nearest_one_is_explained() -> None:
    card = {"properties": {"kind": {"const": "card"}}, "required": ["kind", "number"]}
    cash = {"properties": {"kind": {"const": "cash"}}, "required": ["kind"]}

    assert faults({"properties": {"pay": {"oneOf": [card, cash]}}}, {"pay": {"kind": "card"}}) == [
        "$.pay: is not valid under any of the schemas listed in the 'oneOf' keyword",
        '$.pay: "number" is a required property',
    ]


def test_references_and_recursion_inside_the_document() -> None:
    node = {"type": "object", "required": ["v"], "properties": {"next": {"$ref": "#/$defs/node"}}}

    assert faults({"$ref": "#/$defs/node", "$defs": {"node": node}}, {"v": 1, "next": {"v": 2, "next": {}}}) == [
        '$.next.next: "v" is a required property'
    ]


@pytest.mark.parametrize("draft", ["draft-04/schema#", "draft-06/schema#", "draft-07/schema#"])
def test_older_drafts_are_read_as_they_say(draft: str) -> None:
    schema = {"$schema": f"http://json-schema.org/{draft}", "items": [{"type": "integer"}]}

    assert faults({**schema, "type": "array"}, ["x"]) == ['$[0]: is not of type "integer"']


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"{", "not JSON: input data was truncated"),
        (b"\xff", "not JSON"),
        (b"nope", "not JSON: invalid character (byte 4)"),
        (b'{"a": 1e999}', "not JSON: number out of range"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 400 + b"1" + b"}" * 400, "nested too deep"),
    ],
    ids=["half", "bytes", "word", "number", "brackets", "objects"],
)
def test_what_is_no_json_is_one_fault(payload: bytes, reason: str) -> None:
    recursive = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["b"]}
    found = JsonValidator(recursive).check(payload)

    assert len(found) == 1
    assert found[0].reason.startswith(reason)


def test_numbers_beyond_64_bits_are_numbers() -> None:
    schema = {"properties": {"n": {"type": "integer", "maximum": 5}}}

    assert faults(schema, {"n": 10**40}) == ["$.n: is greater than the maximum of 5"]
    assert faults(schema, {"n": 3.0}) == []  # an integer, as JSON Schema has it
    assert JsonValidator({"properties": {"n": {"multipleOf": 0.01}}}).check(b'{"n": 19.99}') == []


def test_at_most_a_hundred_faults_are_told() -> None:
    assert len(faults({"items": {"type": "string"}}, list(range(1000)))) == 100


STEPS = {f"s{n}": {"anyOf": [{"$ref": f"#/$defs/s{n + 1}"}, {"$ref": f"#/$defs/s{n + 1}"}]} for n in range(40)}
CHAIN = {f"s{n}": {"$ref": f"#/$defs/s{n + 1}"} for n in range(5000)}
ITSELF = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}], "required": ["a"]},
    {"not": {"oneOf": [{"$ref": "#"}, {"type": "object"}]}, "unevaluatedProperties": False},
    {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"then": {"$ref": "#/$defs/b"}, "if": {}}}},
    {"dependentSchemas": {"a": {"anyOf": [{"$ref": "#/$defs/c"}]}}, "$defs": {"c": {"else": {"$ref": "#"}}}},
]
"""Schemas that ask themselves of the same value."""


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "foo"}, "$.type: not a JSON Schema"),
        ({"properties": {"a": {"minimum": "x"}}}, '$.properties.a.minimum: not a JSON Schema: is not of type "number"'),
        ({"$ref": "https://example.com/a"}, "is not present in a registry"),
        ({"$ref": "order/1.0.0"}, "a $ref must lead into the document itself"),
        ({"$ref": "../customer/1.0.0.json"}, "is not present in a registry"),
        ({"$ref": "https://example.com/a.json"}, "is not present in a registry"),
        ({"$ref": "../../etc/passwd"}, "is not present in a registry"),
        ({"$ref": "#/$defs/a"}, "Pointer '/$defs/a' does not exist"),
        ({"$schema": "https://example.com/mine"}, "Unknown meta-schema: 'https://example.com/mine'"),
        ({"properties": {"a": {"pattern": "(?=a)b"}}}, "$.properties.a.pattern: is not a valid pattern"),
        ({"pattern": "("}, "$.pattern: is not a valid pattern"),
        ({"patternProperties": {"(?<!a)b": {}}}, "$.patternProperties['(?<!a)b']: is not a valid pattern"),
        (b"{", "not JSON: input data was truncated"),
        (b"[]", "expected an object"),
        (b"\xff\xfe", "not JSON"),
        (b'{"a":' * 5000, "nested too deep"),
        (b" " * (5 << 20), "larger than 4 MiB"),
        ({"$ref": "#/$defs/s0", "$defs": {**STEPS, "s40": {"type": "string"}}}, "unfolds to more than 100000 checks"),
        ({"$ref": "#/$defs/s0", "$defs": {**CHAIN, "s5000": {}}}, "lead through too many others"),
        *((schema, "leads back to where it is") for schema in ITSELF),
    ],
    ids=lambda given: str(given)[:60],
)
def test_a_document_that_is_no_schema_is_one_line(schema: Any, said: str) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        JsonValidator(schema, "order.json")

    assert str(caught.value).startswith("order.json: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_text_that_would_make_a_backtracking_pattern_run_for_ever_does_not() -> None:
    assert faults({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 50_000 + "!"}) == [
        '$.a: does not match "^(a+)+$"'
    ]


def test_a_schema_that_leads_to_itself_by_a_member_or_two_ways_is_none_of_those() -> None:
    both = {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"required": ["a"]}}}
    tree = {"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}, "not": {"items": {"$ref": "#"}}}

    assert faults(both, {"a": 1}) == []
    assert faults(tree, {"a": {}}) != []


BRANCH = {"type": "object", "properties": {"a": {"$ref": "#"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [BRANCH, {**BRANCH, "required": ["x"]}]},
        {"oneOf": [BRANCH, {**BRANCH, "required": ["x"]}]},
        {"allOf": [BRANCH, BRANCH]},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}},
        {"$dynamicAnchor": "n", "anyOf": [{"type": "object", "properties": {"a": {"$dynamicRef": "#n"}}}] * 2},
        {"anyOf": [BRANCH, {**BRANCH, "required": ["x"]}], "unevaluatedItems": False},
    ],
    ids=["anyOf", "oneOf", "allOf", "patternProperties", "$dynamicRef", "unevaluated"],
)
def test_what_is_wrong_deep_in_a_schema_that_branches_within_itself_is_found_in_bounded_time(schema: Any) -> None:
    """Given 2¹⁰⁰ ways to the fault, then the first one is told, and no more are looked for."""
    found = JsonValidator(schema).check(b'{"a":' * 100 + b"1" + b"}" * 100)

    assert len(found) == 1


def test_a_payload_that_could_take_minutes_is_refused_at_once() -> None:
    schema = {"properties": {"m": {"pattern": r"[\w\W]{1,1000}[a-z]{1,1000}z"}}}

    assert faults(schema, {"m": "b" * 900_000}) == [f"$: {TOO_LONG}"]
    assert faults(schema, {"m": "b" * 900}) == [r'$.m: does not match "[\w\W]{1,1000}[a-z]{1,1000}z"']


def test_a_recursive_payload_is_checked_as_deep_as_its_alternatives_allow() -> None:
    schema = {"anyOf": [BRANCH, {**BRANCH, "required": ["x"]}, {"type": "integer"}]}

    assert JsonValidator(schema).check(b'{"a":' * 10 + b"1" + b"}" * 10) == []
    assert JsonValidator(schema).check(b'{"a":' * 30 + b"1" + b"}" * 30) == [("$", TOO_LONG)]
    tree = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "type": ["object", "null"]}
    assert JsonValidator(tree).check(b'{"left":' * 99 + b"null" + b"}" * 99) == []


def test_of_a_large_payload_the_first_fault_is_told() -> None:
    """Each of a million faults would be made before the first hundred could be taken."""
    found = JsonValidator({"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}).check(
        b"[" + b"1," * 1_000_000 + b"1]"
    )

    assert found == [
        (
            "$[0]",
            "is not valid under any of the schemas listed in the 'anyOf' keyword (there may be more)",
        )
    ]


def test_a_member_that_is_called_as_a_keyword_is_a_member() -> None:
    schema = {
        "properties": {"anyOf": {"type": "integer"}, "next": {"$ref": "#"}, "kind": {"enum": [{"anyOf": 1}, 2]}},
        "anyOf": [{"required": ["anyOf"]}, {"required": ["next"]}],
    }

    assert faults(schema, {"next": {"anyOf": "x"}}) == ['$.next.anyOf: is not of type "integer"']
    assert faults(schema, {"next": {}})[0].startswith(
        "$.next: is not valid under any of the schemas listed in the 'anyOf' keyword"
    )
    assert faults(schema, {"anyOf": 1, "kind": {"anyOf": 1}}) == []


def test_a_path_is_one_printable_line() -> None:
    assert json_path(["a", 0, "b c", "it's", "\n\x1b[0m", "x" * 500]) == (
        "$.a[0]['b c']['it\\'s']['��[0m']." + "x" * 99 + "…"
    )


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
def test_any_bytes_are_a_schema_or_one_line(source: bytes) -> None:
    try:
        text = repr(JsonValidator(source, "x.json").document)
    except InvalidSchemaError as error:
        text = str(error)
    assert text.startswith(("x.json: ", "{"))
    assert "\n" not in text
