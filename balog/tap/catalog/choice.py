"""What is synced, and how: discovery of the tap's streams, and the choice that a user's catalog makes of them.

Default metadata is that of Singer's docs/DISCOVERY_MODE.md, "Metadata".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import field

from balog.common.errors import BalogError, ConfigError
from balog.common.text import suggest
from balog.tap.catalog.entry import Catalog, CatalogEntry, Metadata, Method, keys_of, paths_of, properties_of
from balog.tap.errors import SyncError, TapConfigProblems, TapError

_TAP_KEYS = (
    *("table-key-properties", "forced-replication-method", "valid-replication-keys", "parent-tap-stream-id"),
    "inclusion",
)


class CatalogChoice(NamedTuple):
    """What is synced.

    Attributes:
        catalog: the streams; those that are not selected may be missing. Each entry has the key properties, replication
            method and replication key of this run.
        warnings: lines for the user.
    """

    catalog: Discovered
    warnings: list[str]


def choose(
    streams: Sequence[AnyStream],
    given: Catalog | None,
    read_schema: Callable[[Any], dict[str, Any]],
    source: str = "catalog",
) -> CatalogChoice:
    """Merge a user's catalog with the streams of the tap.

    The user's schemas are used. Missing ones of selected streams, and of the streams above them, are read from the
    tap's source. The tap's metadata of keys, of automatic and unsupported properties, and of a forced replication
    method is kept; all other metadata is the user's.

    Args:
        streams: the streams of the tap.
        given: the user's catalog; None selects the default.
        read_schema: see ``discover``.
        source: the catalog's file, for errors.

    Raises:
        TapConfigProblems: the catalog names no stream of the tap, selects none, or has a schema without its keys.
        TapError: the tap's declarations contradict its schemas.
    """
    if given is None:
        catalog = discover(streams, read_schema)
        if not any(entry.is_selected for entry in catalog) and not catalog.failed:
            raise TapConfigProblems([ConfigError("no stream is selected by default; give a --catalog", source)])
        return CatalogChoice(catalog, [])
    known = {stream.name: stream for stream in streams}
    unknown = [entry.tap_stream_id for entry in given if entry.tap_stream_id not in known]
    warnings = [f"{source}: the tap has no stream {name!r}{suggest(name, known)}" for name in unknown]
    if len(unknown) == len(given.entries):
        lines = warnings or [f"{source}: it has no streams; the tap has {', '.join(known)}"]
        raise TapConfigProblems([ConfigError(line) for line in lines])
    selected = {entry.tap_stream_id for entry in given if entry.is_selected and entry.tap_stream_id in known}
    if not selected:
        raise TapConfigProblems(
            [ConfigError('no stream is selected: set "selected": true in the metadata of one, breadcrumb []', source)]
        )
    wanted = _with_ancestors(known, selected)
    own = {name: entry.schema for name in known if (entry := given.get(name)) is not None and entry.schema}
    problems = [
        ConfigError(
            f"the schema has no {key!r}, which is a key of the stream; run --discover again", source, f"$.{name}"
        )
        for name in selected & own.keys()
        for key in keys_of(known[name])
        if properties_of(own[name]) and key not in properties_of(own[name])
    ]
    if problems:
        raise TapConfigProblems(problems)
    catalog = Discovered()
    for name in wanted:
        stream = known[name]
        entry = given.get(name)
        tap_catalog = discover([stream], lambda stream: own.get(stream.name) or read_schema(stream))
        catalog.failed.update(tap_catalog.failed)
        for tap_entry in tap_catalog:
            catalog.entries[name] = _chosen(tap_entry, stream, entry, name in selected, warnings)
    return CatalogChoice(catalog, warnings)


def _with_ancestors(known: dict[str, AnyStream], selected: set[str]) -> list[str]:
    """Return the selected streams, and those that must be read for them, in the tap's order."""
    wanted = set()
    for name in selected:
        above: Any = known[name]
        while above is not None and above.name not in wanted:
            wanted.add(above.name)
            parent = above.parent or above.source_stream
            above = known.get(parent if isinstance(parent, str) else getattr(parent, "name", ""))
    return [name for name in known if name in wanted]


def _chosen(
    entry: CatalogEntry, stream: AnyStream, given: CatalogEntry | None, is_selected: bool, warnings: list[str]
) -> CatalogEntry:
    """Return the tap's entry of a stream with the user's choices."""
    metadata = dict(entry.metadata)
    for crumb, values in given.metadata.items() if given else ():
        own = metadata.get(crumb, {})
        fixed = {key: own[key] for key in _TAP_KEYS if key in own and _is_fixed(key, own[key])}
        metadata[crumb] = {**own, **values, **fixed}
    method, key = _replication(metadata.get((), {}), stream, given, warnings)
    metadata[()] = {**metadata.get((), {}), "selected": is_selected}
    changes: dict[str, Any] = {"metadata": metadata, "replication_method": method, "replication_key": key}
    if given is not None:
        changes["stream"] = given.stream
        if not stream.key_properties:  # a view, or a table whose keys only the user knows
            changes["key_properties"] = list(given.key_properties)
    return msgspec.structs.replace(entry, **changes)


def _is_fixed(key: str, value: Any) -> bool:
    """Return whether the user cannot change a value; ``available`` properties may become ``unsupported``."""
    return key != "inclusion" or value != "available"


def _replication(
    top: dict[str, Any], stream: AnyStream, given: CatalogEntry | None, warnings: list[str]
) -> tuple[Method, str | None]:
    """Return the method and the key: as the user chose if the stream allows it, otherwise as the stream declares."""
    method: Any = top.get("replication-method") or (given and given.replication_method) or stream.method
    key: Any = top.get("replication-key") or (given and given.replication_key) or stream.replication_key
    forced: Method | None = top.get("forced-replication-method")
    valid = top.get("valid-replication-keys") or ([stream.replication_key] if stream.replication_key else [])

    def warn(reason: str) -> None:
        warnings.append(f"stream {stream.name}: {reason}")

    if forced and method != forced:
        warn(f"it is replicated only by {forced}, not by {method}")
        method = forced
    if method == "LOG_BASED" and stream.method != "LOG_BASED" and not stream.has_log:
        warn(f"it has no log to read; it is replicated by {stream.method}")
        method = stream.method
    if method != "FULL_TABLE" and key and key not in valid:
        hint = f"; valid keys: {', '.join(valid)}" if valid else ""
        warn(f"{key!r} cannot be its replication key{hint}")
        key = stream.replication_key
    if method == "INCREMENTAL" and not key:
        warn("it has no replication key; it is replicated by FULL_TABLE")
        method = "FULL_TABLE"
    return method, None if method == "FULL_TABLE" else key


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
