"""The metadata that a stream's catalog entry has by default (Singer's docs/DISCOVERY_MODE.md, "Metadata")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from balog.tap.catalog.entry import Breadcrumb, Metadata, Method
from balog.tap.catalog.nodes import Node, nodes_of, properties_of
from balog.tap.errors import TapError

__all__ = ["Declared", "Visitor", "default_metadata"]

Visitor = Callable[[Node, Any], Any]
"""Called with a node and its schema; says more of it by ``node.set``."""


class Declared(Protocol):
    """What discovery wants to know of a stream; ``balog.tap.streams.Stream`` says it."""

    name: str
    key_properties: list[str]
    replication_key: str | None
    schema: Any
    metadata: dict[Breadcrumb, dict[str, Any]]
    select: bool
    parent: Any

    @property
    def method(self) -> Method:
        """How it is replicated."""


def default_metadata(stream: Declared, schema: dict[str, Any], visitors: Iterable[Visitor] = ()) -> Metadata:
    """Give a stream's metadata: by rule, then what the stream declares, then what visitors say.

    Of the stream: ``inclusion``, ``selected-by-default``, ``table-key-properties``, ``forced-replication-method``,
    ``valid-replication-keys`` and, below another stream, ``parent-tap-stream-id``. Of each property: ``inclusion``,
    ``automatic`` for keys and for the replication key, else ``available``.

    A stream that lets a user choose how it is replicated takes ``forced-replication-method`` away, by the value None.

    Raises:
        TapError: a key or the replication key is no property of the schema, metadata is said of what is not there, or
            ``inclusion`` is none that Singer has.
    """
    properties = properties_of(schema)
    _refuse_unknown_keys(stream, schema, properties)
    automatic = {*stream.key_properties, *([stream.replication_key] if stream.replication_key else [])}
    metadata: Metadata = {}
    for node in nodes_of(stream.name, schema, metadata):
        is_automatic = node.level == 1 and node.name in automatic
        node.metadata["inclusion"] = "automatic" if is_automatic else "available"
    top = metadata[()]
    top["selected-by-default"] = stream.select
    top["table-key-properties"] = list(stream.key_properties)
    top["forced-replication-method"] = stream.method
    if stream.replication_key:
        top["valid-replication-keys"] = [stream.replication_key]
    if stream.parent is not None:
        top["parent-tap-stream-id"] = getattr(stream.parent, "name", stream.parent)
    for path, said in stream.metadata.items():
        if path not in metadata and schema:
            raise TapError(f"stream {stream.name!r}: metadata of {path!r}, which is not in its schema")
        for key, value in said.items():
            Node(stream.name, path, None, metadata.setdefault(path, {})).set(key, value)
    visitors = list(visitors)
    for node in list(nodes_of(stream.name, schema, metadata)) if visitors else ():
        for visit in visitors:
            visit(node, node.schema)
    for path, said in metadata.items():
        if said.get("inclusion", "available") not in ("available", "automatic", "unsupported"):
            raise TapError(
                f"stream {stream.name!r}: the inclusion of {path!r} is {said['inclusion']!r}; "
                "want available, automatic or unsupported"
            )
    return {path: said for path, said in metadata.items() if said}


def _refuse_unknown_keys(stream: Declared, schema: dict[str, Any], properties: dict[str, Any]) -> None:
    if not properties:  # one that is open, or has its properties in a form that is not looked into
        return
    keys = [*stream.key_properties, *([stream.replication_key] if stream.replication_key else [])]
    missing = [key for key in keys if key not in properties]
    if missing:
        raise TapError(
            f"stream {stream.name!r}: {', '.join(map(repr, missing))} should be in its schema, being keys; "
            f"there are {', '.join(list(properties)[:50])}"
        )
