"""The nodes of a schema that metadata speaks of: the stream itself, its properties, and those inside of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from balog.tap.catalog.entry import Breadcrumb, Metadata

__all__ = ["Node", "nodes_of", "properties_of"]

_DEEPEST = 100


class Node:
    """One node of a schema, and its metadata.

    Attributes:
        path: its breadcrumb: ``()`` for the stream, ``("properties", "address", "properties", "city")``.
        schema: its part of the schema.
        metadata: what is said of it so far; None as a value takes what was said away.
    """

    __slots__ = ("_stream", "metadata", "path", "schema")

    def __init__(self, stream: str, path: Breadcrumb, schema: Any, metadata: dict[str, Any]) -> None:
        self._stream = stream
        self.path = path
        self.schema = schema
        self.metadata = metadata

    @property
    def name(self) -> str:
        """The property's name; the stream's own at the top."""
        return self.path[-1] if self.path else self._stream

    @property
    def level(self) -> int:
        """How deep it is: 0 for the stream, 1 for its properties, 2 for those inside of them."""
        return self.path.count("properties")

    def set(self, key: str, value: Any) -> None:
        """Say something of it; None takes away what was said."""
        if value is None:
            self.metadata.pop(key, None)
        else:
            self.metadata[key] = value

    def automatic(self) -> None:
        """Let it be in every record, whatever is chosen."""
        self.set("inclusion", "automatic")

    def available(self) -> None:
        """Let it be chosen or left out."""
        self.set("inclusion", "available")

    def unsupported(self) -> None:
        """Say that the tap cannot give it."""
        self.set("inclusion", "unsupported")


def properties_of(schema: Any) -> dict[str, Any]:
    """Give the properties that an object's schema names; {} for what is no object."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def nodes_of(stream: str, schema: Any, metadata: Metadata) -> Iterator[Node]:
    """Give the nodes of a schema, each with its place in ``metadata``, outer ones first.

    Properties of objects in arrays are not among them: a catalog that names them is understood, but user interfaces
    do not show them.
    """
    waiting: list[tuple[Breadcrumb, Any]] = [((), schema)]
    while waiting:
        path, part = waiting.pop(0)
        yield Node(stream, path, part, metadata.setdefault(path, {}))
        if len(path) < 2 * _DEEPEST:
            waiting += [((*path, "properties", name), inner) for name, inner in properties_of(part).items()]
