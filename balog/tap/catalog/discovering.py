"""Discovery: the catalog of what a tap has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import field

from balog.errors import ConfigError
from balog.tap.catalog.defaults import Declared, Visitor, default_metadata
from balog.tap.catalog.entry import Catalog, Entry
from balog.tap.errors import StreamError, TapError

__all__ = ["Discovered", "discover", "entry_of"]


class Discovered(Catalog):
    """A catalog, and what there is none of.

    Attributes:
        failed: streams whose schema could not be had, by name.
    """

    failed: dict[str, StreamError] = field(default_factory=dict)


def discover(
    streams: Iterable[Declared],
    read_schema: Callable[[Any], dict[str, Any]],
    visitors: Iterable[tuple[str, Visitor]] = (),
) -> Discovered:
    """Give the catalog of streams, in their order.

    Args:
        streams: those of a tap, ``tap.streams.values()``.
        read_schema: gives a stream's schema, its references resolved.
        visitors: with the stream that each is for, "" for all; see ``Tap.metadata``.

    Raises:
        TapError: what the tap declares does not fit its schemas.
        ConfigError: a source wants the client, and the config for that is refused.
    """
    catalog, visitors = Discovered(), list(visitors)
    for stream in streams:
        try:
            schema = read_schema(stream)
        except (TapError, ConfigError):
            raise
        except Exception as error:
            failed = StreamError(stream.name, f"its schema could not be had: {type(error).__name__}: {error}")
            failed.__cause__ = error
            catalog.failed[stream.name] = failed
        else:
            catalog.entries[stream.name] = entry_of(stream, schema, visitors)
    return catalog


def entry_of(stream: Declared, schema: dict[str, Any], visitors: Iterable[tuple[str, Visitor]] = ()) -> Entry:
    """Give one stream's entry.

    Raises:
        TapError: what the stream declares does not fit its schema.
    """
    own = [visit for name, visit in visitors if name in ("", stream.name)]
    return Entry(
        tap_stream_id=stream.name,
        stream=stream.name,
        schema=schema,
        key_properties=list(stream.key_properties),
        replication_key=stream.replication_key,
        replication_method=stream.method,
        metadata=default_metadata(stream, schema, own),
    )
