"""A user's catalog put together with what a tap has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from balog.tap.catalog import discover, parse_catalog
from balog.tap.catalog.choice import CatalogChoice, choose
from balog.tap.errors import TapConfigProblems
from balog.tap.streams import Stream

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}, "name": {}}}


def stream(name: str = "contacts", **settings: Any) -> Stream:
    return Stream(name, **{"schema": SCHEMA, "key_properties": ["id"], "replication_key": "at", **settings})


def given(*entries: dict[str, Any]) -> Any:
    return parse_catalog({"streams": list(entries)})


def selected(name: str = "contacts", **said: Any) -> dict[str, Any]:
    """Give a stream's entry, selected; what is said besides is metadata of the stream."""
    top = {"selected": True, **{key.replace("_", "-"): value for key, value in said.items()}}
    return {"tap_stream_id": name, "schema": SCHEMA, "metadata": [{"breadcrumb": [], "metadata": top}]}


def put_together(streams: Sequence[Stream], catalog: Any) -> CatalogChoice:
    return choose(streams, catalog, lambda each: SCHEMA, source="c.json")


def refused(streams: Sequence[Stream], catalog: Any) -> str:
    with pytest.raises(TapConfigProblems) as error:
        put_together(streams, catalog)
    return str(error.value)


def test_without_a_catalog_streams_run_that_are_selected_by_default() -> None:
    choice = put_together([stream(), stream("notes", select=False)], None)
    assert [entry.is_selected for entry in choice.catalog] == [True, False]
    assert "no stream is selected by default" in refused([stream(select=False)], None)


def test_what_discovery_wrote_selects_the_same() -> None:
    streams = [stream(), stream("notes", select=False)]
    written = parse_catalog(discover(streams, lambda each: SCHEMA).as_json())
    choice = put_together(streams, written)
    assert [entry.tap_stream_id for entry in choice.catalog] == ["contacts"]
    assert choice.warnings == []


def test_a_catalog_of_another_tap_is_refused() -> None:
    said = refused([stream()], given(selected("contact"), selected("orders")))
    assert said.splitlines() == [
        "c.json: the tap has no stream 'contact'; did you mean 'contacts'?",
        "c.json: the tap has no stream 'orders'; there are contacts",
    ]
    assert "it has no streams" in refused([stream()], given())


def test_unknown_streams_beside_known_ones_are_warned_of() -> None:
    choice = put_together([stream()], given(selected(), selected("orders")))
    assert list(choice.catalog.entries) == ["contacts"]
    assert choice.warnings == ["c.json: the tap has no stream 'orders'; there are contacts"]


def test_one_that_selects_nothing_is_refused() -> None:
    assert 'set "selected": true' in refused([stream()], given(selected(selected=False)))


def test_the_parent_of_a_selected_stream_is_there_and_not_selected() -> None:
    accounts = stream("accounts")
    notes = stream("notes", parent=accounts)
    choice = put_together([accounts, notes], given(selected("notes")))
    assert {entry.tap_stream_id: entry.is_selected for entry in choice.catalog} == {"accounts": False, "notes": True}


def test_the_users_schema_is_used_and_the_source_asked_only_where_there_is_none() -> None:
    asked = []

    def read(each: Stream) -> dict[str, Any]:
        asked.append(each.name)
        return SCHEMA

    own = {"type": "object", "properties": {"id": {"type": "string"}, "at": {}}}
    catalog = given(
        {**selected(), "schema": own}, {**selected("notes"), "schema": {}}, selected("orders", selected=False)
    )
    choice = choose([stream(), stream("notes"), stream("orders")], catalog, read)
    assert [entry.schema for entry in choice.catalog] == [own, SCHEMA]
    assert asked == ["notes"]


def test_a_schema_without_the_streams_keys_is_refused() -> None:
    said = refused([stream()], given({**selected(), "schema": {"type": "object", "properties": {"id": {}}}}))
    assert said == "c.json: $.contacts: the schema has no 'at', which is a key of the stream; run --discover again"


def test_the_taps_facts_stay_and_the_users_choices_count() -> None:
    chosen = selected(forced_replication_method="FULL_TABLE", table_key_properties=["name"], note="mine")
    chosen["metadata"] += [
        {"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "unsupported", "selected": False}},
        {"breadcrumb": ["properties", "name"], "metadata": {"selected": False}},
    ]
    (entry,) = put_together([stream()], given(chosen)).catalog
    assert entry.key_properties == ["id"]
    assert entry.metadata[()]["forced-replication-method"] == "INCREMENTAL"
    assert entry.metadata[()]["note"] == "mine"
    assert entry.metadata["properties", "id"]["inclusion"] == "automatic"
    assert entry.metadata["properties", "name"] == {"inclusion": "available", "selected": False}


def test_keys_are_the_users_where_the_stream_has_none() -> None:
    (entry,) = put_together([stream(key_properties=[])], given(selected(view_key_properties=["name"]))).catalog
    assert entry.key_properties == ["name"]


class TestReplication:
    FREE = {(): {"forced-replication-method": None, "valid-replication-keys": ["at", "id"]}}  # noqa: RUF012

    def how(self, declared: Stream, **said: Any) -> tuple[Any, Any, list[str]]:
        choice = put_together([declared], given(selected(**said)))
        (entry,) = choice.catalog
        return entry.replication_method, entry.replication_key, choice.warnings

    def test_one_that_is_forced_is_warned_of(self) -> None:
        method, key, (warning,) = self.how(stream(), replication_method="FULL_TABLE")
        assert (method, key) == ("INCREMENTAL", "at")
        assert warning == "stream contacts: it is replicated only by INCREMENTAL, not by FULL_TABLE"

    def test_where_none_is_forced_the_users_counts(self) -> None:
        assert self.how(stream(metadata=self.FREE), replication_method="FULL_TABLE") == ("FULL_TABLE", None, [])
        assert self.how(stream(metadata=self.FREE), replication_key="id") == ("INCREMENTAL", "id", [])
        table = stream(metadata=self.FREE, replication_key=None)
        assert self.how(table, replication_method="INCREMENTAL", replication_key="id") == ("INCREMENTAL", "id", [])

    def test_a_key_that_cannot_be_one_is_warned_of(self) -> None:
        method, key, (warning,) = self.how(stream(metadata=self.FREE), replication_key="name")
        assert (method, key) == ("INCREMENTAL", "at")
        assert "'name' cannot be its replication key; valid keys: at, id" in warning

    def test_without_a_key_a_full_table_is_what_is_left(self) -> None:
        table = stream(metadata={(): {"forced-replication-method": None}}, replication_key=None)
        method, key, (warning,) = self.how(table, replication_method="INCREMENTAL")
        assert (method, key) == ("FULL_TABLE", None)
        assert "no replication key" in warning

    def test_a_log_is_read_only_where_there_is_one(self) -> None:
        method, _, (warning,) = self.how(stream(metadata=self.FREE), replication_method="LOG_BASED")
        assert method == "INCREMENTAL"
        assert "no log to read" in warning
