"""Schemas enriched by hand, and from records that show new fields."""

import json

import pytest

from balog.broker.records.enrichment import merge_patch
from tests.broker.records.editing import build, record, schema

WATCHING = {"stream": "users", "from_records": True}


def kinds(edited):
    return [kind for kind, _ in edited or ()]


def properties(edited):
    return json.loads(edited[0][1])["schema"]["properties"]


@pytest.fixture
def watching():
    editor = build(schemas=[WATCHING])
    editor.edit("SCHEMA", schema({}))
    return editor


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # the cases of RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_is_that_of_the_rfc(target, patch, result):
    assert merge_patch(target, patch) == result


def test_a_schema_is_enriched_by_hand_after_its_rules():
    editor = build(
        {"stream": "users", "rename": {"a": "b"}},
        schemas=[
            {"stream": "u*", "set": {"properties": {"b": {"maxLength": 9}, "c": {"type": "string"}}, "title": None}}
        ],
    )
    edited = editor.edit("SCHEMA", schema({"a": {"type": "string"}}, title="x"))
    assert json.loads(edited[0][1])["schema"] == {
        "type": "object",
        "properties": {"b": {"type": "string", "maxLength": 9}, "c": {"type": "string"}},
    }


def test_a_record_that_shows_a_new_field_sends_a_schema_ahead():
    editor = build(schemas=[WATCHING])
    assert editor.edit("SCHEMA", schema({"id": {"type": "integer"}}, ["id"], mine=1)) is None
    assert editor.edit("RECORD", record({"id": 1})) is None
    line = record({"id": 2, "new": "x"})
    edited = editor.edit("RECORD", line)
    assert kinds(edited) == ["SCHEMA", "RECORD"]
    assert edited[1][1] == line
    assert json.loads(edited[0][1]) == {
        "type": "SCHEMA",
        "stream": "users",
        "schema": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "new": {"type": ["string", "null"]}},
            "mine": 1,
        },
        "key_properties": ["id"],
    }
    assert editor.edit("RECORD", line) is None


@pytest.mark.parametrize(
    ("values", "types"),
    [
        (["1", "2"], ["integer"]),
        (["1", "-2.5"], ["number"]),
        (["1e3", "7"], ["number"]),
        (["NaN"], ["number"]),
        (["true", '"x"'], ["boolean", "string"]),
        (["1", '"x"', "2.5"], ["string", "number"]),
        (["null", "[1]", '{"a":1}', "null"], ["array", "object"]),
    ],
)
def test_types_widen_as_values_of_other_types_come(watching, values, types):
    last = None
    for value in values:
        edited = watching.edit("RECORD", record(f'{{"x":{value}}}'))
        last = edited if edited else last
    assert properties(last) == {"x": {"type": [*types, "null"]}}


def test_only_null_shows_nothing(watching):
    assert watching.edit("RECORD", record({"x": None})) is None


def test_a_field_that_a_pattern_describes_is_made_explicit():
    editor = build(schemas=[WATCHING])
    editor.edit("SCHEMA", schema({}, patternProperties={"^n_": {"type": "string", "maxLength": 3}}))
    assert properties(editor.edit("RECORD", record({"n_1": "x"}))) == {"n_1": {"type": "string", "maxLength": 3}}


def test_a_stream_without_a_schema_gets_one():
    edited = build(schemas=[WATCHING]).edit("RECORD", record({"id": 1}).rstrip())
    assert kinds(edited) == ["SCHEMA", "RECORD"]
    assert all(line.endswith(b"}\n") for _, line in edited)
    assert json.loads(edited[0][1]) == {
        "type": "SCHEMA",
        "stream": "users",
        "schema": {"properties": {"id": {"type": ["integer", "null"]}}},
        "key_properties": [],
    }


def test_what_records_showed_stays_when_the_schema_comes_again(watching):
    watching.edit("RECORD", record({"a": 1, "b": 1}))
    edited = watching.edit("SCHEMA", schema({"b": {"type": "number"}}))
    assert properties(edited) == {"b": {"type": "number"}, "a": {"type": ["integer", "null"]}}
    assert watching.edit("RECORD", record({"a": 1, "b": "x"})) is None


def test_fields_are_those_of_the_record_that_goes_on():
    editor = build({"stream": "users", "drop": ["secret"], "rename": {"a": "b"}}, schemas=[WATCHING])
    editor.edit("SCHEMA", schema({"a": {"type": "string"}}))
    edited = editor.edit("RECORD", record({"a": "x", "secret": 1}))
    assert kinds(edited) == ["RECORD"]


def test_records_add_only_so_many_fields():
    said = []
    editor = build(schemas=[WATCHING], said=said)
    editor.edit("SCHEMA", schema({}))
    edited = editor.edit("RECORD", record({f"f{number}": 1 for number in range(110)}))
    assert len(properties(edited)) == 100
    for number in range(110, 120):
        assert editor.edit("RECORD", record({f"f{number}": 1})) is None
    assert said == ["users: records show more than 100 new properties; the schema takes no more"]
