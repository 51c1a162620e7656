"""Junk for schemas: whatever a file holds, it gives a schema or one SchemaError, of one line."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from balog.tap.errors import SchemaError
from balog.tap.schema import check, schema_of

_KEYWORDS = st.sampled_from(["$anchor", "$defs", "$id", "$ref", "contains", *Draft4Validator.META_SCHEMA["properties"]])
_TEXTS = ["", "#", "#/", "#/$defs/a", "#/properties/a", "#a", "object", "string", "x.json", "a:b"]
_LEAVES = st.none() | st.booleans() | st.sampled_from([0, -1, 1.5]) | st.sampled_from(_TEXTS)
_JUNK = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYWORDS | st.just("a"), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(_KEYWORDS, _JUNK, max_size=6))
def test_json_that_is_no_schema(document: dict[str, Any]) -> None:
    try:
        found = schema_of(document, lambda: None, "things")
    except SchemaError as error:
        said = str(error)
    else:
        check(found)
        return
    assert said
    assert "\n" not in said
