"""The nodes of a schema that can have metadata: the stream itself, its properties, and those inside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from balog.tap.catalog.entry import Breadcrumb, Metadata

_DEEPEST = 100


class SchemaNode:
    """One node of a schema, and its metadata.

    Attributes:
        path: its breadcrumb: ``()`` for the stream, ``("properties", "address", "properties", "city")``.
        schema: its part of the schema.
        metadata: its metadata so far.
    """

    __slots__ = ("_stream", "metadata", "path", "schema")

    def __init__(self, stream: str, path: Breadcrumb, schema: Any, metadata: dict[str, Any]) -> None:
        self._stream = stream
        self.path = path
        self.schema = schema
        self.metadata = metadata

    @property
    def name(self) -> str:
        """The name of the property, or of the stream."""
        return self.path[-1] if self.path else self._stream

    @property
    def level(self) -> int:
        """The depth: 0 for the stream, 1 for its properties, 2 for those inside them."""
        return self.path.count("properties")

    def set(self, key: str, value: Any) -> None:
        """Set a value of its metadata; None removes it."""
        if value is None:
            self.metadata.pop(key, None)
        else:
            self.metadata[key] = value

    def automatic(self) -> None:
        """Include it in every record, whatever is selected."""
        self.set("inclusion", "automatic")

    def available(self) -> None:
        """Make it selectable by users."""
        self.set("inclusion", "available")

    def unsupported(self) -> None:
        """Mark it as one that the tap cannot replicate."""
        self.set("inclusion", "unsupported")


def properties_of(schema: Any) -> dict[str, Any]:
    """Return the properties of an object's schema; {} for another schema."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def nodes_of(stream: str, schema: Any, metadata: Metadata) -> Iterator[SchemaNode]:
    """Yield the nodes of a schema, each with its entry in ``metadata``, outer ones first.

    Properties of objects in arrays are not included. Catalogs may select them, but user interfaces do not show them.
    """
    waiting: list[tuple[Breadcrumb, Any]] = [((), schema)]
    while waiting:
        path, part = waiting.pop(0)
        yield SchemaNode(stream, path, part, metadata.setdefault(path, {}))
        if len(path) < 2 * _DEEPEST:
            waiting += [((*path, "properties", name), inner) for name, inner in properties_of(part).items()]
