"""What comes out of a Transformer fits its schema, by another validator; what fitted already comes out as it was."""

import json
from unittest.mock import Mock

import msgspec
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from balog.tap.catalog import CatalogEntry
from balog.tap.errors import RecordError
from balog.tap.json_schema.formats import is_date
from balog.tap.records import Transformer
from balog.tap.records.times import is_date_time

CHECKER = Draft202012Validator.FORMAT_CHECKER
CHECKER.checks("date-time")(lambda value: not isinstance(value, str) or is_date_time(value))
CHECKER.checks("date")(lambda value: not isinstance(value, str) or is_date(value))

NAMES_OF_RECORDS = ["a", "b", "c", "$d", "e f"]
NAMES = st.sampled_from(NAMES_OF_RECORDS)
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
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
            "dependentSchemas": st.dictionaries(NAMES, inner, max_size=1),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "e", "^[ab]$"]), inner, max_size=2),
        },
    )


PLAIN = st.recursive(st.one_of(st.booleans(), keywords(st.just({}))), keywords, max_leaves=6)
REFERENCES = st.sampled_from([{"$ref": "#/definitions/x"}, {"$ref": "#/definitions/y"}])
BESIDE = st.builds(lambda part, reference: part | reference, keywords(st.just({})), REFERENCES)
PARTS = st.recursive(st.one_of(st.booleans(), keywords(st.just({})), REFERENCES, BESIDE), keywords, max_leaves=6)
OWN = st.dictionaries(NAMES, PARTS, min_size=1, max_size=4)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": OWN, "definitions": st.fixed_dictionaries({"x": PLAIN, "y": PLAIN})},
    optional={
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": st.one_of(st.booleans(), PARTS),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "e", "^[ab]$"]), PARTS, max_size=2),
        "dependentSchemas": st.dictionaries(NAMES, PARTS, max_size=1),
        "$ref": st.just("#/definitions/x"),
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
    errors = list(Draft202012Validator(schema, format_checker=CHECKER).iter_errors(line))
    assert not errors, (errors[0].message, schema, before, made)


@QUICK
@given(schema=SCHEMAS, record=RECORDS, policy=st.sampled_from(["coerce", "fail"]))
def test_what_was_valid_is_not_refused_and_not_changed_but_for_what_no_schema_has(schema, record, policy):
    if not Draft202012Validator(schema, format_checker=CHECKER).is_valid(record):
        return
    made = transformer(schema, policy)(record)
    assert fewer(json.loads(_encode(made)), record), (schema, record, made)


LOOSE = [
    {"minProperties": 2},
    {"dependentRequired": {"a": ["b"]}},
    {"dependencies": {"a": ["b"]}},
    {"required": ["b"]},
    {"not": {"required": ["a", "b"]}},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"if": {"required": ["b"]}, "then": {"required": ["c"]}, "else": {"required": ["a"]}},
]


@QUICK
@given(
    record=st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3),
    names=st.lists(st.sampled_from("abc"), max_size=2),
    rule=st.sampled_from(LOOSE),
    draft=st.sampled_from(["http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2019-09/schema"]),
)
@example(record={"a": 1, "b": 2}, names=["b"], rule=LOOSE[2], draft="http://json-schema.org/draft-04/schema#")
def test_a_valid_record_is_not_refused_for_a_property_that_is_not_selected(record, names, rule, draft):
    assume("dependencies" not in rule or "draft-04" in draft)  # validators differ: later drafts do not have it
    schema = {"$schema": draft, "properties": {name: {"type": "integer"} for name in "abc"}, **rule}
    if not validator_for(schema)(schema).is_valid(record):
        return
    metadata = {("properties", name): {"selected": False} for name in names}
    made = Transformer(
        CatalogEntry(tap_stream_id="s", stream="s", schema=schema, metadata=metadata), "fail", log=Mock()
    )
    assert made(record) == {name: value for name, value in record.items() if name not in names}
    validator_for(schema).check_schema(made.schema)
    if not {"not", "oneOf", "if"} & rule.keys():
        validator_for(schema)(made.schema).validate(made(record))


