"""Handle signals for the time of a ``with`` block, stop in two steps, and start threads that get no signals.

The first SIGTERM, SIGINT or SIGHUP asks for a clean stop, the second ends the process.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from balog.common.errors import BalogError

if TYPE_CHECKING:
    from typing_extensions import Self


Handler = Callable[[int, FrameType | None], object]

_FOR_MAIN = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGTSTP, signal.SIGCHLD),
)


class SignalHandlers:
    """A context that sets signal handlers and restores the earlier ones.

    A signal that the process ignores stays ignored, as in a background job or under nohup.

    Args:
        handlers: the handler of each signal.
    """

    def __init__(self, handlers: Mapping[int, Handler]) -> None:
        self._handlers = handlers
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) != signal.SIG_IGN:
                self._old[number] = signal.signal(number, handler)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)


class WakingSignalHandlers(SignalHandlers):
    """A context that sets signal handlers, and makes a file descriptor readable when a signal comes.

    Attributes:
        wake: the file descriptor, non-blocking, for ``select``.
    """

    def __init__(self, handlers: Mapping[int, Handler]) -> None:
        super().__init__(handlers)
        self.wake, self._write, self._old_wakeup = -1, -1, -1

    def __enter__(self) -> Self:
        self.wake, self._write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._write, False)
        # The signal itself writes here: a handler waits for the interpreter, which may be about to block.
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self.wake)
        os.close(self._write)


class StopSignals(WakingSignalHandlers):
    """A context in which SIGTERM, SIGINT and SIGHUP set ``number`` instead of ending the process.

    Args:
        on_signal: called in the handler for every such signal, also for the second, before that one ends the process.

    Attributes:
        number: the first signal; None before it.
    """

    def __init__(self, on_signal: Callable[[int], None] | None = None) -> None:
        super().__init__(dict.fromkeys((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), self._handle))
        self.number: int | None = None
        self._on_signal = on_signal

    def came(self) -> bool:
        """Return whether a signal has come."""
        return self.number is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._on_signal is not None:
            self._on_signal(number)
        if self.number is not None:
            os._exit(128 + number)
        self.number = number


def join(thread: threading.Thread) -> None:
    """Wait until a thread ends, so that signal handlers still run.

    A signal that arrives just before ``Thread.join`` blocks does not interrupt it. Without a timeout, its handler would
    wait for the thread, too.
    """
    while thread.is_alive():
        thread.join(0.2)


@contextmanager
def blocking(*numbers: signal.Signals) -> Iterator[None]:
    """Block signals in this thread, and for good in the threads and processes that the block starts.

    A child that Ctrl-C reaches while it imports its modules would print a traceback.
    """
    old = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


@contextmanager
def signals_for_main_thread() -> Iterator[None]:
    """Block signals in the threads that the block starts, and in theirs, so that only the main thread gets them.

    The kernel delivers a signal to any thread that accepts it, and Python runs the handler in the main thread. If
    another thread got the signal, a main thread that waits for a thread or for a full pipe would not be interrupted.
    """
    with blocking(*_FOR_MAIN):
        yield


TICK_SECONDS = 1.0
"""Seconds between two steps."""


class StepThread:
    """Takes a step again and again in a thread of its own. Use it as a context around the run.

    Args:
        name: the thread's name.
        say: called with one line for the operator when a step fails; once while the error is the same.
        every: seconds between two steps; ``TICK_SECONDS`` if omitted.
    """

    def __init__(self, name: str, say: Callable[[str], None], every: float | None = None) -> None:
        self._say = say
        self._every = every
        self._error = ""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        with signals_for_main_thread():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        join(self._thread)

    def step(self) -> None:
        """Do what is due. An error ends this step only."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._end.wait(TICK_SECONDS if self._every is None else self._every):
            self._try_step()

    def _try_step(self) -> None:
        try:
            self.step()
        except Exception as error:  # the next step may succeed
            reason = str(error) if isinstance(error, BalogError) else f"{type(error).__name__}: {error}"
            if reason != self._error:
                self._error = reason
                self._say(reason)
        else:
            self._error = ""
