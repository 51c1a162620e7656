"""The ``rollup`` in a substream's state: how complete it is in the streams above it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.tap.bookmarks.state import State


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
        self._state, self._stream, self._is_selected = state, stream, is_selected
        self._original = state.entry(stream).get("rollup")
        self.parents: dict[str, Any] = {}
        self.highest: Any = None
        self._load()

    def save(self, parents: Mapping[str, Any], highest: Any = None) -> None:
        """Write the rollup to the state; parents whose value is None are removed."""
        if self._is_selected:
            self.parents = {name: value for name, value in parents.items() if value is not None}
            self.highest = highest
            parts = {"parents": self.parents or None, "highest": highest}
            rollup = {name: part for name, part in parts.items() if part is not None}
            self._state.set(self._stream, "rollup", rollup or None)

    def revert(self) -> None:
        """Write the rollup that the state had at the start of the sync."""
        self._load()
        self._state.set(self._stream, "rollup", self._original)

    def _load(self) -> None:
        rollup = self._original if isinstance(self._original, Mapping) else {}
        parents = rollup.get("parents")
        self.parents = dict(parents) if isinstance(parents, Mapping) else {}
        self.highest = rollup.get("highest")
