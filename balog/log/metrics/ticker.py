"""Flush meters when they are due, in a thread that lives only while there are any."""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol


class Flushable(Protocol):
    """A meter with a delta to write later."""

    def due(self) -> float:
        """Return the time of the next flush, in seconds of ``time.monotonic``."""

    def flush(self) -> None:
        """Write the delta now. Never raises."""


class Ticker:
    """Flushes the meters that it watches when they are due. The child of a fork watches none."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._watched: set[Flushable] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._next = 0.0

    def watch(self, held: Flushable) -> None:
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

    def _wait(self) -> list[Flushable]:
        """Wait, and return the meters that are due; an empty list if none are watched."""
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
