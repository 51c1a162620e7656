"""The check of configs agrees with a JSON Schema validator, on schemas and configs at random."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from balog.tap.json_schema.formats import FORMATS
from balog.tap.json_schema.validator import check, reject_unknown

NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -2.0, 2.5]),
    st.sampled_from(["", "a", "ab", "abc", "1"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]


def _with(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return _with(
        type=st.one_of(st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)),
        properties=st.dictionaries(NAMES, inner, max_size=3),
        required=st.lists(NAMES, max_size=2, unique=True),
        dependentRequired=st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
        patternProperties=st.dictionaries(st.sampled_from(["^a", "b|c"]), inner, max_size=2),
        additionalProperties=inner,
        propertyNames=inner,
        items=inner,
        anyOf=some,
        oneOf=some,
        allOf=some,
        enum=st.lists(VALUES, min_size=1, max_size=3),
        const=VALUES,
        uniqueItems=st.booleans(),
        minItems=st.integers(0, 3),
        maxItems=st.integers(0, 3),
        minProperties=st.integers(0, 3),
        maxProperties=st.integers(0, 3),
        minLength=st.integers(0, 3),
        maxLength=st.integers(0, 3),
        pattern=st.sampled_from(["^a", "b$", "[0-9]"]),
        minimum=st.integers(-2, 2),
        maximum=st.integers(-2, 2),
        exclusiveMinimum=st.integers(-2, 2),
        exclusiveMaximum=st.integers(-2, 2),
        multipleOf=st.sampled_from([1, 2, 0.5]),
        **{"not": inner, "$ref": st.just("#/$defs/d")},
    )


SCHEMAS = st.recursive(st.one_of(st.booleans(), _with(type=st.sampled_from(TYPES))), _schemas, max_leaves=6)


def _document(schema: Any, target: dict[str, Any]) -> Any:
    return {"allOf": [schema], "$defs": {"d": target}}


SOME_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 1.0, 1.5, 2.5, -2.0, 1e300, 10**30, "", "a", "ab", "abc", "1", "äöü"),
    *([], [1], [1, 1.0], [1, True], [0, False], ["a", "b", "a"], [[1], [1]], [{"a": 1}, {"a": 1.0}], [None]),
    *({}, {"a": 1}, {"a": True}, {"a": 1, "b": 2}, {"b": "x", "c": None}, {"a": {"a": 1}}, {"abc": 1}),
]
STRING, INTEGER, SMALL = {"type": "string"}, {"type": "integer"}, {"maximum": 1}
EACH_KEYWORD: dict[str, list[Any]] = {
    "type": [*TYPES, ["string", "null"], ["integer", "array"]],
    "enum": [[1], [True], [None, "a"], [[1], {"a": 1}], [0, False]],
    "const": [1, True, 1.0, "a", [1, 1], {"a": True}, None],
    **{key: [0, 1, 1.5, -1] for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
    "multipleOf": [1, 2, 0.5, 0.1],
    **{key: [0, 1, 2] for key in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")},
    "pattern": ["^a", "b", "^[0-9]+$"],
    "items": [STRING, INTEGER, True, False],
    "uniqueItems": [True, False],
    "required": [[], ["a"], ["a", "b"]],
    "dependentRequired": [{"a": ["b"]}, {"b": ["c"]}],
    "properties": [{"a": INTEGER}, {"a": False}, {"a": {"properties": {"a": STRING}}}],
    "patternProperties": [{"^a": INTEGER}, {"b|c": STRING}],
    "additionalProperties": [True, False, INTEGER],
    "propertyNames": [{"maxLength": 1}, {"enum": ["a"]}],
    **{
        key: [[INTEGER], [INTEGER, SMALL], [STRING, INTEGER], [INTEGER, INTEGER]] for key in ("allOf", "anyOf", "oneOf")
    },
    "not": [STRING, SMALL, {"required": ["a"]}],
    "$ref": ["#/$defs/d"],
}
BESIDE: list[dict[str, Any]] = [
    {},
    {"properties": {"a": {}}},
    {"patternProperties": {"^b": {}}},
    {"type": ["integer", "object"]},
]


def test_each_keyword_is_tried() -> None:
    from balog.tap.json_schema.validator import RULES

    assert EACH_KEYWORD.keys() == {*RULES, "type"} - {"format"}


@pytest.mark.parametrize("keyword", EACH_KEYWORD)
def test_each_keyword_passes_what_the_validator_passes(keyword: str) -> None:
    for said in EACH_KEYWORD[keyword]:
        for beside in BESIDE:
            schema = {**beside, keyword: said, "$defs": {"d": INTEGER}}
            reject_unknown(schema)
            validator = jsonschema.Draft202012Validator(schema)
            for value in SOME_VALUES:
                assert (not list(check(value, schema))) == validator.is_valid(value), (schema, value)


@settings(max_examples=100, deadline=None)
@given(SCHEMAS, st.fixed_dictionaries({"type": st.sampled_from(TYPES)}), VALUES)
def test_a_config_passes_where_it_passes_the_validator(schema: Any, target: dict[str, Any], value: Any) -> None:
    document = _document(schema, target)
    reject_unknown(document)
    expected = jsonschema.Draft202012Validator(document).is_valid(value)
    assert (not list(check(value, document))) == expected


@settings(max_examples=50, deadline=None)
@given(SCHEMAS, st.text(min_size=12, max_size=20), st.fixed_dictionaries({"type": st.sampled_from(TYPES)}))
def test_no_value_is_in_what_is_said(schema: Any, secret: str, target: dict[str, Any]) -> None:
    for fault in check({"a": secret, "b": [secret]}, _document(schema, target)):
        assert secret not in fault.reason


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(set(FORMATS) - {"instant", "email", "hostname"})),
    st.one_of(
        st.text(max_size=12),
        st.dates().map(str),
        st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
        st.times().map(lambda moment: moment.isoformat() + "+01:00"),
        st.uuids().map(str),
        st.ip_addresses().map(str),
        st.from_regex(r"\A(19|20)\d\d-[01]\d-[0-3]\d(T\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d))?\Z"),
        st.from_regex(r"\AP(\d[YMDW]){0,3}(T(\d[HMS]){0,3})?\Z"),
    ),
)
@example("duration", "P0Y0D")
def test_formats_pass_where_they_pass_the_validator_of_the_extra(name: str, text: str) -> None:
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "format": name}, validate_formats=True
    )
    assert FORMATS[name].fits(text) == validator.is_valid(text)
