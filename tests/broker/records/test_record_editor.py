"""The editor: which messages it changes, and that nothing which it can't read passes unmasked."""

import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker.editor import PipeError
from balog.broker.records.compiled_rule import refused_parts
from balog.broker.records.config import RecordRule
from balog.common.errors import ConfigError
from tests.broker.records.editing import build, record, schema

MASKED = {"stream": "users", "mask": {"email": "redact"}}


def reasons(path):
    return [json.loads(line)["reason"] for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize(("rules", "streams"), [(["users", "orders"], {"users", "orders"}), (["users", "o*"], None)])
def test_it_says_what_it_must_see(rules, streams):
    editor = build(*[{"stream": name, "drop": ["a"]} for name in rules])
    assert editor.types == {"RECORD", "SCHEMA"}
    assert editor.streams == streams


def test_the_envelope_keeps_what_it_has():
    line = record({"email": "a"}, version=3, time_extracted="2026-11-20T00:00:00Z", mine={"x": [1]})
    ((_, after),) = build(MASKED).edit("RECORD", line)
    expected = json.loads(line)
    expected["record"]["email"] = "[redacted]"
    assert json.loads(after) == expected


@given(data=st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False) | st.text() | st.none(), max_size=5))
def test_a_stream_without_rules_passes_byte_for_byte(data):
    editor = build(MASKED)
    assert editor.edit("RECORD", record(data, "orders")) is None
    assert editor.edit("SCHEMA", schema({"email": {"type": "string"}}, stream="orders")) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "record", "stream": "users", "record": {"email": "secret"}}\n',
        b'{"stream": "users", "record": {"email": "secret"}, "type": "Record"}\n',
        b'{"type":"RECORD","stream":"users","record":{"email":"secret"}}',
        b' { "type" : "RECORD" , "str\\u0065am" : "us\\u0065rs" , "record" : { "\\u0065mail" : "secret" } } \r\n',
        b'{"type":"RECORD","stream":"users","record":{"email":"secret","x":NaN}}\n',
        b'{"type":"RECORD","stream":"users","record":{"email":"\xff secret","x":"\xff"}}\n',
        b'{"type":"RECORD","stream":"users","record":{"x":"\\ud800","email":"secret"}}\n',
        b'{"type":"RECORD","stream":"users","record":{"x":' + b"[" * 400 + b"]" * 400 + b',"email":"secret"}}\n',
        b'{"type":"RECORD","stream":"users","record":{"email":"secret","x":"' + b"x" * 20_000_000 + b'"}}\n',
    ],
)
def test_any_way_to_write_a_record_is_masked(line):
    edited = build(MASKED).edit("RECORD", line)
    assert [kind for kind, _ in edited] == ["RECORD"]
    assert b"secret" not in edited[0][1]
    assert b"[redacted]" in edited[0][1]
    assert edited[0][1].endswith(b"}\n")


UNREADABLE = {
    "torn": b'{"type": "RECORD", "stream": "users", "record": {"email": "secret", "na',
    "not JSON": b'secret, no JSON at all "record"\n',
    "NUL": b'{"type":"RECORD","stream":"users","record":{"email":"secret\x00"}}\n',
    "trailing": b'{"type":"RECORD","stream":"users","record":{"email":"a"}}{"type":"RECORD"}\n',
    "too deep": b'{"type":"RECORD","stream":"users","record":{"x":' + b"[" * 9000 + b"]" * 9000 + b"}}\n",
    "no record": b'{"type":"RECORD","stream":"users"}\n',
    "record is an array": b'{"type":"RECORD","stream":"users","record":["secret"]}\n',
    "record is null": b'{"type":"RECORD","stream":"users","record":null}\n',
    "no stream": b'{"type":"RECORD","record":{"email":"secret"}}\n',
    "stream is a number": b'{"type":"RECORD","stream":1,"record":{"email":"secret"}}\n',
    "no type": b'{"stream":"users","record":{"email":"secret"}}\n',
    "an array": b'["RECORD"]\n',
    "two types": b'{"type":"RECORD","type":"STATE","stream":"users","record":{"email":"secret"},"value":{}}\n',
    "another type first": b'{"type":"STATE","type":"RECORD","stream":"users","record":{"email":"secret"}}\n',
    "two streams": b'{"type":"RECORD","stream":"orders","str\\u0065am":"users","record":{"email":"secret"}}\n',
    "two records": b'{"type":"RECORD","stream":"users","record":{"email":"secret"},"record":{"y":NaN}}\n',
    "a carriage return": b'{"type":"RECORD","stream":"users",\r"record":{"email":"secret"}}\n',
    "UTF-16": '{"type":"RECORD","stream":"users","record":{}}\n'.encode("utf-16"),
    "empty": b"\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_goes_to_quarantine_with_the_reason(name, tmp_path):
    path, line = tmp_path / "q.jsonl", UNREADABLE[name]
    assert build(MASKED, quarantine=path).edit("RECORD", line) == ()
    (entry,) = [json.loads(kept) for kept in path.read_bytes().splitlines()]
    kept = entry["raw"].encode() if "raw" in entry else base64.b64decode(entry["raw_base64"])
    assert kept == line.removesuffix(b"\n")
    assert entry["reason"].startswith("a RECORD cannot be read: ")


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_ends_the_stream_where_there_is_no_quarantine(name):
    with pytest.raises(PipeError, match=r"^a RECORD cannot be read: .*, and must not pass") as caught:
        build(MASKED).edit("RECORD", UNREADABLE[name])
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"SCHEMA","stream":"users","schema":null}\n',
        b'{"type":"SCHEMA","stream":"users","schema":true}\n',
        b'{"type":"SCHEMA","stream":"users","schema":{},"key_properties":"id"}\n',
        b'{"type":"SCHEMA","stream":"users","schema":{',
    ],
)
def test_a_schema_that_cannot_be_read_does_not_pass_either(line, tmp_path):
    path = tmp_path / "q.jsonl"
    assert build(MASKED, quarantine=path).edit("SCHEMA", line) == ()
    assert reasons(path)[0].startswith("a SCHEMA cannot be read: ")


