"""Discovery: the catalog of a tap's streams, with default metadata (Singer's docs/DISCOVERY_MODE.md, "Metadata")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from msgspec import field

from balog.common.errors import BalogError, ConfigError
from balog.tap.catalog.entry import Catalog, CatalogEntry, Metadata, keys_of, paths_of, properties_of
from balog.tap.errors import SyncError, TapError

AnyStream: TypeAlias = Any
"""A ``balog.tap.streams.Stream``, whose room is above this one."""


def default_metadata(stream: AnyStream, schema: dict[str, Any]) -> Metadata:
    """Return a stream's metadata: the defaults, then what the stream declares.

    The stream has ``inclusion``, ``selected-by-default``, ``table-key-properties``, ``forced-replication-method``,
    ``valid-replication-keys`` and, if it has a parent, ``parent-tap-stream-id``. Each property has ``inclusion``:
    ``automatic`` for keys and the replication key, otherwise ``available``.

    A stream with ``replication_keys`` or ``has_log`` has no ``forced-replication-method``, so that users choose the
    method. Any other stream removes it with the value None.

    Raises:
        TapError: a key, the replication key or ``created_key`` is not a property of the schema, metadata has an unknown
            breadcrumb, or ``inclusion`` is invalid.
    """
    properties = properties_of(schema)
    _refuse_unknown_keys(stream, schema, properties)
    automatic = keys_of(stream)
    metadata: Metadata = {}
    for path in paths_of(schema):
        is_automatic = len(path) == 2 and path[1] in automatic
        metadata[path] = {"inclusion": "automatic" if is_automatic else "available"}
    top = metadata[()]
    top["selected-by-default"] = stream.select
    top["table-key-properties"] = list(stream.key_properties)
    if stream.replication_method or not (stream.replication_keys or stream.has_log):
        top["forced-replication-method"] = stream.method
    if stream.replication_key or stream.replication_keys:
        top["valid-replication-keys"] = stream.replication_keys or [stream.replication_key]
    if stream.parent is not None:
        top["parent-tap-stream-id"] = getattr(stream.parent, "name", stream.parent)
    for path, declared in stream.metadata.items():
        if path not in metadata and schema:
            raise TapError(f"stream {stream.name!r}: it has metadata of {path!r}, which is not in its schema")
        values = {**metadata.get(path, {}), **declared}
        metadata[path] = {key: value for key, value in values.items() if value is not None}
    for path, values in metadata.items():
        if values.get("inclusion", "available") not in ("available", "automatic", "unsupported"):
            raise TapError(
                f"stream {stream.name!r}: the inclusion of {path!r} is {values['inclusion']!r}; "
                "expected available, automatic or unsupported"
            )
    return {path: values for path, values in metadata.items() if values}


def _refuse_unknown_keys(stream: AnyStream, schema: dict[str, Any], properties: dict[str, Any]) -> None:
    if not properties:  # an open schema, or one with its properties in another form
        return
    keys = [*keys_of(stream), *stream.replication_keys, *filter(None, [stream.created_key])]
    missing = [key for key in keys if key not in properties]
    if missing:
        raise TapError(
            f"{stream.title}: {', '.join(map(repr, missing))} must be in its schema, because they are keys; "
            f"it has {', '.join(list(properties)[:50])}"
        )


class Discovered(Catalog):
    """A catalog, and the streams that it lacks.

    Attributes:
        failed: streams whose schema could not be read, by name.
    """

    failed: dict[str, SyncError] = field(default_factory=dict)


def discover(streams: Iterable[AnyStream], read_schema: Callable[[Any], dict[str, Any]]) -> Discovered:
    """Return the catalog of streams, in their order.

    Args:
        streams: those of a tap, ``tap.streams.values()``.
        read_schema: returns a stream's schema, with references resolved.

    Raises:
        TapError: the tap's declarations contradict its schemas.
        ConfigError: a source of schemas needs the client, and the config is invalid.
    """
    catalog = Discovered()
    for stream in streams:
        try:
            schema = read_schema(stream)
        except (TapError, ConfigError):
            raise
        except Exception as error:
            kind = "" if isinstance(error, BalogError) else f"{type(error).__name__}: "
            catalog.failed[stream.name] = SyncError(stream.name, f"its schema could not be read: {kind}{error}", error)
        else:
            catalog.entries[stream.name] = CatalogEntry(
                tap_stream_id=stream.name,
                stream=stream.name,
                schema=schema,
                key_properties=list(stream.key_properties),
                replication_key=stream.replication_key,
                replication_method=stream.method,
                metadata=default_metadata(stream, schema),
            )
    return catalog
