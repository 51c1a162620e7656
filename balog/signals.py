"""Stop on signals in two steps: the first SIGTERM or SIGINT asks for a clean stop, the second ends the process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

__all__ = ["StopSignals", "join", "signals_for_main_thread"]

_FOR_MAIN = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGTSTP, signal.SIGCHLD),
)


class StopSignals:
    """A context in which SIGTERM and SIGINT set ``number`` instead of ending the process.

    Args:
        on_signal: called in the handler for every such signal, also the second, before that one ends the process.
        reloads: whether SIGHUP asks for the configuration to be read again, instead of ending the process.

    Attributes:
        number: the signal that came; None as long as none did.
        wake: a file descriptor that becomes readable when one comes, for ``select``.
    """

    def __init__(self, on_signal: Callable[[int], None] | None = None, *, reloads: bool = False) -> None:
        self.number: int | None = None
        self._on_signal = on_signal
        self._reloads = reloads
        self._is_reload_asked = False
        self._old: dict[int, Any] = {}
        self.wake, self._write, self._old_wakeup = -1, -1, -1

    def __enter__(self) -> StopSignals:
        self.wake, self._write = os.pipe()
        os.set_blocking(self._write, False)
        # Written by the signal itself: the handler below waits for the interpreter, which may be about to block.
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        handlers = {signal.SIGTERM: self._handle, signal.SIGINT: self._handle}
        if self._reloads:
            handlers[signal.SIGHUP] = self._ask_reload
        for number, handler in handlers.items():
            if signal.getsignal(number) != signal.SIG_IGN:  # as for a background job, which Ctrl-C must not reach
                self._old[number] = signal.signal(number, handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self.wake)
        os.close(self._write)

    def came(self) -> bool:
        """Tell whether a signal has come."""
        return self.number is not None

    def reload_came(self) -> bool:
        """Tell whether SIGHUP has come since the last time this was asked."""
        asked, self._is_reload_asked = self._is_reload_asked, False
        return asked

    def _ask_reload(self, number: int, frame: FrameType | None) -> None:
        self._is_reload_asked = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._on_signal is not None:
            self._on_signal(number)
        if self.number is not None:
            os._exit(128 + number)
        self.number = number


def join(thread: threading.Thread) -> None:
    """Wait until a thread ends, so that signal handlers still run.

    A signal that arrives just before ``Thread.join`` blocks does not interrupt it: without a timeout, its handler would
    wait for the thread, too.
    """
    while thread.is_alive():
        thread.join(0.2)


@contextmanager
def signals_for_main_thread() -> Iterator[None]:
    """A context for the main thread to start others in: signals will never interrupt those, nor threads of theirs.

    The kernel gives a signal to any thread that takes it, and Python runs the handler in the main thread, which hears
    of it only when it is interrupted itself: one that waits for another thread, or writes to a pipe that is full,
    would not until that is over.
    """
    old = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_MAIN)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
