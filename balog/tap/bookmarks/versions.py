"""Versions of full tables: a target keeps the rows of the previous version until the new one is complete.

In Singer's SPEC.md RECORD messages of a full table carry ``version``, and after ACTIVATE_VERSION a target may delete
rows of other versions. On a first sync there are none, so it is also written at the start, as tap-mysql and
tap-postgres do, and rows are visible at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from balog.tap.bookmarks.state import State

_COMPLETE = "initial_full_table_complete"
_MAX_VERSION = 1 << 53  # the largest integer that JSON readers with doubles keep


@dataclass
class FullTable:
    """One full sync of a stream, as a context manager: ``with FullTable(…) as version``.

    The state keeps the version until the table is complete. An interrupted run is resumed with that version if the tap
    set a position (``context.set_bookmark``). Otherwise the rows of that version are incomplete, and a new version
    starts. If the body raises, the version is not activated.

    Args:
        state: stores the version.
        stream: its ``tap_stream_id``.
        activate: writes an ACTIVATE_VERSION.
        can_resume: the source starts at the position in the state.
        clock: returns seconds since 1970.
    """

    state: State
    stream: str
    activate: Callable[[int], Any]
    can_resume: bool = False
    clock: Callable[[], float] = time.time
    version: int = field(default=0, init=False)

    def __enter__(self) -> int:
        """Return the version: milliseconds since 1970, larger than any before."""
        before = self.state.get(self.stream, "version")
        last = before if type(before) is int and 0 < before < _MAX_VERSION else 0
        if last and self.can_resume:
            self.version = last
        else:
            self.version = max(int(self.clock() * 1000), last + 1)
            self.state.set(self.stream, "version", self.version)
        if not self.state.get(self.stream, _COMPLETE):
            self.activate(self.version)
        return self.version

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        self.activate(self.version)
        self.state.set(self.stream, "version", None)
        self.state.set(self.stream, _COMPLETE, True)
