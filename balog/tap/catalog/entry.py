"""A catalog, its entries, the paths of their schemas, and which properties are selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from balog.tap.json_schema.keywords import without

Method = Literal["FULL_TABLE", "INCREMENTAL", "LOG_BASED"]
Breadcrumb = tuple[str, ...]
"""A path in a schema: ``()`` is the stream, ``("properties", "id")`` a property."""
Metadata = dict[Breadcrumb, dict[str, Any]]


def keys_of(stream: Any) -> list[str]:
    """Return the key properties and the replication key, which are in every record."""
    return [*stream.key_properties, *([stream.replication_key] if stream.replication_key else [])]


class CatalogEntry(Struct, kw_only=True):
    """One stream of a catalog.

    Attributes:
        tap_stream_id: unique in the tap, and the name in state.
        stream: the name in messages; usually the same, but need not be unique.
        schema: the JSON Schema of its records, with references resolved.
        metadata: the tap's (``inclusion``, ``table-key-properties`` …) and the user's, by breadcrumb.
    """

    tap_stream_id: str
    stream: str
    schema: dict[str, Any]
    key_properties: list[str] = field(default_factory=list)
    replication_method: Method | None = None
    replication_key: str | None = None
    metadata: Metadata = field(default_factory=dict)

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
            streams.append(item)
        return {"streams": streams}


_DEEPEST = 100


def properties_of(schema: Any) -> dict[str, Any]:
    """Return the properties of an object's schema; {} for another schema."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return dict(properties) if isinstance(properties, Mapping) else {}


def paths_of(schema: Any) -> Iterator[Breadcrumb]:
    """Yield the breadcrumbs of a schema and of the properties in it, outer ones first."""
    waiting: list[tuple[Breadcrumb, Any]] = [((), schema)]
    while waiting:
        path, part = waiting.pop(0)
        yield path
        if len(path) < 2 * _DEEPEST:
            waiting += [((*path, "properties", name), inner) for name, inner in properties_of(part).items()]


class PropertySelection:
    """An entry's selection from its metadata, computed once (Singer's docs/SYNC_MODE.md, "Metadata").

    A property with ``inclusion`` ``automatic`` is always selected, one with ``unsupported`` never. For others
    ``selected`` decides, then ``selected-by-default``; without both they are selected. The keys and the replication
    key always are. A property inside one that is not selected is not selected.

    Attributes:
        names: the selected top-level properties, in the schema's order.
        schema: the stream's schema with only the selected properties; the same object if all are.
    """

    def __init__(self, entry: CatalogEntry) -> None:
        self._metadata = entry.metadata
        self._keys = set(keys_of(entry))
        self.schema: dict[str, Any] = self._part(entry.schema, ())
        self.names = list(properties_of(self.schema))

    def __contains__(self, name: object) -> bool:
        return name in properties_of(self.schema)

    def is_selected(self, crumb: Breadcrumb) -> bool:
        """Return whether the property at a breadcrumb is selected, if those around it are."""
        if len(crumb) == 2 and crumb[0] == "properties" and crumb[1] in self._keys:
            return True
        metadata = self._metadata.get(crumb)
        if not metadata:
            return True
        inclusion = metadata.get("inclusion")
        if inclusion in ("automatic", "unsupported"):
            return bool(inclusion == "automatic")
        chosen = metadata.get("selected")
        return metadata.get("selected-by-default") is not False if chosen is None else bool(chosen)

    def _part(self, schema: Any, path: Breadcrumb) -> Any:
        if not isinstance(schema, Mapping) or len(path) > 2 * _DEEPEST:
            return schema
        changes: dict[str, Any] = {}
        properties = properties_of(schema)
        kept = {
            name: self._part(inner, crumb)
            for name, inner in properties.items()
            if self.is_selected(crumb := (*path, "properties", name))
        }
        if len(kept) < len(properties) or any(part is not properties[name] for name, part in kept.items()):
            schema = without(schema, lambda name: not self.is_selected((*path, "properties", name)))
            changes["properties"] = kept
        items = schema.get("items")
        if isinstance(items, Mapping) and (part := self._part(items, (*path, "items"))) is not items:
            changes["items"] = part
        return {**schema, **changes} if changes else schema
