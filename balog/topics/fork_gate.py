"""Prevent forks while SQLite is in use, because its locks are per process and do not survive a fork.

A child that inherits it waits for locks that threads of its parent held, and believes to hold others that it does not,
even on a connection of its own. So a fork waits until no transaction runs, and every connection is closed over it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

__all__ = ["ForkGate"]


class ForkGate:
    """Admits any number of uses (``with gate:``, not nested), or one fork.

    Args:
        before_fork: called when no use is inside and none can enter; in the parent, before the fork.
    """

    def __init__(self, before_fork: Callable[[], None]) -> None:
        self._before_fork = before_fork
        self._reset()
        os.register_at_fork(before=self._close, after_in_parent=self._open, after_in_child=self._reset)

    def __enter__(self) -> None:
        with self._changed:
            while self._forks:
                self._changed.wait()
            self._uses += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._uses -= 1
            self._changed.notify_all()

    def _close(self) -> None:
        with self._changed:
            self._forks += 1
            while self._uses:
                self._changed.wait()
        self._before_fork()

    def _open(self) -> None:
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def _reset(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._uses = 0
        self._forks = 0
