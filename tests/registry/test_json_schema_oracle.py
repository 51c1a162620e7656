"""The validator against jsonschema, over schemas and payloads by chance: they agree on what is valid."""

import json
from typing import Any

import jsonschema
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from balog.registry import InvalidSchemaError
from balog.registry.json_schema import JsonValidator

NAMES = st.sampled_from(["a", "b", "c", "a b"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-20, 20),
    st.integers(-(2**70), 2**70),
    st.floats(-1e6, 1e6).map(lambda number: round(number, 3)),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SMALL = st.integers(0, 4)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    members = st.dictionaries(NAMES, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | st.lists(KINDS, min_size=1, max_size=3, unique=True),
            "enum": st.lists(SCALARS, min_size=1, max_size=3),
            "const": VALUES,
            "minimum": st.integers(-5, 5),
            "exclusiveMaximum": st.integers(-5, 5),
            "multipleOf": st.integers(1, 5),
            "minLength": SMALL,
            "maxLength": SMALL,
            "pattern": st.sampled_from(["^a", "[0-9]+$", "x|y"]),
            "minItems": SMALL,
            "maxItems": SMALL,
            "uniqueItems": st.booleans(),
            "prefixItems": some,
            "items": inner,
            "contains": inner,
            "minContains": SMALL,
            "unevaluatedItems": inner,
            "properties": members,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "propertyNames": inner,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
            "minProperties": SMALL,
            "maxProperties": SMALL,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "$ref": st.sampled_from(["#/$defs/d", "#/$defs/d", "#"]),
        },
    )


SCHEMAS = st.recursive(st.booleans(), keywords, max_leaves=6)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(schema=keywords(SCHEMAS), definition=keywords(st.booleans()), value=VALUES)
def test_both_agree_on_what_is_valid(schema: dict[str, Any], definition: dict[str, Any], value: Any) -> None:
    schema = {**schema, "$defs": {"d": definition}}
    payload = json.dumps(value).encode()

    try:
        faults = JsonValidator(schema).check(payload)
    except InvalidSchemaError:  # it asks itself of the same value
        assume(False)

    expected = jsonschema.Draft202012Validator(schema).is_valid(json.loads(payload))
    assume(not (_has_large(value) and "multipleOf" in json.dumps(schema)))  # floats there, exact here
    assert (not faults) == expected
    for fault in faults:
        assert fault.path.startswith("$")
        assert fault.path.isprintable()
        assert fault.reason.isprintable()


def _has_large(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return any(map(_has_large, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**53)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
def test_any_bytes_are_a_schema_or_one_line(source: bytes) -> None:
    try:
        said = repr(JsonValidator(source, "x.json").document)
    except InvalidSchemaError as error:
        said = str(error)
    assert said.startswith(("x.json: ", "{"))
    assert "\n" not in said
