"""A SCHEMA follows the rules of its stream's records."""

import pytest

from balog.broker.editor import PipeError
from tests.broker.records.editing import SHA256, build, followed, schema


def property_after(how, given):
    return followed({"mask": {"x": how}}, {"x": given})["schema"]["properties"]["x"]


@pytest.mark.parametrize(
    ("how", "given", "after"),
    [
        (SHA256, {"type": ["null", "integer"], "minimum": 1}, {"type": ["string", "null"], "maxLength": 64}),
        (
            SHA256,
            {"type": "string", "format": "email", "maxLength": 9, "pattern": "@", "default": "a@b", "examples": ["c"]},
            {"type": "string", "maxLength": 64},
        ),
        (
            SHA256,
            {"type": "string", "description": "d", "title": "t", "x-sql-datatype": "char(3)"},
            {"title": "t", "description": "d", "type": "string", "maxLength": 64},
        ),
        ("md5", {"type": "string", "enum": ["a", "b"]}, {"type": "string", "maxLength": 32}),
        (
            SHA256,
            {"type": ["array", "null"], "items": {"type": "integer"}},
            {"type": ["array", "null"], "items": {"type": "string", "maxLength": 64}},
        ),
        (SHA256, {"anyOf": [{"type": "number"}, {"type": "null"}]}, {"type": ["string", "null"], "maxLength": 64}),
        (SHA256, {}, {}),
        ("redact", {"type": "integer", "minimum": 1}, {"type": ["integer", "null"]}),
        ("redact", {"type": ["string", "number"]}, {"type": ["string", "number", "null"]}),
        ("redact", {"type": "string", "maxLength": 2}, {"type": "string"}),
        ("null", {"type": "string", "enum": ["a"]}, {"type": ["string", "null"]}),
        ("null", {"type": "object", "properties": {"a": {}}}, {"type": ["object", "null"]}),
        (
            "null",
            {"type": "array", "items": {"type": "string"}},
            {"type": ["array", "null"], "items": {"type": "string"}},
        ),
    ],
)
def test_a_masked_property_has_the_types_that_the_mask_makes(how, given, after):
    assert property_after(how, given) == after


def test_what_a_reference_says_is_followed():
    after = followed(
        {"mask": {"a.b": SHA256}},
        {"a": {"$ref": "#/definitions/A"}, "c": {"$ref": "#/definitions/A"}},
        definitions={"A": {"type": "object", "properties": {"b": {"type": "integer"}}}},
    )["schema"]["properties"]
    assert after["a"] == {"type": "object", "properties": {"b": {"type": "string", "maxLength": 64}}}
    assert after["c"] == {"$ref": "#/definitions/A"}


def test_branches_and_items_are_followed():
    people = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}
    given = {"a": {"anyOf": [{"type": "array", "items": people}, {"type": "null"}]}}
    after = followed({"drop": ["a.x"]}, given)["schema"]["properties"]["a"]
    assert after["anyOf"][0]["items"] == {"type": "object", "properties": {"y": {"type": "string"}}}


def test_branches_that_one_property_told_apart_may_all_fit_then():
    given = {"a": {"oneOf": [{"properties": {"x": {"type": kind}}} for kind in ("string", "integer")]}}
    after = followed({"mask": {"a.x": SHA256}}, given)["schema"]["properties"]["a"]
    assert after == {"anyOf": [{"properties": {"x": {"type": "string", "maxLength": 64}}}] * 2}


def test_a_property_known_by_a_pattern_gets_an_entry_of_its_own():
    after = followed({"mask": {"n1": SHA256}}, {"a": {}}, patternProperties={"^n": {"type": "integer"}})["schema"]
    assert after["properties"]["n1"] == {"type": "string", "maxLength": 64}
    assert after["patternProperties"] == {"^n": {}}


def test_a_property_known_as_any_other_gets_an_entry_of_its_own():
    after = followed({"rename": {"a": "b"}}, {}, additionalProperties={"type": "integer"})["schema"]
    assert after["properties"] == {"b": {"type": "integer"}}
    assert after["additionalProperties"] == {"type": "integer"}


