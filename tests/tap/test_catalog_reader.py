"""Catalogs from files: every form that they had, what is wrong with one, and that nothing is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.tap.catalog import Catalog, CatalogEntry, PropertySelection, parse_catalog, read_catalog
from balog.tap.errors import TapConfigProblems


def problems(document: Any) -> list[str]:
    with pytest.raises(TapConfigProblems) as error:
        parse_catalog(document, "catalog.json")
    return str(error.value).splitlines()


def one(**said: Any) -> CatalogEntry:
    (entry,) = parse_catalog({"streams": [said]})
    return entry


def test_singers_form() -> None:
    entry = one(
        tap_stream_id="db-contacts",
        stream="contacts",
        key_properties=["id"],
        schema={"type": "object", "properties": {"id": {"type": "integer"}}},
        metadata=[
            {"breadcrumb": [], "metadata": {"selected": True}},
            {"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "automatic"}},
        ],
        row_count=5,
    )
    assert (entry.tap_stream_id, entry.stream, entry.key_properties) == ("db-contacts", "contacts", ["id"])
    assert entry.metadata == {(): {"selected": True}, ("properties", "id"): {"inclusion": "automatic"}}
    assert entry.is_selected


def test_forms_of_others() -> None:
    entry = one(stream="a", selected=True, replication_key="at", replication_method="INCREMENTAL", schema={})
    assert (entry.tap_stream_id, entry.replication_key, entry.replication_method) == ("a", "at", "INCREMENTAL")
    assert entry.is_selected
    assert one(
        stream="a", metadata=[{"breadcrumb": [], "metadata": {"table-key-properties": ["x"]}}]
    ).key_properties == ["x"]
    assert one(
        stream="a", metadata=[{"breadcrumb": [], "metadata": {"view-key-properties": ["y"]}}]
    ).key_properties == ["y"]
    assert not one(stream="a", schema=None, key_properties=None, metadata=None, replication_method="").is_selected


def test_each_problem_has_its_place() -> None:
    assert problems([]) == ["catalog.json: $: expected `object`, got `array`"]
    assert problems({"streams": {}}) == ["catalog.json: $.streams: expected `array`, got `object`"]
    lines = problems(
        {
            "streams": [
                3,
                {"schema": {}},
                {"stream": "a", "schema": []},
                {"stream": "a", "metadata": {}},
                {"stream": "b", "metadata": [{"breadcrumb": "x", "metadata": {}}, {"breadcrumb": [], "metadata": 1}]},
                {"stream": "c", "replication_method": "SOMETIMES", "key_properties": "id"},
                {"stream": "d", "metadata": [{"breadcrumb": [], "metadata": {"replication-method": "x"}}]},
            ]
        }
    )
    assert [line.split(": ")[1] for line in lines] == [
        "$.streams[0]",
        "$.streams[1]",
        "$.streams[2].schema",
        "$.streams[3].metadata",
        "$.streams[4].metadata[0].breadcrumb",
        "$.streams[4].metadata[1].metadata",
        "$.streams[5].replication_method",
        "$.streams[5].key_properties",
        "$.streams[3]",
        "$.streams[6].metadata[0].metadata.replication-method",
    ]
    assert "is there twice" in lines[-2]


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TapConfigProblems, match="cannot be read"):
        read_catalog(tmp_path / "none.json")
    (tmp_path / "c.json").write_text('{"streams": [')
    with pytest.raises(TapConfigProblems, match="not JSON"):
        read_catalog(tmp_path / "c.json")


def test_a_catalog_may_be_larger_than_a_config(tmp_path: Path) -> None:
    streams = [{"stream": f"s{number}", "schema": {"description": "x" * 1000}} for number in range(5000)]
    (tmp_path / "c.json").write_text(json.dumps({"streams": streams}))
    assert len(read_catalog(tmp_path / "c.json").entries) == 5000


NAMES = st.text("abc", min_size=1, max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=4,
)
SCHEMAS = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "object"])}),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)}, optional={"items": inner}
    ),
    max_leaves=5,
)
CRUMBS = st.lists(NAMES, max_size=2).map(lambda names: tuple(part for name in names for part in ("properties", name)))
ENTRIES = st.builds(
    CatalogEntry,
    tap_stream_id=NAMES,
    stream=NAMES,
    schema=SCHEMAS,
    key_properties=st.lists(NAMES, min_size=1, max_size=2, unique=True),
    replication_method=st.sampled_from([None, "FULL_TABLE", "INCREMENTAL", "LOG_BASED"]),
    replication_key=st.none() | NAMES,
    metadata=st.dictionaries(
        CRUMBS,
        st.dictionaries(st.sampled_from(["selected", "inclusion", "x.y"]), JSON, min_size=1, max_size=2),
        max_size=3,
    ),
)
CATALOGS = st.lists(ENTRIES, max_size=4, unique_by=lambda entry: entry.tap_stream_id).map(
    lambda entries: Catalog({entry.tap_stream_id: entry for entry in entries})
)


@given(CATALOGS)
def test_what_is_written_is_read_back(catalog: Catalog) -> None:
    document = msgspec.json.decode(msgspec.json.encode(catalog.as_json()))
    assert parse_catalog(document).entries == catalog.entries


@given(
    st.recursive(
        JSON,
        lambda inner: st.dictionaries(
            st.sampled_from(
                [
                    *("streams", "stream", "tap_stream_id", "schema", "properties", "items", "metadata", "breadcrumb"),
                    *("selected", "inclusion", "key_properties", "replication_key", "replication_method"),
                ]
            ),
            inner | st.lists(inner, max_size=2),
            max_size=5,
        ),
        max_leaves=20,
    )
)
def test_any_json_is_a_catalog_or_refused(document: Any) -> None:
    for tried in (document, {"streams": [document]}, {"streams": document}):
        try:
            catalog = parse_catalog(tried)
        except TapConfigProblems:
            continue
        for entry in catalog:
            PropertySelection(entry)
