"""Drafts of schemas: every sample is valid by them, and they say no more than the samples bear out."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.common.errors import EventError
from balog.registry.inference import Inference
from balog.registry.json_schema import JsonValidator


def infer(*payloads: dict[str, Any]) -> Any:
    inference = Inference()
    for payload in payloads:
        inference.add(json.dumps(payload).encode())
    return inference.schema("order")


def test_a_draft_is_the_schema_of_its_type() -> None:
    draft = infer({"cls_type": "order", "version": "1.0.0", "id": 1})

    assert draft["properties"]["cls_type"] == {"const": "order"}
    assert draft["properties"]["version"] == {"type": "string"}
    assert draft["required"] == ["cls_type", "id"]
    assert "additionalProperties" not in draft


def test_required_is_what_was_always_there() -> None:
    assert infer({"id": 1, "note": "x"}, {"id": 2})["required"] == ["cls_type", "id"]


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([1, 2], {"type": "integer"}),
        ([1, 2.5], {"type": "number"}),
        ([1.0], {"type": "number"}),
        ([True], {"type": "boolean"}),
        ([None, "x"], {"type": ["null", "string"]}),
        ([1, "x"], {"type": ["integer", "string"]}),
        ([None], {"type": "null"}),
        ([[1], []], {"type": "array", "items": {"type": "integer"}}),
        ([[]], {"type": "array"}),
        ([{}], {"type": "object"}),
        (["2026-11-20T08:00:00Z", "2026-11-20T08:00:00.5+01:00"], {"type": "string", "format": "date-time"}),
        (["2026-11-20"], {"type": "string", "format": "date"}),
        (["2026-11-20", "soon"], {"type": "string"}),
        (["f81d4fae-7dec-11d0-a765-00a0c91e6bf6"], {"type": "string", "format": "uuid"}),
        (["a@example.com"], {"type": "string", "format": "email"}),
        (["https://example.com/a"], {"type": "string", "format": "uri"}),
        (["state:done"], {"type": "string"}),
        (["EUR", "USD"] * 10, {"type": "string", "enum": ["EUR", "USD"]}),
        (["EUR", "USD"] * 9, {"type": "string"}),
        ([f"id-{n}" for n in range(10)] * 2, {"type": "string"}),
    ],
    ids=str,
)
def test_what_a_member_is(values: list[Any], schema: Any) -> None:
    assert infer(*({"a": value} for value in values))["properties"]["a"] == schema


def test_objects_in_arrays_are_one_kind_of_object() -> None:
    draft = infer({"lines": [{"sku": "a", "n": 1}, {"sku": "b"}]}, {"lines": []})

    assert draft["properties"]["lines"]["items"] == {
        "type": "object",
        "required": ["sku"],
        "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}},
    }


@pytest.mark.parametrize("samples", [[{f"user-{n}": n} for n in range(100)], [{str(n): n for n in range(5000)}]])
def test_an_object_whose_members_are_never_the_same_or_thousands_is_a_map(samples: list[Any]) -> None:
    assert infer(*({"by_user": sample} for sample in samples))["properties"]["by_user"] == {"type": "object"}


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(EventError, match="expected a JSON object"):
        Inference().add(b"[1]")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5) | st.dates().map(str) | st.uuids().map(str)
    | st.sampled_from(["https://example.com", "1.2.3.4", "::1", "a@b.org", "2026-11-20T08:00:00Z"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(st.dictionaries(st.text("abc", min_size=1, max_size=2), VALUES, max_size=4), min_size=1, max_size=6))
def test_every_sample_is_valid_by_its_draft(payloads: list[dict[str, Any]]) -> None:
    validator = JsonValidator(infer(*payloads))

    for payload in payloads:
        assert validator.check(json.dumps({**payload, "cls_type": "order"}).encode()) == []
