"""A tap's state in the form that Singer's practice gives it.

``{"currently_syncing": "contacts", "bookmarks": {"contacts": {"date_modified": "2026-11-20T00:00:00Z"}}}``
"""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["NO_KEYS", "State"]

NO_KEYS = frozenset({"version", "initial_full_table_complete", "position", "rollup"})
"""What a stream's entry may hold beside the bookmark of its replication key: of full tables the ``version`` while one
is unfinished and whether there ever was a whole one; a ``position`` that the tap set itself; and ``rollup``, which is
how far a stream of children is in its parents (see ``balog.tap.bookmarks.progress``)."""


class State:
    """What was synced up to where; unknown keys of a given state are kept.

    Args:
        value: a state as it came from ``--state``; None for a first run.
    """

    def __init__(self, value: dict[str, Any] | None = None) -> None:
        self._value: dict[str, Any] = copy.deepcopy(value) if value else {}
        self._value.setdefault("bookmarks", {})

    @property
    def currently_syncing(self) -> str | None:
        """The stream at which a run was, or is; None between streams."""
        found = self._value.get("currently_syncing")
        return found if isinstance(found, str) else None

    @currently_syncing.setter
    def currently_syncing(self, stream: str | None) -> None:
        if stream is None:
            self._value.pop("currently_syncing", None)
        else:
            self._value["currently_syncing"] = stream

    def has(self, stream: str) -> bool:
        """Tell whether the stream has an entry, if an empty one."""
        return stream in self._value["bookmarks"]

    def entry(self, stream: str) -> dict[str, Any]:
        """Give a copy of all that there is of a stream."""
        found: dict[str, Any] = copy.deepcopy(self._value["bookmarks"].get(stream) or {})
        return found

    def get(self, stream: str, key: str, default: Any = None) -> Any:
        """Give a stream's bookmark by the name of its key."""
        return (self._value["bookmarks"].get(stream) or {}).get(key, default)

    def set(self, stream: str, key: str, value: Any) -> None:
        """Set a stream's bookmark; None takes it away."""
        marks = self._value["bookmarks"].setdefault(stream, {})
        if value is None:
            marks.pop(key, None)
        else:
            marks[key] = value

    def as_json(self) -> dict[str, Any]:
        """Give a copy of the value of a STATE message."""
        return copy.deepcopy(self._value)
