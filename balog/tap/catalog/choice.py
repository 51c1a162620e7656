"""The choice of what is synced, and how: from the user's catalog and the streams of the tap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from balog.common.errors import ConfigError
from balog.common.text import suggest
from balog.tap.catalog.discovery import AnyStream, Discovered, discover
from balog.tap.catalog.entry import Catalog, CatalogEntry, Method, keys_of, properties_of
from balog.tap.errors import TapConfigProblems

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
