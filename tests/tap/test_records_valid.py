"""What comes out of a Transformer fits its schema, by another validator; what fitted already comes out as it was."""

import json
from unittest.mock import Mock

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from balog.tap.catalog import CatalogEntry
from balog.tap.errors import RecordError
from balog.tap.json_schema.formats import is_date
from balog.tap.records import Transformer
from balog.tap.records.times import is_date_time

CHECKER = Draft7Validator.FORMAT_CHECKER
CHECKER.checks("date-time")(lambda value: not isinstance(value, str) or is_date_time(value))
CHECKER.checks("date")(lambda value: not isinstance(value, str) or is_date(value))

NAMES = st.sampled_from(["a", "b", "c", "$d", "e f"])
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["", "12", "12.50", "1e5", "true", "False", "2026-02-29", "2026-11-20 07:46:12", "2024-02-29T00:00:00Z"]
    ),
)
NUMBERS = st.one_of(st.integers(-3, 30), st.integers(-(2**70), 2**70), st.floats(-1e6, 1e6, width=32), st.just(12.0))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def keywords(inner):
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(
                st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
            ),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "items": inner,
            "format": st.sampled_from(["date-time", "date"]),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "minimum": st.integers(-5, 5),
            "exclusiveMaximum": st.integers(5, 20),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": st.integers(0, 3),
            "maxLength": st.integers(2, 5),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "pattern": st.sampled_from(["^a", r"\d", "."]),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    )


PLAIN = st.recursive(st.one_of(st.booleans(), keywords(st.just({}))), keywords, max_leaves=6)
REFERENCES = st.sampled_from([{"$ref": "#/definitions/x"}, {"$ref": "#/definitions/y"}])
PARTS = st.recursive(st.one_of(st.booleans(), keywords(st.just({})), REFERENCES), keywords, max_leaves=6)
OWN = st.dictionaries(NAMES, PARTS, min_size=1, max_size=4)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": OWN, "definitions": st.fixed_dictionaries({"x": PLAIN, "y": PLAIN})},
    optional={
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": st.one_of(st.booleans(), PARTS),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "e", "^[ab]$"]), PARTS, max_size=2),
        "anyOf": st.lists(PARTS, min_size=1, max_size=2),
    },
)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=5)


def a_text_and(keyword, value):
    return {"properties": {"a": {"type": "string"}}, "patternProperties": {"^a": {keyword: value}}}


_encode = msgspec.json.Encoder(decimal_format="number").encode
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def transformer(schema, policy="coerce", keys=()):
    """Return the Transformer of a schema, which logs no schema that the other validator accepts as invalid."""
    log = Mock()
    made = Transformer(
        CatalogEntry(tap_stream_id="s", stream="s", schema=schema, key_properties=[*keys]), policy, log=log
    )
    assert not [call for call in log.warning.mock_calls if "not valid" in str(call)], log.warning.mock_calls
    return made


KEYS = st.lists(NAMES, max_size=2, unique=True)


@QUICK
@given(schema=SCHEMAS, record=RECORDS, policy=st.sampled_from(["coerce", "fail"]), keys=KEYS)
@example(
    schema={"properties": {"a": {"type": "object", "anyOf": [{"type": "string"}]}}},
    record={"a": {}},
    policy="coerce",
    keys=[],
)
@example(
    schema={"required": ["b"], "properties": {"a": {"maxLength": 2}}}, record={"a": "abc"}, policy="fail", keys=["b"]
)
@example(
    schema={"required": ["a"], "properties": {"a": {"maxLength": 2}}}, record={"a": "abc"}, policy="fail", keys=["a"]
)
@example(schema=a_text_and("additionalProperties", {}), record={"a": {"b": 1}}, policy="coerce", keys=[])
@example(schema=a_text_and("maxLength", 50), record={"a": {"b": 1}}, policy="coerce", keys=[])
def test_what_comes_out_is_valid(schema, record, policy, keys):
    before = json.dumps(record)
    try:
        made = transformer(schema, policy, keys)(record)
    except RecordError:
        made = {}
        schema = {}
    assert json.dumps(record) == before
    line = json.loads(_encode(made))
    errors = list(Draft7Validator(schema, format_checker=CHECKER).iter_errors(line))
    assert not errors, (errors[0].message, schema, before, made)


@QUICK
@given(schema=SCHEMAS, record=RECORDS, policy=st.sampled_from(["coerce", "fail"]))
def test_what_was_valid_is_not_refused_and_not_changed_but_for_what_no_schema_has(schema, record, policy):
    if not Draft7Validator(schema, format_checker=CHECKER).is_valid(record):
        return
    made = transformer(schema, policy)(record)
    assert fewer(json.loads(_encode(made)), record), (schema, record, made)


def fewer(made, given):
    """The same but for properties that were left out; ``1.0`` may have become 1."""
    if isinstance(given, dict):
        return made.keys() <= given.keys() and all(fewer(value, given[name]) for name, value in made.items())
    if isinstance(given, list):
        return len(made) == len(given) and all(map(fewer, made, given))
    return made == given and isinstance(made, bool) == isinstance(given, bool)


FLAT = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["null", "number"]},
        "name": {"type": "string", "maxLength": 5},
        "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": ["object", "null"], "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    "required": ["id"],
}


@QUICK
@given(
    record=st.fixed_dictionaries(
        {},
        optional={
            "id": VALUES,
            "price": VALUES,
            "name": VALUES,
            "at": VALUES,
            "tags": VALUES,
            "place": VALUES,
            "more": VALUES,
        },
    )
)
def test_records_of_an_ordinary_schema_come_out_valid_or_are_refused(record):
    try:
        made = transformer(FLAT)(record)
    except RecordError:
        return
    Draft7Validator(FLAT, format_checker=CHECKER).validate(json.loads(_encode(made)))


def test_a_record_that_fits_is_the_same_object():
    record = {"id": 1, "price": 1.5, "name": "ab", "tags": ["x"], "place": {"city": "Luxembourg"}}
    assert transformer(FLAT)(record) is record


@pytest.mark.parametrize("policy", ["fail", "coerce", "quarantine"])
def test_a_schema_that_holds_itself_is_followed_as_deep_as_the_record_goes(policy):
    schema = {
        "properties": {"tree": {"$ref": "#/definitions/tree"}},
        "definitions": {
            "tree": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "below": {"type": "array", "items": {"$ref": "#/definitions/tree"}},
                },
            }
        },
    }
    record = {"tree": {"name": "a", "below": [{"name": "b", "below": [{"name": "c"}]}]}}
    assert transformer(schema, policy)(record) == record
    record["tree"]["below"][0]["below"][0]["name"] = []
    with pytest.raises(RecordError, match=r"\$\.tree\.below\[0\]\.below\[0\]\.name: want a string, got an array"):
        transformer(schema, "fail")(record)


@pytest.mark.parametrize(
    ("value", "keyword"), [({"k": 1}, "additionalProperties"), ([1], "items"), ({"k": 1}, "maxLength")]
)
def test_the_schema_of_a_pattern_gets_what_the_property_has_made(value, keyword):
    schema = a_text_and(keyword, 50 if keyword == "maxLength" else {"type": "integer"})
    assert transformer(schema)({"a": value}) == {"a": json.dumps(value, separators=(",", ":"))}