def test_an_error_that_nobody_thought_of_does_not_let_a_record_pass(tmp_path):
    """Given half a surrogate pair where text has to be written anew, then the line goes to quarantine."""
    path = tmp_path / "q.jsonl"
    editor = build({"stream": "users", "set": {"x": {"expr": "a || '!'"}}}, quarantine=path)
    assert editor.edit("RECORD", record('{"a": "\\ud800"}')) == ()
    assert reasons(path) == ["a RECORD cannot be changed: UnicodeEncodeError"]


def test_records_before_their_schema_are_masked_and_the_schema_follows_when_it_comes():
    editor = build(MASKED)
    ((_, before),) = editor.edit("RECORD", record({"email": "a"}))
    ((_, described),) = editor.edit("SCHEMA", schema({"email": {"type": "string", "format": "email"}}))
    ((_, after),) = editor.edit("RECORD", record({"email": "b"}))
    assert before == after
    assert json.loads(described)["schema"]["properties"] == {"email": {"type": "string"}}


def test_a_property_that_the_schema_does_not_have_is_said_once():
    said = []
    editor = build({"stream": "users", "mask": {"emial": "redact"}, "drop": ["a.b"]}, said=said)
    for _ in range(2):
        editor.edit("SCHEMA", schema({"email": {"type": "string"}}))
    assert said == [
        "$.records[0].mask.emial: the schema of users has no such property",
        "$.records[0].drop.a.b: the schema of users has no such property",
    ]


def test_a_pattern_says_nothing_of_streams_that_lack_a_property():
    said = []
    build({"stream": "*", "mask": {"email": "redact"}}, said=said).edit("SCHEMA", schema({"id": {"type": "string"}}))
    assert said == []


def test_the_rules_of_a_stream_are_there_for_rows_of_files():
    editor = build(MASKED, {"stream": "o*", "drop": ["a"]})
    assert editor.rules_for("items") is None
    rules = editor.rules_for("users")
    editor.edit("SCHEMA", schema({"email": {"type": "string"}}))
    assert editor.rules_for("users") is rules
    described = rules.apply_schema({"properties": {"email": {"type": "integer"}}}, ["id"])
    assert described.root == {"properties": {"email": {"type": ["integer", "null"]}}}
    assert described.keys == ["id"]


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"filter": "a ="}, r"\$\.records\[1\]\.filter"),
        ({"filter": "a + 1"}, r"\$\.records\[1\]\.filter"),
        ({"set": {"x": {"expr": "NOPE(a)"}}}, r"\$\.records\[1\]\.set\.x"),
        ({"set": {"x": {"expr": 1}}}, r"\$\.records\[1\]\.set\.x"),
        ({"mask": {"x": {"how": "sha256", "key": {"env": "NOT_THERE"}}}}, r"\$\.records\[1\]\.mask\.x"),
        ({"mask": {"x": {"how": "sha256", "key": {"env": "SHORT"}}}}, r"\$\.records\[1\]\.mask\.x: the key has less"),
    ],
)
def test_what_the_structs_cannot_check_is_a_config_error_with_its_place(rule, path, monkeypatch):
    monkeypatch.setenv("SHORT", "letmein")
    with pytest.raises(ConfigError, match=f"^{path}") as caught:
        build(MASKED, {"stream": "users", **rule})
    assert "letmein" not in str(caught.value)


def test_all_that_is_wrong_with_the_rules_is_found_at_once():
    rules = [
        {"stream": "a", "filter": "x >", "mask": {"b": {"how": "sha256", "key": {"env": "NOT_THERE"}}}},
        {"stream": "b", "set": {"c": {"expr": "NOPE(c)"}, "d": 1}},
    ]
    found = refused_parts(msgspec.convert(rules, list[RecordRule]))
    assert [error.path for error in found] == ["$.records[0].filter", "$.records[0].mask.b", "$.records[1].set.c"]
