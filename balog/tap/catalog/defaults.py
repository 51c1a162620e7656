"""The metadata that a stream's catalog entry has by default (Singer's docs/DISCOVERY_MODE.md, "Metadata")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from balog.tap.catalog.entry import Breadcrumb, Metadata, Method, keys_of
from balog.tap.catalog.nodes import SchemaNode, nodes_of, properties_of
from balog.tap.errors import TapError

Visitor = Callable[[SchemaNode, Any], Any]
"""Called with a node and its schema; adds metadata with ``node.set``."""


class StreamDeclaration(Protocol):
    """What discovery needs of a stream; ``balog.tap.streams.Stream`` implements it."""

    name: str
    key_properties: list[str]
    replication_key: str | None
    schema: Any
    metadata: dict[Breadcrumb, dict[str, Any]]
    select: bool
    parent: Any
    source_stream: Any

    @property
    def method(self) -> Method:
        """The replication method."""


def default_metadata(stream: StreamDeclaration, schema: dict[str, Any], visitors: Iterable[Visitor] = ()) -> Metadata:
    """Return a stream's metadata: the defaults, then what the stream declares, then what visitors add.

    The stream has ``inclusion``, ``selected-by-default``, ``table-key-properties``, ``forced-replication-method``,
    ``valid-replication-keys`` and, if it has a parent, ``parent-tap-stream-id``. Each property has ``inclusion``:
    ``automatic`` for keys and the replication key, otherwise ``available``.

    A stream removes ``forced-replication-method``, with the value None, to let users choose the method.

    Raises:
        TapError: a key or the replication key is not a property of the schema, metadata has an unknown breadcrumb, or
            ``inclusion`` is invalid.
    """
    properties = properties_of(schema)
    _refuse_unknown_keys(stream, schema, properties)
    automatic = keys_of(stream)
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
    for path, declared in stream.metadata.items():
        if path not in metadata and schema:
            raise TapError(f"stream {stream.name!r}: it has metadata of {path!r}, which is not in its schema")
        for key, value in declared.items():
            SchemaNode(stream.name, path, None, metadata.setdefault(path, {})).set(key, value)
    visitors = list(visitors)
    for node in list(nodes_of(stream.name, schema, metadata)) if visitors else ():
        for visit in visitors:
            visit(node, node.schema)
    for path, values in metadata.items():
        if values.get("inclusion", "available") not in ("available", "automatic", "unsupported"):
            raise TapError(
                f"stream {stream.name!r}: the inclusion of {path!r} is {values['inclusion']!r}; "
                "want available, automatic or unsupported"
            )
    return {path: values for path, values in metadata.items() if values}


def _refuse_unknown_keys(stream: StreamDeclaration, schema: dict[str, Any], properties: dict[str, Any]) -> None:
    if not properties:  # an open schema, or one with its properties in another form
        return
    missing = [key for key in keys_of(stream) if key not in properties]
    if missing:
        raise TapError(
            f"stream {stream.name!r}: {', '.join(map(repr, missing))} must be in its schema, because they are keys; "
            f"it has {', '.join(list(properties)[:50])}"
        )
