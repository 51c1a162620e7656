"""Full tables by versions: a target keeps showing the rows of the table before until the new one is whole.

As Singer's SPEC.md has it, RECORD messages of a full table carry ``version``, and ACTIVATE_VERSION tells a target that
rows of other versions may go. As tap-mysql and tap-postgres practise it, that is written at once on a first sync, when
there are no rows before that could go, so that its rows show while they come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from balog.tap.bookmarks.state import State

__all__ = ["FullTable"]

_WHOLE = "initial_full_table_complete"
_MOST = 1 << 53  # what readers of JSON that know doubles alone keep


class FullTable:
    """One whole sync of a stream, as a context: ``with FullTable(…) as version``.

    The state keeps the version as long as the table is unfinished. A run that goes on where another was interrupted,
    because the tap set a position (``context.set_bookmark``), goes on with that version; else the rows that were
    written with it are not of this table, and it is a new one. A body that raises activates nothing.

    Args:
        state: keeps the version.
        stream: its ``tap_stream_id``.
        activate: writes an ACTIVATE_VERSION.
        can_go_on: the source begins where the state says.
        clock: gives seconds since 1970.
    """

    def __init__(
        self,
        state: State,
        stream: str,
        activate: Callable[[int], Any],
        *,
        can_go_on: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._stream = stream
        self._activate = activate
        self._can_go_on = can_go_on
        self._clock = clock
        self.version = 0

    def __enter__(self) -> int:
        """Give the version: milliseconds since 1970, and larger than any before."""
        before = self._state.get(self._stream, "version")
        last = before if type(before) is int and 0 < before < _MOST else 0
        if last and self._can_go_on:
            self.version = last
        else:
            self.version = max(int(self._clock() * 1000), last + 1)
            self._state.set(self._stream, "version", self.version)
        if not self._state.get(self._stream, _WHOLE):
            self._activate(self.version)
        return self.version

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        self._activate(self.version)
        self._state.set(self._stream, "version", None)
        self._state.set(self._stream, _WHOLE, True)
