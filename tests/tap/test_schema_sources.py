"""Where schemas come from: dicts, types, files, folders, functions, the registry."""

import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from balog.tap.errors import SchemaError
from balog.tap.schema import flatten, generated, json_file, json_folder, schema_of
from balog.tap.schema.documents import MAX_BYTES, check
from balog.testing import capture_events

HERE = Path(__file__).parent


def _no_client() -> Any:
    raise AssertionError("nobody needs a client for this")


def _write(path: Path, schema: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema))
    return path


class _Contact(msgspec.Struct):
    id: int
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    name: str | None = None


@dataclass
class _Point:
    x: float
    next: "_Point | None" = None


class _Row(TypedDict):
    id: int


@pytest.mark.parametrize(
    ("source", "properties"),
    [
        ({"properties": {"id": {"$ref": "#/$defs/id"}}, "$defs": {"id": {"type": "integer"}}}, {"id"}),
        (_Contact, {"id", "at", "name"}),
        (_Point, {"x", "next"}),
        (_Row, {"id"}),
        (lambda client, stream: {"properties": {stream: {}}}, {"things"}),
    ],
)
def test_what_a_schema_may_be_said_by(source: Any, properties: set[str]) -> None:
    found = schema_of(source, _no_client, "things")
    assert found["type"] == "object"
    assert found["properties"].keys() == properties
    assert "$ref" not in json.dumps(found)


def test_a_struct_s_optional_member_is_a_type_with_null() -> None:
    properties = schema_of(_Contact, _no_client, "things")["properties"]
    assert properties["name"] == {"type": ["null", "string"], "default": None}
    assert properties["at"] == {"type": "string", "format": "date-time"}


