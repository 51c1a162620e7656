"""Reload of the configuration in a running process: by SIGHUP, and when the config file changes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from balog.errors import BalogError, complain

_NAME = "balog reload"


class ConfigReload:
    """Calls a function in a thread of its own, because a signal may interrupt code that holds a lock."""

    def __init__(self) -> None:
        self._again: Callable[[], object] | None = None
        self._path: str | None = None
        self._seconds: float | None = None
        self._seen: object = None
        self._before: Any = None
        self._handler: Callable[[int, Any], None] | None = None
        self._start()
        os.register_at_fork(after_in_child=self._after_fork)

    def _start(self) -> None:
        self._turn = threading.Lock()
        self._stop = threading.Event()
        self._watcher: threading.Thread | None = None

    def use(self, again: Callable[[], object], path: str | None, reload: bool | float) -> None:
        """Reload from now on as ``configure(reload=…)`` says.

        Args:
            again: configures again; returns normally also for a wrong configuration.
            path: the config file, if there is one.
            reload: False for never, True at SIGHUP, a number of seconds also when the file has changed.
        """
        self._again = again if reload is not False else None
        if reload is False:
            self._release()
        else:
            self._catch()
        self._seconds = None if isinstance(reload, bool) or path is None else float(reload)
        if path != self._path:  # otherwise it may have changed since it was read
            self._path, self._seen = path, _signature(path)
        if self._seconds is None:
            self._stop.set()
            self._watcher = None
        elif self._watcher is None:
            self._watch()

    def _catch(self) -> None:
        """Handle SIGHUP, also if the application has set a handler of its own since."""
        before = signal.getsignal(signal.SIGHUP)
        if self._handler is not None and before is self._handler:
            return
        handler = partial(self._on_signal, before)  # of its own: the application's may call an earlier one
        try:
            signal.signal(signal.SIGHUP, handler)
            self._before, self._handler = before, handler
        except ValueError:
            if self._handler is None:
                complain("reload: only the main thread can handle SIGHUP; call configure(reload=…) there")

    def _release(self) -> None:
        """Restore the earlier handler of SIGHUP, unless the application has replaced this one."""
        if self._handler is not None and signal.getsignal(signal.SIGHUP) is self._handler:
            with suppress(ValueError):  # not in the main thread: the handler does nothing from now on
                signal.signal(signal.SIGHUP, self._before)
                self._handler = None

    def _on_signal(self, before: Any, number: int, frame: Any) -> None:
        if before is self._before:  # not in an earlier handler that the application's calls
            with suppress(RuntimeError):  # too late for a thread
                threading.Thread(target=self._reload, name=_NAME, daemon=True).start()
        if callable(before):
            before(number, frame)

    def _reload(self) -> None:
        with self._turn:
            again = self._again
            if again is not None:
                try:
                    again()
                except Exception as error:
                    reason = str(error) if isinstance(error, BalogError) else f"{type(error).__name__}: {error}"
                    complain(f"reload: {reason}; the earlier configuration stays")

    def _watch(self) -> None:
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._look, args=(self._stop,), name=_NAME, daemon=True)
        with suppress(RuntimeError):
            self._watcher.start()

    def _look(self, stop: threading.Event) -> None:
        while not stop.wait(self._seconds):
            found = _signature(self._path)
            if found != self._seen:
                self._seen = found
                self._reload()

    def _after_fork(self) -> None:
        self._start()
        if self._seconds is not None:
            self._watch()


def _signature(path: str | None) -> object:
    """Return what changes when a file is written or replaced; None without the file."""
    try:
        found = os.stat(path) if path is not None else None
    except OSError:
        found = None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)