def test_what_cannot_be_followed_is_taken_out_of_what_changes():
    after = followed({"drop": ["a"]}, {"a": {}, "b": {}}, minProperties=2, dependencies={"b": ["a"]}, **{"if": {}})
    assert after["schema"] == {"type": "object", "properties": {"b": {}}}


def test_drop_and_rename_are_followed_everywhere():
    after = followed(
        {"drop": ["a", "o.x"], "rename": {"b": "c", "id": "key"}},
        {"id": {"type": "integer"}, "a": {}, "b": {"type": "string"}, "o": {"properties": {"x": {}, "y": {}}}},
        ["id"],
        required=["id", "a", "b"],
        bookmarks=["a", "b"],
    )
    assert after["schema"]["properties"] == {
        "key": {"type": "integer"},
        "c": {"type": "string"},
        "o": {"properties": {"y": {}}},
    }
    assert after["schema"]["required"] == ["key", "c"]
    assert after["key_properties"] == ["key"]
    assert after["bookmark_properties"] == ["c"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("eu", {"type": "string"}),
        (1, {"type": "integer"}),
        (1.5, {"type": "number"}),
        (True, {"type": "boolean"}),
        (None, {"type": ["string", "null"]}),
        ([1], {"type": "array"}),
        ({"a": 1}, {"type": "object"}),
        ({"expr": "a > 1"}, {"type": ["boolean", "null"]}),
        ({"expr": "a + 1"}, {"type": ["number", "null"]}),
        ({"expr": "UPPER(a)"}, {"type": ["string", "null"]}),
        ({"expr": "TIMESTAMP '2026-11-20'"}, {"type": ["string", "null"], "format": "date-time"}),
        ({"expr": "a"}, {"type": ["integer", "null"], "minimum": 3}),
        ({"expr": "COALESCE(a, b)"}, {}),
    ],
)
def test_what_is_set_is_described(value, said):
    after = followed({"set": {"x": value}}, {"a": {"type": "integer", "minimum": 3}, "x": {"type": "null"}})
    assert after["schema"]["properties"]["x"] == said


# keys


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ({"drop": ["id"]}, "drop.id"),
        ({"mask": {"id": "null"}}, "mask.id"),
        ({"mask": {"id": "redact"}}, "mask.id"),
        ({"set": {"id": 1}}, "set.id"),
    ],
)
def test_a_rule_that_loses_a_key_ends_the_stream(rule, place):
    with pytest.raises(PipeError, match=rf"^\$\.records\[0\]\.{place}: id is a key property of users, and") as caught:
        followed(rule, {"id": {"type": "integer"}}, ["id", "day"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "rule", [{"mask": {"id": SHA256}}, {"mask": {"id": "md5"}}, {"set": {"id": {"expr": "LOWER(id)"}}}]
)
def test_a_key_may_be_hashed_or_set_by_an_expression(rule):
    assert followed(rule, {"id": {"type": ["integer", "string"]}}, ["id"])["key_properties"] == ["id"]


def test_two_properties_of_one_name_end_the_stream():
    with pytest.raises(PipeError, match="two properties of users would be called b; rename or drop one"):
        followed({"rename": {"a": "b"}}, {"a": {}, "b": {}})


# what stays


@pytest.mark.parametrize("rule", [{"filter": "a = 1"}])
def test_a_rule_that_only_chooses_records_leaves_the_schema_byte_for_byte(rule):
    line = schema({"a": {"oneOf": [{}]}}, ["a"])
    assert build({"stream": "users", **rule}).edit("SCHEMA", line) is None


def test_the_envelope_of_a_schema_keeps_what_it_has():
    line = b'{"type":"schema","mine":[1.10],"stream":"users","schema":{"properties":{"a":{},"b":{}}}}\n'
    ((_, after),) = build({"stream": "users", "drop": ["a"]}).edit("SCHEMA", line)
    assert after == b'{"type":"schema","mine":[1.10],"stream":"users","schema":{"properties":{"b":{}}}}\n'