OBJECTS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, st.just({}), min_size=1)}
)
NESTED = st.builds(lambda part, name: {"type": "object", "properties": {name: part}}, OBJECTS, NAMES)


@QUICK
@given(
    keyword=st.sampled_from(["anyOf", "oneOf", "allOf", "dependentSchemas"]),
    parts=st.lists(st.one_of(OBJECTS, NESTED), min_size=2, max_size=3),
    record=st.dictionaries(NAMES, st.one_of(st.integers(), st.dictionaries(NAMES, st.integers(), max_size=4))),
    is_nullable=st.booleans(),
    own=st.one_of(st.just({}), OBJECTS),
)
@example(
    keyword="anyOf",
    parts=[{"type": "object", "properties": {name: {}}} for name in "ab"],
    record={"a": 1, "b": 3, "c": 1},
    is_nullable=True,
    own={},
)
def test_a_property_that_any_part_declares_is_not_left_out(keyword, parts, record, is_nullable, own):
    several = keyword in ("anyOf", "oneOf")
    value = dict(zip(NAMES_OF_RECORDS, parts)) if keyword == "dependentSchemas" else parts
    schema = {**own, keyword: [{"type": "null"}, *value] if several and is_nullable else value}
    root = {"properties": {"pet": schema}}
    if not Draft202012Validator(root).is_valid({"pet": record}):
        return
    made = transformer(root)({"pet": record})["pet"]
    every = [*parts, own]
    for name in {name for part in every for name in part.get("properties", {})} & record.keys():
        assert name in made, (schema, record, made)
        inner = [part["properties"][name] for part in every if name in part.get("properties", {})]
        if isinstance(record[name], dict):
            declared = {each for part in inner for each in part.get("properties", {})}
            assert declared & record[name].keys() <= made[name].keys(), (schema, record, made)
    if several:  # the others are left out
        assert made.keys() <= {name for part in every for name in part.get("properties", {})}, (schema, record, made)


@pytest.mark.parametrize("draft", ["", "http://json-schema.org/draft-07/schema#"])
@pytest.mark.parametrize("beside", [{"maximum": 1}, {"enum": [1]}, {"not": {"const": 1.5}}])
def test_keywords_beside_a_reference_apply_from_draft_2019_on(beside, draft):
    part = {"$ref": "#/$defs/n", **beside}
    schema = {**({"$schema": draft} if draft else {}), "properties": {"v": part}, "$defs": {"n": {"type": "number"}}}
    if draft:
        assert transformer(schema)({"v": 1.5}) == {"v": 1.5}
        return
    with pytest.raises(RecordError, match=r"\$\.v"):
        transformer(schema)({"v": 1.5})


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
@given(record=st.dictionaries(st.sampled_from([*FLAT["properties"], "more"]), VALUES))
def test_records_of_an_ordinary_schema_come_out_valid_or_are_refused(record):
    try:
        made = transformer(FLAT)(record)
    except RecordError:
        return
    Draft202012Validator(FLAT, format_checker=CHECKER).validate(json.loads(_encode(made)))


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
    with pytest.raises(RecordError, match=r"\$\.tree\.below\[0\]\.below\[0\]\.name: expected a string, got an array"):
        transformer(schema, "fail")(record)


@pytest.mark.parametrize(
    ("value", "keyword"), [({"k": 1}, "additionalProperties"), ([1], "items"), ({"k": 1}, "maxLength")]
)
def test_the_schema_of_a_pattern_gets_what_the_property_has_made(value, keyword):
    schema = a_text_and(keyword, 50 if keyword == "maxLength" else {"type": "integer"})
    assert transformer(schema)({"a": value}) == {"a": json.dumps(value, separators=(",", ":"))}
