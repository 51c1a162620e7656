"""A catalog and its entries as they are in memory; reading and writing them as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct, field

__all__ = ["Breadcrumb", "Catalog", "Entry", "Metadata", "Method"]

Method = Literal["FULL_TABLE", "INCREMENTAL", "LOG_BASED"]
Breadcrumb = tuple[str, ...]
"""Where in a schema: ``()`` is the stream, ``("properties", "id")`` a property."""
Metadata = dict[Breadcrumb, dict[str, Any]]


class Entry(Struct, kw_only=True):
    """One stream of a catalog.

    Attributes:
        tap_stream_id: unique in the tap, and the name in state.
        stream: the name in messages; the same unless a source has one name twice.
        schema: JSON Schema of the records, its references resolved.
        metadata: by breadcrumb; what the tap says (``inclusion``, ``table-key-properties`` …) and what was chosen.
        other: what else a document says of the stream (``is_view``, ``row_count`` …), kept as it is.
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
        said = self.metadata.get((), {})
        inclusion = said.get("inclusion")
        if inclusion in ("automatic", "unsupported"):
            return bool(inclusion == "automatic")
        return bool(said.get("selected", said.get("selected-by-default", False)))


class Catalog(Struct):
    """The streams in the order in which the tap declares them."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def get(self, tap_stream_id: str) -> Entry | None:
        """Give a stream's entry; None when the catalog does not name it."""
        return self.entries.get(tap_stream_id)

    def as_json(self) -> dict[str, Any]:
        """Give the document that ``--discover`` writes."""
        streams = []
        for entry in self:
            metadata = [{"breadcrumb": list(crumb), "metadata": said} for crumb, said in entry.metadata.items()]
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
