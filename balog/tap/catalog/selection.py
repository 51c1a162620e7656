"""The selected properties of a stream, from their metadata (Singer's docs/SYNC_MODE.md, "Metadata")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.tap.catalog.entry import Breadcrumb, CatalogEntry, keys_of, properties_of

_DEEPEST = 100


class PropertySelection:
    """An entry's selection, computed once.

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
        made: dict[str, Any] = {}
        properties = properties_of(schema)
        kept = {
            name: self._part(inner, crumb)
            for name, inner in properties.items()
            if self.is_selected(crumb := (*path, "properties", name))
        }
        if len(kept) < len(properties) or any(part is not properties[name] for name, part in kept.items()):
            made["properties"] = kept
            if isinstance(required := schema.get("required"), list):
                made["required"] = [name for name in required if name in kept or name not in properties]
        items = schema.get("items")
        if isinstance(items, Mapping) and (part := self._part(items, (*path, "items"))) is not items:
            made["items"] = part
        return {**schema, **made} if made else schema


def selected_properties(entry: CatalogEntry) -> list[str]:
    """Return the names of the selected top-level properties, to query a source for only those."""
    return PropertySelection(entry).names
