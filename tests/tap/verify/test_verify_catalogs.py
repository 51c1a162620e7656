"""Catalogs of taps of any make: found in what was written, and selected from."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap.verify.catalogs import (
    as_properties,
    entries,
    is_selected,
    key_properties_of,
    metadata_of,
    name_of,
    read_discovery,
    replication_key_of,
    select,
    spare_property,
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["streams", "tap_stream_id", "schema", "metadata", "breadcrumb", "properties", "selected"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def entry(name: str = "orders", **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}
    return {"tap_stream_id": name, "stream": name, "schema": schema, "key_properties": ["id"], "metadata": [], **more}


@pytest.mark.parametrize(
    ("written", "noise"),
    [
        ('{"streams": []}', (0, 0)),
        ('{\n "streams": [\n ]\n}\n', (0, 0)),
        ('starting\n{not this}\n{"streams": []}', (2, 0)),
        ('{"type": "LOG"}\n{"streams": []}\ndone\n\n', (1, 1)),
    ],
)
def test_a_catalog_is_found_between_other_lines(written: str, noise: tuple[int, int]) -> None:
    found = read_discovery(written.encode())

    assert found.document == {"streams": []}
    assert found.noise == noise


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        (b"", "nothing was written to stdout"),
        (b"\xff", "stdout is not UTF-8"),
        (b"none", "stdout holds no catalog"),
        (b'{"a": 1}', "its catalog has no list of streams"),
        (b'{"type": "RECORD"}\n{"type": "STATE"}\n', "stdout holds no catalog"),
    ],
)
def test_what_is_no_catalog_is_told(written: bytes, fault: str) -> None:
    assert read_discovery(written).document is None
    assert read_discovery(written).fault == fault


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ \nabtypesrm1', max_size=60).map(str.encode))
def test_whatever_was_written_is_read(written: bytes) -> None:
    read_discovery(written)


@given(anything)
def test_whatever_a_catalog_holds_it_can_be_selected_from(node: Any) -> None:
    document = {"streams": [node, entry()]}

    for made in (select(document), select(document, ()), as_properties(select(document))):
        json.dumps(made)
        for each in entries(made):
            name_of(each), is_selected(each), key_properties_of(each), replication_key_of(each), spare_property(each)


def test_selecting_says_so_in_metadata_and_leaves_the_given_document_as_it_is() -> None:
    document = {"streams": [entry(), entry("shops")]}
    before = json.dumps(document)

    made = select(document, ["shops"], {"shops": "note"})

    assert json.dumps(document) == before
    assert [is_selected(each) for each in entries(made)] == [False, True]
    said = metadata_of(made["streams"][1])
    assert said[("properties", "id")]["selected"] is True
    assert said[("properties", "note")]["selected"] is False


def test_the_older_form_has_selection_in_its_schemas() -> None:
    made = as_properties(select({"streams": [entry(), entry("shops")]}, ["shops"], {"shops": "note"}))

    orders, shops = (each["schema"] for each in made["streams"])
    assert orders["selected"] is False
    assert shops["selected"] is True
    assert shops["properties"]["id"]["selected"] is True
    assert shops["properties"]["note"]["selected"] is False


def test_a_stream_whose_method_is_to_be_chosen_is_incremental_where_it_can() -> None:
    keyed = entry(metadata=[{"breadcrumb": [], "metadata": {"valid-replication-keys": ["note", "id"]}}])

    first, second = entries(select({"streams": [keyed, entry("shops")]}))

    assert metadata_of(first)[()]["replication-method"] == "INCREMENTAL"
    assert replication_key_of(first) == "note"
    assert metadata_of(second)[()]["replication-method"] == "FULL_TABLE"
    assert replication_key_of(second) == ""


def test_a_method_that_the_tap_says_stays() -> None:
    forced = entry(metadata=[{"breadcrumb": [], "metadata": {"forced-replication-method": "FULL_TABLE"}}])

    made = next(entries(select({"streams": [forced]})))

    assert "replication-method" not in metadata_of(made)[()]


def test_what_may_be_left_out_is_no_key_and_not_automatic() -> None:
    assert spare_property(entry()) == "note"
    automatic = [{"breadcrumb": ["properties", "note"], "metadata": {"inclusion": "automatic"}}]
    assert spare_property(entry(metadata=automatic)) == ""


def test_a_second_selection_replaces_the_first_in_the_schema_too() -> None:
    """Given a tap without metadata, which reads ``selected`` in the schema, then its catalog has one selection."""
    document = {"streams": [{"tap_stream_id": "s", "stream": "s", "schema": {"properties": {"a": {}}}}]}

    [entry] = select(select(document), ())["streams"]

    assert entry["schema"] == {"properties": {"a": {"selected": False}}, "selected": False}
    assert not is_selected(entry)
