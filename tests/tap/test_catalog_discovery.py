"""The catalog that discovery gives: metadata by default, what streams say, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from balog.tap.catalog.choice import default_metadata, discover
from balog.tap.errors import TapError
from balog.tap.streams import Stream

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "name": {"type": ["null", "string"]},
        "address": {"type": "object", "properties": {"city": {"type": "string"}, "id": {"type": "integer"}}},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"tag": {"type": "string"}}}},
    },
}


def stream(**settings: Any) -> Stream:
    return Stream("contacts", **{"schema": SCHEMA, "key_properties": ["id"], "replication_key": "at", **settings})


def test_the_streams_metadata_says_what_user_interfaces_ask() -> None:
    assert default_metadata(stream(), SCHEMA)[()] == {
        "inclusion": "available",
        "selected-by-default": True,
        "table-key-properties": ["id"],
        "forced-replication-method": "INCREMENTAL",
        "valid-replication-keys": ["at"],
    }


def test_a_full_table_has_no_replication_keys() -> None:
    top = default_metadata(stream(replication_key=None, key_properties=[], select=False), SCHEMA)[()]
    assert top["forced-replication-method"] == "FULL_TABLE"
    assert "valid-replication-keys" not in top
    assert top["table-key-properties"] == []
    assert top["selected-by-default"] is False


def test_keys_are_automatic_and_every_other_property_is_available() -> None:
    metadata = default_metadata(stream(), SCHEMA)
    assert {crumb[1:]: said["inclusion"] for crumb, said in metadata.items() if crumb} == {
        ("id",): "automatic",
        ("at",): "automatic",
        ("name",): "available",
        ("address",): "available",
        ("address", "properties", "city"): "available",
        ("address", "properties", "id"): "available",
        ("tags",): "available",
    }


def test_a_substream_names_its_parent() -> None:
    accounts = Stream("accounts", schema=SCHEMA)
    assert default_metadata(stream(parent=accounts), SCHEMA)[()]["parent-tap-stream-id"] == "accounts"


def test_what_a_stream_says_goes_over_the_default_and_none_takes_it_away() -> None:
    metadata = default_metadata(
        stream(
            metadata={
                (): {"forced-replication-method": None, "x": 1},
                ("properties", "name"): {"inclusion": "unsupported"},
            }
        ),
        SCHEMA,
    )
    assert "forced-replication-method" not in metadata[()]
    assert metadata[()]["x"] == 1
    assert metadata["properties", "name"] == {"inclusion": "unsupported"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"key_properties": ["no"]}, "'no' must be in its schema"),
        ({"replication_key": "no"}, "'no' must be in its schema"),
        ({"metadata": {("properties", "no"): {"x": 1}}}, "not in its schema"),
        ({"metadata": {(): {"inclusion": "always"}}}, "expected available, automatic or unsupported"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(TapError, match=words):
        default_metadata(stream(**settings), SCHEMA)


def test_a_schema_that_cannot_be_had_leaves_the_others() -> None:
    def read(each: Stream) -> dict[str, Any]:
        if each.name == "broken":
            raise ConnectionError("refused")
        return SCHEMA

    catalog = discover([Stream("broken", schema={}), stream()], read)
    assert list(catalog.entries) == ["contacts"]
    assert str(catalog.failed["broken"]) == "broken: its schema could not be read: ConnectionError: refused"


def test_the_entry_says_how_the_stream_is_replicated() -> None:
    entry = discover([stream()], lambda each: SCHEMA).get("contacts")
    assert entry is not None
    assert (entry.key_properties, entry.replication_method, entry.replication_key) == (["id"], "INCREMENTAL", "at")
    assert entry.is_selected
