"""Junk for schemas: whatever a file holds, it gives a schema or one SchemaError, of one line."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.tap.errors import SchemaError
from balog.tap.schema import check, schema_of

_KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "allOf",
        "anyOf",
        "$ref",
        "$id",
        "id",
        "$defs",
        "enum",
        "required",
        "not",
        "$anchor",
    ]
)
_LEAVES = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        1.5,
        "",
        "#",
        "#/",
        "#/$defs/a",
        "#/properties/a",
        "#a",
        "object",
        "string",
        "x.json",
        "a:b",
    ]
)
_JUNK = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYWORDS | st.just("a"), inner, max_size=4),
    max_leaves=20,
)


def _given_or_refused(give: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    try:
        return give()
    except SchemaError as error:
        said = str(error)
    assert said
    assert "\n" not in said
    return None


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(_KEYWORDS, _JUNK, max_size=6))
def test_json_that_is_no_schema(document: dict[str, Any]) -> None:
    found = _given_or_refused(lambda: schema_of(document, lambda: None, "things"))
    if found is not None:
        check(found)
