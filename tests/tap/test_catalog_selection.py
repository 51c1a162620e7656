"""What of a stream is selected, at the top and inside of objects and arrays."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from balog.tap.catalog import Breadcrumb, CatalogEntry, PropertySelection

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "address": {"type": "object", "required": ["city"], "properties": {"city": {}, "zip": {}}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {}, "note": {}}}},
    },
}


def entry(metadata: dict[Breadcrumb, dict[str, Any]], **said: Any) -> CatalogEntry:
    return CatalogEntry(
        **{
            "tap_stream_id": "s",
            "stream": "s",
            "schema": SCHEMA,
            "key_properties": ["id"],
            "metadata": metadata,
            **said,
        }
    )


def test_where_nothing_is_said_all_is_selected_and_the_schema_is_the_same() -> None:
    selection = PropertySelection(entry({(): {"selected": True}}))
    assert selection.schema is SCHEMA
    assert selection.names == ["id", "name", "address", "lines"]


def test_the_order_of_what_counts() -> None:
    def is_selected(**said: Any) -> bool:
        return "name" in PropertySelection(
            entry({("properties", "name"): {key.replace("_", "-"): v for key, v in said.items()}})
        )

    assert is_selected(selected=True)
    assert not is_selected(selected=False)
    assert not is_selected(selected_by_default=False)
    assert is_selected(selected_by_default=False, selected=True)
    assert not is_selected(selected_by_default=True, selected=False)
    assert is_selected(inclusion="automatic", selected=False)
    assert not is_selected(inclusion="unsupported", selected=True)
    assert is_selected(selected=None, selected_by_default=True)


def test_keys_are_selected_whatever_is_said() -> None:
    metadata = {("properties", name): {"inclusion": "unsupported", "selected": False} for name in ("id", "name")}
    assert PropertySelection(entry(metadata, replication_key="name")).names == ["id", "name", "address", "lines"]


def test_inside_of_objects_and_of_the_items_of_arrays() -> None:
    selection = PropertySelection(
        entry(
            {
                ("properties", "name"): {"selected": False},
                ("properties", "address", "properties", "city"): {"selected": False},
                ("properties", "lines", "items", "properties", "note"): {"selected": False},
            }
        )
    )
    assert selection.schema == {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "integer"},
            "address": {"type": "object", "properties": {"zip": {}}},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {}}}},
        },
    }
    assert "name" in SCHEMA["properties"]


def test_a_key_that_is_named_inside_of_an_object_is_no_key() -> None:
    schema = {"properties": {"id": {}, "inner": {"properties": {"id": {}}}}}
    selection = PropertySelection(
        entry({("properties", "inner", "properties", "id"): {"selected": False}}, schema=schema)
    )
    assert selection.schema["properties"]["inner"] == {"properties": {}}


def test_a_stream_is_selected_by_its_own_metadata() -> None:
    assert entry({(): {"selected": True}}).is_selected
    assert not entry({}).is_selected
    assert entry({(): {"selected-by-default": True}}).is_selected
    assert not entry({(): {"selected-by-default": True, "selected": False}}).is_selected
    assert entry({(): {"inclusion": "automatic", "selected": False}}).is_selected
    assert not entry({(): {"inclusion": "unsupported", "selected": True}}).is_selected


PARTS = st.sampled_from(["properties", "items", "id", "name", "address", "city", "lines", "", "sku"])
SAID = st.dictionaries(
    st.sampled_from(["selected", "selected-by-default", "inclusion", "replication-key"]),
    st.none() | st.booleans() | st.sampled_from(["automatic", "available", "unsupported", "true"]) | st.integers(),
)


@given(st.dictionaries(st.lists(PARTS, max_size=5).map(tuple), SAID, max_size=8), st.sampled_from([None, "name"]))
def test_no_metadata_takes_the_keys_away_or_breaks_the_schema(
    metadata: dict[Breadcrumb, dict[str, Any]], key: str | None
) -> None:
    selection = PropertySelection(entry(metadata, replication_key=key))
    assert "id" in selection
    assert key is None or key in selection
    assert set(selection.names) <= set(SCHEMA["properties"])
    assert set(selection.schema["required"]) <= set(selection.names)
