"""A tap's state, in the form that Singer taps use: bookmarks, rollups of substreams, versions of full tables.

``{"currently_syncing": "contacts", "bookmarks": {"contacts": {"date_modified": "2026-11-20T00:00:00Z"}}}``
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

ACTIVE_VERSION = "active_version"
RESERVED_KEYS = frozenset({"version", ACTIVE_VERSION, "initial_full_table_complete", "position", "rollup"})
"""Keys of a stream's entry that are not replication keys: ``version`` of an unfinished full table, the version that was
activated last, whether there ever was a complete one, the ``position`` that the tap set, and ``rollup``, how complete a
substream is in the streams above it (see ``balog.tap.bookmarks.progress``)."""


class State:
    """The bookmarks of all streams; unknown keys of the original state are kept.

    Args:
        value: the state from ``--state``; None for a first run.
    """

    def __init__(self, value: dict[str, Any] | None = None) -> None:
        self._value: dict[str, Any] = copy.deepcopy(value) if value else {}
        self._value.setdefault("bookmarks", {})

    @property
    def currently_syncing(self) -> str | None:
        """The stream that is being synced, or was when the run was interrupted; None between streams."""
        stream = self._value.get("currently_syncing")
        return stream if isinstance(stream, str) else None

    def mark_syncing(self, stream: str | None) -> None:
        """Set the stream that is being synced, at which an interrupted run resumes; None between streams."""
        if stream is None:
            self._value.pop("currently_syncing", None)
        else:
            self._value["currently_syncing"] = stream

    def has(self, stream: str) -> bool:
        """Return whether the stream has an entry, which may be empty."""
        return stream in self._value["bookmarks"]

    def entry(self, stream: str) -> dict[str, Any]:
        """Return a copy of a stream's entry, {} if there is none."""
        entry: dict[str, Any] = copy.deepcopy(self._value["bookmarks"].get(stream) or {})
        return entry

    def get(self, stream: str, key: str, default: Any = None) -> Any:
        """Return a value of a stream's entry, such as the bookmark of its replication key."""
        return (self._value["bookmarks"].get(stream) or {}).get(key, default)

    def all(self, key: str) -> dict[str, Any]:
        """Return the values of a key that streams have in their entries, by stream."""
        entries = self._value["bookmarks"].items()
        return {stream: copy.deepcopy(entry[key]) for stream, entry in entries if entry and key in entry}

    def set(self, stream: str, key: str, value: Any) -> None:
        """Set a value of a stream's entry; None removes it."""
        entry = self._value["bookmarks"].setdefault(stream, {})
        if value is None:
            entry.pop(key, None)
        else:
            entry[key] = value

    def as_json(self) -> dict[str, Any]:
        """Return a copy of the state as the value of a STATE message."""
        return copy.deepcopy(self._value)


class Rollup:
    """The ``rollup`` of one stream in one sync.

    Args:
        state: the state that has it.
        stream: its ``tap_stream_id``.
        is_selected: its records are written; otherwise the state is not changed.

    Attributes:
        parents: for each stream above, the bookmark (or position) of that stream up to which all records of this one
            were written.
        highest: the largest replication value of this stream until then; None if the bookmark has it.
    """

    def __init__(self, state: State, stream: str, *, is_selected: bool) -> None:
        self.state, self.stream, self.is_selected = state, stream, is_selected
        self._original = state.entry(stream).get("rollup")
        self.parents: dict[str, Any] = {}
        self.highest: Any = None
        self._load()

    def save(self, parents: Mapping[str, Any], highest: Any = None) -> None:
        """Write the rollup to the state; parents whose value is None are removed."""
        if self.is_selected:
            self.parents = {name: value for name, value in parents.items() if value is not None}
            self.highest = highest
            parts = {"parents": self.parents or None, "highest": highest}
            rollup = {name: part for name, part in parts.items() if part is not None}
            self.state.set(self.stream, "rollup", rollup or None)

    def revert(self) -> None:
        """Write the rollup that the state had at the start of the sync."""
        self._load()
        self.state.set(self.stream, "rollup", self._original)

    def _load(self) -> None:
        rollup = self._original if isinstance(self._original, Mapping) else {}
        parents = rollup.get("parents")
        self.parents = dict(parents) if isinstance(parents, Mapping) else {}
        self.highest = rollup.get("highest")


_COMPLETE = "initial_full_table_complete"
_MAX_VERSION = 1 << 53  # the largest integer that JSON readers with doubles keep


@contextmanager
def full_table(
    state: State,
    stream: str,
    activate: Callable[[int], bool],
    *,
    can_resume: bool = False,
    clock: Callable[[], float] = time.time,
) -> Iterator[int]:
    """Sync a stream's full table inside the ``with`` body: ``with full_table(…) as version``.

    In Singer's SPEC.md RECORD messages of a full table carry ``version``, and after ACTIVATE_VERSION a target may
    delete rows of other versions. On a first sync there are none, so it is also written at the start, as tap-mysql and
    tap-postgres do, and rows are visible at once.

    The state keeps the version until the table is complete. An interrupted run is resumed with that version if the tap
    set a position (``context.set_bookmark``). Otherwise the rows of that version are incomplete, and a new version
    starts. If the body raises, the version is not activated.

    The version that was activated last stays in the state: records outside of a full table carry it, too. Otherwise
    targets that delete by version would keep their rows.

    Args:
        state: stores the version.
        stream: its ``tap_stream_id``.
        activate: writes an ACTIVATE_VERSION; returns whether it did.
        can_resume: the source starts at the position in the state.
        clock: returns seconds since 1970.

    Yields:
        The version: milliseconds since 1970, larger than any before.
    """
    version = version_in(state, stream, "version") or 0
    if not (version and can_resume):
        version = max(int(clock() * 1000), version + 1, (version_in(state, stream) or 0) + 1)
        state.set(stream, "version", version)
    if not state.get(stream, _COMPLETE) and activate(version):
        state.set(stream, ACTIVE_VERSION, version)
    yield version
    if activate(version):
        state.set(stream, ACTIVE_VERSION, version)
    state.set(stream, "version", None)
    state.set(stream, _COMPLETE, True)


def version_in(state: State, stream: str, key: str = ACTIVE_VERSION) -> int | None:
    """Return a version in a stream's entry; None if there is no valid one."""
    version = state.get(stream, key)
    return version if type(version) is int and 0 < version < _MAX_VERSION else None
