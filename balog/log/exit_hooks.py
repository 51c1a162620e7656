"""Call functions when the process ends: normally, by SIGTERM, as a child of ``multiprocessing`` or a Celery worker."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from balog.common.errors import complain

_first: list[Callable[[], Any]] = []
_last: list[Callable[[], Any]] = []
_SWITCH_SECONDS = 0.0001
"""Seconds that a busy interrupted thread may hold the interpreter while other threads flush."""

_is_registered = False
_is_child_registered = False
_is_ending = False
_turn = threading.RLock()
_LONGEST_END = 10.0
"""Seconds that one end of the process waits for another."""


def before_end(act: Callable[[], Any]) -> None:
    """Register a function for the end of the process, also by SIGTERM, while the outputs are still open."""
    if act not in _first:
        _first.append(act)
        _register()
        catch_sigterm()


def at_end(act: Callable[[], Any]) -> None:
    """Register a function to call after those of ``before_end``."""
    if act not in _last:
        _last.append(act)
        _register()


def catch_sigterm() -> None:
    """Call the registered functions on SIGTERM, then end the process. An application's own handler stays."""
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminate)
    except ValueError:
        return  # not in the main thread: the application's own handler has to flush


def _register() -> None:
    global _is_registered
    if not _is_registered:
        _is_registered = True
        atexit.register(_end)
        _register_child()


def _register_child() -> None:
    """Register with ``multiprocessing`` and Celery, whose children end without calling atexit."""
    global _is_child_registered
    celery = sys.modules.get("celery.signals")
    if celery is not None:
        celery.worker_process_shutdown.connect(_end_worker, dispatch_uid=__name__)
    util, process = sys.modules.get("multiprocessing.util"), sys.modules.get("multiprocessing.process")
    if util is None or process is None or _is_child_registered:
        return
    _is_child_registered = True
    util.register_after_fork(_end, _finalize_child)
    if process.parent_process() is not None:
        _finalize_child()


def _finalize_child(_: Any = None) -> None:
    sys.modules["multiprocessing.util"].Finalize(None, _end, exitpriority=10)


def _end_worker(**_: Any) -> None:
    _end()


def _after_fork() -> None:
    global _is_ending, _turn
    _is_ending = False
    _turn = threading.RLock()
    if _is_registered:
        _register_child()


os.register_at_fork(after_in_child=_after_fork)


def _end() -> None:
    # The process may end and receive SIGTERM at once: the second waits, because it would interrupt the first.
    turn = _turn
    is_alone = turn.acquire(timeout=_LONGEST_END)
    try:
        for act in [*_first, *_last]:
            try:
                act()
            except Exception as error:
                complain(f"at the end: {type(error).__name__}: {error}")
    finally:
        if is_alone:
            turn.release()


def _terminate(number: int, _frame: Any) -> None:
    """Flush in a thread while the interrupted one goes on, because it may hold a lock that flushing needs.

    That thread then sends the signal again, which ends the process. So does a second signal from outside.
    """
    global _is_ending
    if not _is_ending:
        _is_ending = True
        sys.setswitchinterval(_SWITCH_SECONDS)
        try:
            threading.Thread(target=_end_and_send, args=(number,), name="balog end", daemon=True).start()
        except RuntimeError:  # too late for a thread
            _end()
        else:
            return
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _end_and_send(number: int) -> None:
    try:
        _end()
    finally:
        os.kill(os.getpid(), number)
