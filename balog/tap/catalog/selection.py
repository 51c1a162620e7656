"""What of a stream was selected, by the metadata of its properties (Singer's docs/SYNC_MODE.md, "Metadata")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.tap.catalog.entry import Breadcrumb, Entry
from balog.tap.catalog.nodes import properties_of

__all__ = ["Selection", "selected_properties"]

_DEEPEST = 100


class Selection:
    """An entry's selection, worked out once.

    A property is selected when its metadata says so: ``inclusion`` ``automatic`` always is and ``unsupported`` never;
    else ``selected`` counts, then ``selected-by-default``; where nothing is said it is. The keys and the replication
    key always are. Inside of a property that is not selected nothing is.

    Attributes:
        names: of the selected properties at the top, in the schema's order.
        schema: the stream's, with what is selected alone; the same object where that is all.
    """

    def __init__(self, entry: Entry) -> None:
        self._metadata = entry.metadata
        self._kept = {*entry.key_properties, *([entry.replication_key] if entry.replication_key else [])}
        self.schema: dict[str, Any] = self._part(entry.schema, ())
        self.names = list(properties_of(self.schema))

    def __contains__(self, name: object) -> bool:
        return name in properties_of(self.schema)

    def is_selected(self, crumb: Breadcrumb) -> bool:
        """Tell of a property by its breadcrumb; what it is inside of is taken to be selected."""
        if len(crumb) == 2 and crumb[0] == "properties" and crumb[1] in self._kept:
            return True
        said = self._metadata.get(crumb)
        if not said:
            return True
        inclusion = said.get("inclusion")
        if inclusion in ("automatic", "unsupported"):
            return bool(inclusion == "automatic")
        chosen = said.get("selected")
        return said.get("selected-by-default") is not False if chosen is None else bool(chosen)

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


def selected_properties(entry: Entry) -> list[str]:
    """Give the names of the properties at the top that are selected, so that a source can be asked for those alone."""
    return Selection(entry).names
