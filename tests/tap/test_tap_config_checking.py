"""The check of configs agrees with another JSON Schema validator, and shows no value."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.tap.config.spec import compile_schema, mismatches

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 3, "pattern": "^h"},
        "pages": {"type": ["integer", "null"], "minimum": 1, "multipleOf": 2},
        "auth": {"oneOf": [{"const": "none"}, {"type": "object", "required": ["id"]}]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
        "since": {"type": "string", "format": "date"},
    },
    "required": ["url"],
    "dependentRequired": {"pages": ["tags"]},
    "additionalProperties": {"$ref": "#/$defs/more"},
    "$defs": {"more": {"type": "string", "maxLength": 5}},
}
VALIDATOR = compile_schema(SCHEMA)
LEAVES = st.none() | st.integers(-3, 6) | st.sampled_from(["h", "http", "none", "a", "b", "long-text", "2026-02-30"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "a"]), inner)
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "x"]), VALUES), st.booleans())
def test_a_config_passes_where_it_passes_another_validator(config: dict[str, Any], is_complete: bool) -> None:
    config |= {"url": "http"} if is_complete else {}
    expected = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).is_valid(config)
    assert (not list(mismatches(VALIDATOR, config))) == expected


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([*SCHEMA["properties"], "x"]), st.text("QWERTZ", min_size=12, max_size=20))
def test_no_value_is_in_a_message(name: str, secret: str) -> None:
    for config in ({name: secret}, {name: [secret]}, {name: {"id": secret}}):
        assert not any(secret in mismatch.reason for mismatch in mismatches(VALIDATOR, config))
