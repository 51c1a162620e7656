"""Reading a state in the forms that pipelines use: Singer's, the Meltano SDK's, Meltano's wrapper, a STATE message."""

from __future__ import annotations

import os
from collections.abc import Collection
from decimal import Decimal
from typing import Any

import balog
from balog.common.config import read
from balog.common.errors import ConfigError, ConfigProblems
from balog.tap.bookmarks.state import State
from balog.tap.json_schema.mismatch import type_name

_SDK_WORDS = frozenset(
    {
        "replication_key",
        "replication_key_value",
        "replication_key_signpost",
        "starting_replication_value",
        "progress_markers",
        "partitions",
    }
)


def read_state(path: str | os.PathLike[str], streams: Collection[str] | None, log: Any = None) -> State:
    """Read the file of ``--state``.

    Args:
        path: the file, at most 4 MiB.
        streams: the ``tap_stream_id`` of all streams of the tap; None if they are not known.
        log: the logger for warnings; None means ``balog.tap.bookmarks``.

    Raises:
        ConfigError: it cannot be read, is not JSON, has another shape, or is the state of another tap: all of its
            bookmarks are of unknown streams.
        ConfigProblems: it has duplicate keys.
    """
    source = str(path)
    document, problems = read(path, float_hook=_number)
    if problems:
        raise ConfigProblems(problems)
    return state_of(document, streams, source, log)


def state_of(document: Any, streams: Collection[str] | None, source: str = "", log: Any = None) -> State:
    """Return the state that a JSON document has; see ``read_state``."""
    value, path = _unwrapped(document)
    if not isinstance(value, dict):
        raise ConfigError(f"expected a state, an object, not {type_name(value)}", source, path)
    log = log or balog.get_logger("balog.tap.bookmarks")
    marks = value.get("bookmarks", {})
    if marks is None:
        marks = {}
    if not isinstance(marks, dict):
        raise ConfigError(
            f"expected an object, a member for each stream, not {type_name(marks)}", source, f"{path}.bookmarks"
        )
    for name, entry in marks.items():
        if entry is not None and not isinstance(entry, dict):
            reason = f"expected an object, as {{replication key: value}}, not {type_name(entry)}"
            raise ConfigError(reason, source, f"{path}.bookmarks[{name!r}]")
    known = [*marks, *filter(None, [State(value).currently_syncing])] if streams is None else streams
    unknown = sorted(set(marks) - set(known))
    if marks and len(unknown) == len(marks):
        raise ConfigError(
            f"is the state of another tap: it has {_names(unknown)}; the streams are {_names(sorted(known))}",
            source,
            f"{path}.bookmarks",
        )
    if unknown:
        log.warning("The state has bookmarks of unknown streams; they are kept", streams=unknown)
    if marks and (others := sorted(set(value) - {"bookmarks", "currently_syncing"})):
        log.warning("The state has unknown keys; they are kept", keys=others)
    if value and "bookmarks" not in value:
        log.warning("The state has no bookmarks: all streams are synced from the beginning", keys=sorted(value))
    kept = {**value, "bookmarks": {name: _singer(entry or {}) for name, entry in marks.items()}}
    syncing = kept.get("currently_syncing")
    if syncing is not None and syncing not in known:
        if "currently_syncing" in kept and isinstance(syncing, str):
            log.warning("The state names an unknown stream as currently syncing", stream=syncing)
        del kept["currently_syncing"]
    return State(kept)


def _number(text: str) -> float | Decimal:
    """Return a float, or a Decimal where a float would round: unknown parts of a state keep all of their digits."""
    double = float(text)
    return double if Decimal(repr(double)) == Decimal(text) else Decimal(text)


def _unwrapped(document: Any) -> tuple[Any, str]:
    """Return the value inside a STATE message, or inside Meltano's ``{"completed": {"singer_state": …}}``."""
    value, path = document, "$"
    if isinstance(value, dict) and value.get("type") == "STATE" and "value" in value:
        value, path = value["value"], "$.value"
    for name in ("completed", "singer_state"):
        if isinstance(value, dict) and "bookmarks" not in value and isinstance(value.get(name), dict):
            value, path = value[name], f"{path}.{name}"
    return value, path


def _singer(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a stream's entry in singer-python's form, also if a Meltano SDK tap wrote it.

    The smallest value of the SDK's ``partitions`` is the bookmark; there is none if one of them has none. Its
    ``progress_markers`` belong to an interrupted run of an unsorted stream, and are ignored.
    """
    if not _SDK_WORDS & entry.keys():
        return entry
    kept = {key: value for key, value in entry.items() if key not in _SDK_WORDS}
    partitions = entry.get("partitions")
    parts = partitions if isinstance(partitions, list) and partitions else [entry]
    members: list[Any] = [part if isinstance(part, dict) else {} for part in parts]
    keys = {member.get("replication_key") for member in members}
    values = [member.get("replication_key_value") for member in members]
    if len(keys) == 1 and None not in keys and None not in values:
        try:
            kept[keys.pop()] = min(values)
        except TypeError:  # partitions of several kinds
            pass
    return kept


def _names(names: Collection[str]) -> str:
    shown = list(names)[:10]
    return ", ".join(shown) + (f" and {len(names) - 10} others" if len(names) > 10 else "")