WRONG_TYPE = "schema of things: $.properties.a.type: expected a type, or a list of different types; found"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "stream 'things' has no schema; declare one with tap.schema('things', …)"),
        (3, "schema of things: expected a schema, a type or a source of schemas; found int"),
        (lambda client, stream: [], "schema of things: expected a schema, an object; found list"),
        ({"type": "array"}, "schema of things: $.type: a record is an object, and this is a schema of array"),
        ({"properties": []}, 'schema of things: $.properties: [] is not of type "object"'),
        (
            {"properties": {"a": "string"}},
            'schema of things: $.properties.a: "string" is not of types "boolean", "object"',
        ),
        ({"properties": {"a": {"type": "strng"}}}, f"{WRONG_TYPE} 'strng'; did you mean 'string'?"),
        ({"properties": {"a": {"type": []}}}, f"{WRONG_TYPE} []"),
        ({"properties": {"a": {"type": ["object", "object"]}}}, f"{WRONG_TYPE} ['object', 'object']"),
        ({"properties": {"type": 5}}, 'schema of things: $.properties.type: 5 is not of types "boolean", "object"'),
        ({"required": "id"}, 'schema of things: $.required: "id" is not of type "array"'),
        ({"required": ("id",)}, "schema of things: $.required: expected a list; found a tuple"),
        ({"minLength": -1}, "schema of things: $.minLength: -1 is less than the minimum of 0"),
        ({"anyOf": []}, "schema of things: $.anyOf: [] has less than 1 item"),
        ({"properties": {1: {}}}, "schema of things: Dict key must be str or str enum. Got 'int'"),
    ],
)
def test_what_is_no_schema_is_one_line(source: Any, reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema_of(source, _no_client, "things")
    assert str(caught.value) == reason


def test_a_schema_too_deep_or_too_large_is_refused(tmp_path: Path) -> None:
    deep: Any = {}
    for _ in range(60):
        deep = {"properties": {"a": deep}}
    with pytest.raises(SchemaError, match="nested deeper than 100"):
        check(deep)
    (tmp_path / "large.json").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(SchemaError, match=r"large\.json: larger than 4 MiB; is this the right file\?"):
        json_file(tmp_path / "large.json")(_no_client, "x")
    (tmp_path / "deep.json").write_text("[" * 500_000)
    with pytest.raises(SchemaError, match=r"deep\.json: nested deeper than 100"):
        json_file(tmp_path / "deep.json")(_no_client, "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"properties": {"a": {"pattern": "(?<x"}}}', r"x\.json: .*regex"),
        ('{"type": "object", "type": "object"}', r"x\.json: \$\.type: this key is there twice"),
        ('{"type": "array"}', r"x\.json: \$\.type: a record is an object"),
        ('{\n "type": "obj', r"x\.json:2:10: not JSON: unterminated string"),
        ('{"properties": {"a": {"$ref": "#/properties/a"}}}', r"x\.json: \$\.properties\.a.*is circular"),
    ],
)
def test_an_error_of_a_file_names_it_and_the_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(SchemaError, match=message):
        json_file(tmp_path / "x.json")(_no_client, "x")


def test_of_an_unknown_draft_only_types_are_checked(tmp_path: Path) -> None:
    schema = {"$schema": "http://json-schema.org/draft-03/schema#", "type": "object"}
    path = _write(tmp_path / "x.json", schema)
    with capture_events() as captured:
        assert json_file(path)(_no_client, "x") == schema
    (warning,) = [event.payload["message"] for event in captured if event.payload["cls_type"] == "log"]
    assert warning.startswith(f"{path}: only types are checked: Unknown meta-schema")


def test_a_file_is_seen_from_the_one_that_says_it() -> None:
    name = f"{HERE.name}_no_such.json"
    with pytest.raises(SchemaError) as caught:
        json_file(name)(_no_client, "x")
    assert str(caught.value) == f"{HERE / name}: cannot be read: No such file or directory"


def test_a_part_of_a_file(tmp_path: Path) -> None:
    parts = {"definitions": {"x": {"properties": {"id": {"$ref": "#/i"}}}}, "i": {}}
    _write(tmp_path / "a b%1.json", parts)
    path = _write(tmp_path / "x.json", {"$ref": "a%20b%251.json#/definitions/x"})
    assert json_file(path)(_no_client, "x") == {"properties": {"id": {}}}


def test_a_folder_has_a_file_for_each_stream(tmp_path: Path) -> None:
    _write(tmp_path / "shared" / "address.json", {"properties": {"zip": {"type": "string"}}})
    for stream in ("contacts", "companies"):
        _write(tmp_path / f"{stream}.json", {"properties": {"to": {"$ref": "shared/address.json"}, stream: {}}})
    source = json_folder(tmp_path)
    assert source(_no_client, "contacts") == {
        "properties": {"to": {"properties": {"zip": {"type": "string"}}}, "contacts": {}}
    }
    assert "companies" in source(_no_client, "companies")["properties"]
    with pytest.raises(SchemaError, match=r"deals\.json: cannot be read"):
        source(_no_client, "deals")
    with pytest.raises(SchemaError, match=r"a stream named '\.\./x' can't have a file in a folder"):
        source(_no_client, "../x")


def test_generated_schemas_are_asked_for_once() -> None:
    asked = []

    def fields(client: Any) -> dict[str, Any]:
        asked.append(client)
        return {"a": {"type": "object"}, "b": {"type": "object", "title": "B"}}

    source = generated(fields)
    assert source(lambda: "client", "b") == {"type": "object", "title": "B"}
    assert source(lambda: "client", "a") == {"type": "object"}
    assert asked == ["client"]
    with pytest.raises(SchemaError, match="fields returns no schema for 'c'; it returns a, b"):
        source(lambda: "client", "c")
    assert generated(lambda: {"a": {}})(_no_client, "a") == {}


@pytest.mark.parametrize("kind", ["value", "function"])
def test_a_schema_that_is_from_no_file_reads_none(kind: str, tmp_path: Path) -> None:
    """Given a schema of a source, perhaps made of what it sent, then it can't have files of this machine read."""
    secret = _write(tmp_path / "secret.json", {"properties": {"password": {"const": "hunter2"}}})
    schema = {"type": "object", "properties": {"a": {"$ref": f"file://{secret}"}, "b": {"$ref": str(secret)}}}
    source = schema if kind == "value" else generated(lambda: {"contacts": schema})
    with pytest.raises(SchemaError, match="cannot reference files; load it with json_file"):
        schema_of(source, _no_client, "contacts")


def test_a_pipe_is_no_schema(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(SchemaError, match="not a regular file"):
        json_file(tmp_path / "pipe.json")(_no_client, "contacts")


@pytest.mark.parametrize(
    ("schema", "flat"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["null", "string"]}),
        ({"oneOf": [{"type": "null"}, {"type": ["object"]}], "title": "A"}, {"type": ["null", "object"], "title": "A"}),
        ({"allOf": [{"type": "integer"}], "minimum": 1}, {"type": "integer", "minimum": 1}),
        ({"allOf": [{"type": "number"}, {"type": ["integer", "null"]}]}, {"type": "integer"}),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            {"properties": {"b": {}, "a": {"type": "string"}}, "required": ["a"]},
        ),
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, {"pattern": "a", "allOf": [{"pattern": "b"}]}),
        (
            {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
            {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        ),
        (
            {"anyOf": [{"enum": ["a"], "type": "string"}, {"type": "null"}]},
            {"type": ["null", "string"], "enum": ["a", None]},
        ),
    ],
)
def test_what_is_merged(schema: Any, flat: Any) -> None:
    assert flatten(schema) == flat
