import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark is not installed")

from pyspark.sql import types as t

from balog.analytics.reading.registry_types import payload_type, spark_type
from balog.common.errors import ConfigError


@pytest.mark.parametrize(
    ("cls_type", "columns"),
    [
        (
            "metric",
            "cls_type:string,version:string,type:string,metric:string,value:double,tags:map<string,string>",
        ),
        ("metrics", "cls_type:string,version:string,values:array<struct<name:string,value:double>>"),
        ("state", "cls_type:string,version:string,value:string"),
    ],
)
def test_a_registered_type_has_its_schemas_columns(cls_type: str, columns: str) -> None:
    kind = payload_type(cls_type)
    assert kind is not None
    assert kind.simpleString() == f"struct<{columns}>"


def test_a_type_within_itself_ends_as_text() -> None:
    kind = payload_type("log")
    assert kind is not None
    assert kind["exception"].dataType["cause"].dataType == t.StringType()


@pytest.mark.parametrize("cls_type", ["nobody.knows", "../facility", "..", "", "a/b", "a\0b", "x" * 300])
def test_a_type_without_a_schema_is_none(cls_type: str) -> None:
    assert payload_type(cls_type) is None


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string", "format": "date"}, "date"),
        ({"type": ["integer", "null"]}, "bigint"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": ["integer", "string"]}, "string"),
        ({"enum": [1, 2, None]}, "bigint"),
        ({"enum": [True, 2]}, "string"),
        ({"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^[0-9.]+$"}]}, "double"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, "string"),
        ({"oneOf": [{"type": "null"}, {"type": "array", "items": {"type": "boolean"}}]}, "array<boolean>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string,bigint>"),
        ({"type": "object", "additionalProperties": False}, "map<string,string>"),
        ({"properties": {"a": {"type": "integer"}, "A": {"type": "string"}}}, "struct<a:bigint>"),
        (
            {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"$ref": "#/$defs/b"}],
             "$defs": {"b": {"properties": {"b": {"type": "boolean"}}}}},
            "struct<a:bigint,b:boolean>",
        ),
        ({"$ref": "#"}, "string"),
        (True, "string"),
        ({}, "string"),
    ],
)  # fmt: skip
def test_each_form_of_schema_has_its_type(schema: Any, kind: str) -> None:
    assert spark_type(schema).simpleString() == kind


@pytest.mark.parametrize("reference", ["#/$defs/gone", "https://example.com/x.json", "other.json#/a"])
def test_a_reference_that_cannot_be_followed_is_refused(reference: str) -> None:
    with pytest.raises(ConfigError, match=r"\$ref .* leads"):
        spark_type({"$ref": reference})


def write(path: Path, *names: str, cls_type: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    properties: dict[str, Any] = {name: {"type": "integer"} for name in names}
    if cls_type:
        properties["cls_type"] = {"const": cls_type}
    path.write_text(json.dumps({"type": "object", "properties": properties}))
    return path


def test_a_folder_of_ones_own_goes_before_the_registry_and_its_newest_version_counts(tmp_path: Path) -> None:
    write(tmp_path / "metric" / "1.9.0.json", "old")
    write(tmp_path / "metric" / "1.10.0.json", "new")
    assert payload_type("metric", location=str(tmp_path)) == t.StructType().add("new", t.LongType())
    assert payload_type("run", location=str(tmp_path)) == payload_type("run")


def test_protobuf_types_of_a_registry_are_columns_too(tmp_path: Path) -> None:
    (tmp_path / "order").mkdir()
    (tmp_path / "order" / "1.0.0.proto").write_text(
        'syntax = "proto3"; message Order { int64 id = 1; string note = 2; }'
    )
    found = payload_type("order", location=str(tmp_path))
    assert found is not None
    kinds = {field.name: field.dataType for field in found if field.name not in ("cls_type", "version")}
    assert kinds == {"id": t.LongType(), "note": t.StringType()}


def test_a_schema_file_serves_the_type_that_it_names_or_any_if_it_names_none(tmp_path: Path) -> None:
    named = write(tmp_path / "named.json", "price", cls_type="order")
    unnamed = write(tmp_path / "any.json", "price")
    found = payload_type("order", location=str(named))
    assert found is not None
    assert found.fieldNames() == ["price", "cls_type"]
    assert payload_type("metric", location=str(named)) == payload_type("metric")
    assert payload_type("metric", location=str(unnamed)) == t.StructType().add("price", t.LongType())


@pytest.mark.parametrize("text", ["{", "[]", '"x"', '{"type": "string"}', '{"type": "object"}', "{}"])
def test_what_is_no_schema_of_an_object_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ConfigError, match=r"a\.json"):
        payload_type("x", location=str(tmp_path / "a.json"))
    with pytest.raises(ConfigError, match="no such schema file or folder"):
        payload_type("x", location=str(tmp_path / "gone"))


SCHEMAS = st.recursive(
    st.sampled_from([{"type": k} for k in ("string", "integer", "number", "boolean", "null", "object", "array", "?")])
    | st.sampled_from([{}, True, {"$ref": "#"}, {"enum": []}, {"enum": [1, "a", None]}, {"const": [1]}]),
    lambda inner: (
        st.builds(lambda s: {"type": "array", "items": s}, inner)
        | st.builds(
            lambda s: {"type": "object", "properties": s}, st.dictionaries(st.text(max_size=3), inner, max_size=3)
        )
        | st.builds(lambda s: {"type": "object", "additionalProperties": s}, inner)
        | st.builds(lambda key, s: {key: s}, st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, max_size=3))
    ),
    max_leaves=12,
)


@given(SCHEMAS)
def test_every_schema_has_a_type(schema: Any) -> None:
    assert isinstance(spark_type(schema), t.DataType)
