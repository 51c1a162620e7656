"""What is to be done when no engine of this process runs any more: files finished, connections closed."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from balog.errors import complain

__all__ = ["at_end", "running"]

_lock = threading.Lock()
_callbacks: list[Callable[[], object]] = []
_runs = 0


def at_end(callback: Callable[[], object]) -> None:
    """Call something once when the last run of an engine in this process is over; at its exit if none runs.

    For what a handler opened when it was first called. The exit itself is too late for much: threads can't be started
    then, so clients that work with some, S3's among them, send nothing any more. What it raises is told in a line.
    """
    with _lock:
        _callbacks.append(callback)


@contextmanager
def running() -> Iterator[None]:
    """Mark a run, in an engine."""
    global _runs
    with _lock:
        _runs += 1
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            is_last = _runs == 0
        if is_last:
            _call_all()


@atexit.register
def _call_all() -> None:
    with _lock:
        found = _callbacks[::-1]
        _callbacks.clear()
    for callback in found:
        try:
            callback()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            complain(f"at the end of the run: {' '.join(f'{type(error).__name__}: {error}'.split())}")
