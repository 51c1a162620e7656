"""A catalog and its entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol

from msgspec import Struct, field

Method = Literal["FULL_TABLE", "INCREMENTAL", "LOG_BASED"]
Breadcrumb = tuple[str, ...]
"""A path in a schema: ``()`` is the stream, ``("properties", "id")`` a property."""
Metadata = dict[Breadcrumb, dict[str, Any]]


class Keyed(Protocol):
    """A stream or a catalog entry."""

    key_properties: list[str]
    replication_key: str | None


def keys_of(stream: Keyed) -> list[str]:
    """Return the key properties and the replication key, which are in every record."""
    return [*stream.key_properties, *([stream.replication_key] if stream.replication_key else [])]


class CatalogEntry(Struct, kw_only=True):
    """One stream of a catalog.

    Attributes:
        tap_stream_id: unique in the tap, and the name in state.
        stream: the name in messages; usually the same, but need not be unique.
        schema: the JSON Schema of its records, with references resolved.
        metadata: the tap's (``inclusion``, ``table-key-properties`` …) and the user's, by breadcrumb.
        other: further keys of the document (``is_view``, ``row_count`` …), which are kept.
    """

    tap_stream_id: str
    stream: str
    schema: dict[str, Any]
    key_properties: list[str] = field(default_factory=list)
    replication_method: Method | None = None
    replication_key: str | None = None
    metadata: Metadata = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)

    @property
    def is_selected(self) -> bool:
        """Whether the stream is to be synced."""
        metadata = self.metadata.get((), {})
        inclusion = metadata.get("inclusion")
        if inclusion in ("automatic", "unsupported"):
            return bool(inclusion == "automatic")
        return bool(metadata.get("selected", metadata.get("selected-by-default", False)))


class Catalog(Struct):
    """The streams, in the order of their declarations."""

    entries: dict[str, CatalogEntry] = field(default_factory=dict)

    def __iter__(self) -> Iterator[CatalogEntry]:
        return iter(self.entries.values())

    def get(self, tap_stream_id: str) -> CatalogEntry | None:
        """Return a stream's entry; None if it has none."""
        return self.entries.get(tap_stream_id)

    def as_json(self) -> dict[str, Any]:
        """Return the document that ``--discover`` writes."""
        streams = []
        for entry in self:
            metadata = [{"breadcrumb": list(crumb), "metadata": values} for crumb, values in entry.metadata.items()]
            item: dict[str, Any] = {
                "tap_stream_id": entry.tap_stream_id,
                "stream": entry.stream,
                "key_properties": entry.key_properties,
                "schema": entry.schema,
                "metadata": metadata,
            }
            if entry.replication_method:
                item["replication_method"] = entry.replication_method
            if entry.replication_key:
                item["replication_key"] = entry.replication_key
            streams.append(entry.other | item)
        return {"streams": streams}
