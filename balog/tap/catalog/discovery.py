"""Discovery: the catalog of a tap's streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import field

from balog.errors import ConfigError
from balog.tap.catalog.defaults import StreamDeclaration, Visitor, default_metadata
from balog.tap.catalog.entry import Catalog, CatalogEntry
from balog.tap.errors import SyncError, TapError


class Discovered(Catalog):
    """A catalog, and the streams that it lacks.

    Attributes:
        failed: streams whose schema could not be read, by name.
    """

    failed: dict[str, SyncError] = field(default_factory=dict)


def discover(
    streams: Iterable[StreamDeclaration],
    read_schema: Callable[[Any], dict[str, Any]],
    visitors: Iterable[tuple[str, Visitor]] = (),
) -> Discovered:
    """Return the catalog of streams, in their order.

    Args:
        streams: those of a tap, ``tap.streams.values()``.
        read_schema: returns a stream's schema, with references resolved.
        visitors: pairs of a stream's name, "" for all, and a visitor; see ``Tap.metadata``.

    Raises:
        TapError: the tap's declarations contradict its schemas.
        ConfigError: a source of schemas needs the client, and the config is invalid.
    """
    catalog, visitors = Discovered(), list(visitors)
    for stream in streams:
        try:
            schema = read_schema(stream)
        except (TapError, ConfigError):
            raise
        except Exception as error:
            failed = SyncError(stream.name, f"its schema could not be read: {type(error).__name__}: {error}")
            failed.__cause__ = error
            catalog.failed[stream.name] = failed
        else:
            catalog.entries[stream.name] = entry_of(stream, schema, visitors)
    return catalog


def entry_of(
    stream: StreamDeclaration, schema: dict[str, Any], visitors: Iterable[tuple[str, Visitor]] = ()
) -> CatalogEntry:
    """Return one stream's entry.

    Raises:
        TapError: the stream's declarations contradict its schema.
    """
    own = [visit for name, visit in visitors if name in ("", stream.name)]
    return CatalogEntry(
        tap_stream_id=stream.name,
        stream=stream.name,
        schema=schema,
        key_properties=list(stream.key_properties),
        replication_key=stream.replication_key,
        replication_method=stream.method,
        metadata=default_metadata(stream, schema, own),
    )
