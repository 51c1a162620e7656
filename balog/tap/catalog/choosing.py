"""From a user's catalog and what a tap has to what is synced, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from balog.errors import ConfigError
from balog.problems import suggest
from balog.tap.catalog.defaults import Declared, Visitor
from balog.tap.catalog.discovering import Discovered, discover
from balog.tap.catalog.entry import Catalog, Entry, Method
from balog.tap.catalog.nodes import properties_of
from balog.tap.errors import ConfigProblems

__all__ = ["Choice", "choose"]

_OF_THE_TAP = (
    *("table-key-properties", "forced-replication-method", "valid-replication-keys", "parent-tap-stream-id"),
    "inclusion",
)


class Choice(NamedTuple):
    """What is synced.

    Attributes:
        catalog: every stream that could be: those that are not selected may be missing, or be there and say so. Each
            entry's key properties, replication method and key are those that are used.
        warnings: lines for the user.
    """

    catalog: Discovered
    warnings: list[str]


def choose(
    streams: Sequence[Declared],
    given: Catalog | None,
    read_schema: Callable[[Any], dict[str, Any]],
    visitors: Iterable[tuple[str, Visitor]] = (),
    source: str = "catalog",
) -> Choice:
    """Put a user's catalog together with what the tap has.

    A schema is the user's where there is one; the tap's source is asked for those that are missing, of streams that are
    selected and of those above them. What the tap itself says (keys, whether a property is automatic or unsupported, a
    forced replication method) stays; all else in metadata is the user's.

    Args:
        streams: those of the tap.
        given: the user's; None for what is selected by default.
        read_schema: see ``discover``.
        visitors: see ``discover``.
        source: the catalog's file, for errors.

    Raises:
        ConfigProblems: the catalog names no stream of the tap, selects none, or has a schema without a stream's keys.
        TapError: what the tap declares does not fit its schemas.
    """
    visitors = list(visitors)
    if given is None:
        catalog = discover(streams, read_schema, visitors)
        if not any(entry.is_selected for entry in catalog) and not catalog.failed:
            raise ConfigProblems([ConfigError("no stream is selected by default; give a --catalog", source)])
        return Choice(catalog, [])
    known = {stream.name: stream for stream in streams}
    unknown = [entry.tap_stream_id for entry in given if entry.tap_stream_id not in known]
    warnings = [f"{source}: the tap has no stream {name!r}; {suggest(name, list(known))}" for name in unknown]
    if len(unknown) == len(given.entries):
        said = warnings or [f"{source}: there is no stream in it; there are {', '.join(known)}"]
        raise ConfigProblems([ConfigError(line) for line in said])
    selected = {entry.tap_stream_id for entry in given if entry.is_selected and entry.tap_stream_id in known}
    if not selected:
        raise ConfigProblems(
            [ConfigError('no stream is selected: say "selected": true in the metadata of one, breadcrumb []', source)]
        )
    wanted = _with_those_above(known, selected)
    own = {name: entry.schema for name in known if (entry := given.get(name)) is not None and entry.schema}
    problems = [
        ConfigError(
            f"the schema has no {key!r}, which is a key of the stream; run --discover anew", source, f"$.{name}"
        )
        for name in selected & own.keys()
        for key in _keys(known[name])
        if properties_of(own[name]) and key not in properties_of(own[name])
    ]
    if problems:
        raise ConfigProblems(problems)
    catalog = Discovered()
    for name in wanted:
        stream = known[name]
        entry = given.get(name)
        found = _entry(stream, entry, own.get(name), read_schema, visitors)
        catalog.failed.update(found.failed)
        for made in found:
            _choose_replication(made, stream, entry, warnings)
            made.metadata.setdefault((), {})["selected"] = name in selected
            catalog.entries[name] = made
    return Choice(catalog, warnings)


def _with_those_above(known: dict[str, Declared], selected: set[str]) -> list[str]:
    """Give the selected streams, and those that have to be walked for them, in the tap's order."""
    wanted = set()
    for name in selected:
        above: Any = known[name]
        while above is not None and above.name not in wanted:
            wanted.add(above.name)
            parent = above.parent or getattr(above, "source_stream", None)
            above = known.get(parent if isinstance(parent, str) else getattr(parent, "name", ""))
    return [name for name in known if name in wanted]


def _keys(stream: Declared) -> list[str]:
    return [*stream.key_properties, *([stream.replication_key] if stream.replication_key else [])]


def _entry(
    stream: Declared,
    given: Entry | None,
    schema: dict[str, Any] | None,
    read_schema: Callable[[Any], dict[str, Any]],
    visitors: list[tuple[str, Visitor]],
) -> Discovered:
    found = discover([stream], (lambda _: schema) if schema else read_schema, visitors)
    made = found.get(stream.name)
    if given is None or made is None:
        return found
    for crumb, said in given.metadata.items():
        kept = made.metadata.get(crumb, {})
        facts = {key: kept[key] for key in _OF_THE_TAP if key in kept and _is_fact(key, kept[key])}
        made.metadata[crumb] = {**kept, **said, **facts}
    if not stream.key_properties:  # a view, or a table whose keys only the user knows
        made.key_properties = list(given.key_properties)
    made.stream = given.stream
    return found


def _is_fact(key: str, said: Any) -> bool:
    """Tell whether the tap insists: on ``available`` it does not, a user may say ``unsupported`` of such a property."""
    return key != "inclusion" or said != "available"


def _choose_replication(entry: Entry, stream: Declared, given: Entry | None, warnings: list[str]) -> None:
    """Set how the entry is replicated: as the user wants it where the stream allows that, else as the stream does."""
    top = entry.metadata.get((), {})
    method: Any = top.get("replication-method") or (given and given.replication_method) or stream.method
    key: Any = top.get("replication-key") or (given and given.replication_key) or stream.replication_key
    forced: Method | None = top.get("forced-replication-method")
    valid = top.get("valid-replication-keys") or ([stream.replication_key] if stream.replication_key else [])

    def say(reason: str) -> None:
        warnings.append(f"stream {entry.tap_stream_id}: {reason}")

    if forced and method != forced:
        say(f"it is replicated by {forced} alone, not by {method}")
        method = forced
    if method == "LOG_BASED" and stream.method != "LOG_BASED":
        say(f"it has no log to read; it is replicated by {stream.method}")
        method = stream.method
    if method != "FULL_TABLE" and key and key not in valid:
        hint = f"; there are {', '.join(valid)}" if valid else ""
        say(f"{key!r} cannot be its replication key{hint}")
        key = stream.replication_key
    if method == "INCREMENTAL" and not key:
        say("it has no replication key; it is replicated by FULL_TABLE")
        method = "FULL_TABLE"
    entry.replication_method = method
    entry.replication_key = None if method == "FULL_TABLE" else key
