"""The end of the process: everything that waits for others then shares one time, and clients are closed last."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable

from balog.common.errors import complain

SECONDS = 5.0
"""Seconds that the end of a process may wait, in all, for outputs and clients."""

_until: float | None = None
_closers: list[Callable[[], object]] = []


def seconds_left() -> float:
    """Return the seconds that the end of the process may still wait. The first call starts the time."""
    global _until
    if _until is None:
        _until = time.monotonic() + SECONDS
    return max(0.0, _until - time.monotonic())


def close_last(act: Callable[[], object]) -> None:
    """Register a function for the end of the process, after the outputs have delivered what they had.

    It must not wait longer than ``seconds_left``, and can start no thread.
    """
    _closers.append(act)


@atexit.register
def _close() -> None:
    for act in _closers:
        try:
            act()
        except Exception as error:
            complain(f"at the end: {type(error).__name__}: {error}")


def _restart() -> None:
    global _until
    _until = None


os.register_at_fork(after_in_child=_restart)
