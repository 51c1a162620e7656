"""How far a stream of children is in the streams above it, as the state has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from balog.tap.bookmarks.state import State

__all__ = ["Rollup"]


class Rollup:
    """The ``rollup`` of one stream in one sync.

    Args:
        state: has it, and gets it.
        stream: its ``tap_stream_id``.
        is_selected: its records are written; else what the state has stays.

    Attributes:
        marks: for each stream above the bookmark, or the position, of that one up to which all was written.
        highest: the largest value of its own until then; None when the bookmark says it.
    """

    def __init__(self, state: State, stream: str, *, is_selected: bool) -> None:
        self._state, self._stream, self._is_selected = state, stream, is_selected
        self._given = state.entry(stream).get("rollup")
        self.marks: dict[str, Any] = {}
        self.highest: Any = None
        self._take(self._given)

    def keep(self, marks: Mapping[str, Any], highest: Any = None) -> None:
        """Put into the state how far it is; a mark that is None is taken away."""
        if self._is_selected:
            self.marks = {name: mark for name, mark in marks.items() if mark is not None}
            self.highest = highest
            said = {"parents": self.marks or None, "highest": highest}
            value = {name: part for name, part in said.items() if part is not None}
            self._state.set(self._stream, "rollup", value or None)

    def take_back(self) -> None:
        """Put into the state what it had at the beginning."""
        self._take(self._given)
        self._state.set(self._stream, "rollup", self._given)

    def _take(self, given: Any) -> None:
        said = given if isinstance(given, Mapping) else {}
        marks = said.get("parents")
        self.marks = dict(marks) if isinstance(marks, Mapping) else {}
        self.highest = said.get("highest")
