"""What is held back for a while: written when it is due, and by a thread that lives only as long as anything is."""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol

__all__ = ["Held", "Ticker"]


class Held(Protocol):
    """Something that waits to be written."""

    def due(self) -> float:
        """Return the time of the next flush, in seconds of ``time.monotonic``."""

    def flush(self) -> None:
        """Write it now. Does not raise."""


class Ticker:
    """Flushes what it watches when that is due. After a fork the child watches nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._watched: set[Held] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._next = 0.0

    def watch(self, held: Held) -> None:
        """Flush a meter once, when it is due; it stays alive until then."""
        with self._changed:
            self._watched.add(held)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads, or the interpreter is ending
                    return
                self._thread = thread
            elif held.due() < self._next:
                self._changed.notify()

    def _run(self) -> None:
        while due := self._wait():
            for held in due:
                held.flush()

    def _wait(self) -> list[Held]:
        """Return what is due, when something is; an empty list when nothing is watched any more."""
        with self._changed:
            while self._watched:
                now = time.monotonic()
                due = [held for held in self._watched if held.due() <= now]
                if due:
                    self._watched.difference_update(due)
                    return due
                self._next = min(held.due() for held in self._watched)
                self._changed.wait(self._next - now)
            self._thread = None
            return []
