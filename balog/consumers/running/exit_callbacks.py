"""Callbacks for the moment when no engine of this process runs any more, to finish files and close connections."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from balog.common.errors import complain

_lock = threading.Lock()
_callbacks: list[Callable[[], object]] = []
_runs = 0


def at_end(callback: Callable[[], object]) -> None:
    """Call a function once, after the last run of an engine in this process; at the process's exit if no engine runs.

    Use it to close what a handler opened in its first call. The exit itself is too late for many clients: no thread can
    be started then, so S3's client, for example, sends nothing any more. An exception is reported in one line.
    """
    with _lock:
        _callbacks.append(callback)


@contextmanager
def running() -> Iterator[None]:
    """Count a run of an engine; the last one to end calls the callbacks."""
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
        callbacks = _callbacks[::-1]
        _callbacks.clear()
    for callback in callbacks:
        try:
            callback()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            complain(f"at the end of the run: {' '.join(f'{type(error).__name__}: {error}'.split())}")
