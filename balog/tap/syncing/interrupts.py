"""How signals end a run: by a flag between two records, by an exception inside the source's code.

After the first SIGTERM or SIGINT the current record is still written. A source that waits, for a server or in a pause,
is interrupted. A record that is being made or written, or waits for a slow reader, is not. The second signal ends the
process.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

from balog.common.signals import StopSignals

_RETRY_SECONDS = 0.02
_LOGGING = ("balog.log.outputs", "balog.log.logger", "balog.log.metrics", "balog.log.guard")
"""Modules whose calls suppress exceptions, or write a line that must be whole."""


class Interrupted(BaseException):
    """The run was asked to end. It is not an ``Exception``, so that no source can catch it by mistake.

    Args:
        number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stop(StopSignals):
    """Whether the run is to end. As a context manager in the main thread it handles SIGTERM and SIGINT.

    Attributes:
        number: the signal that came; None if none did.
        in_source: the source's own code is running, which an exception may interrupt, because no record is in flight.
    """

    def __init__(self) -> None:
        super().__init__()
        self.in_source = False
        self._is_entered = self._is_repeated = False

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            super().__enter__()
            self._is_entered = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_entered:
            self._is_entered = False
            super().__exit__()

    def check(self) -> None:
        """Raise ``Interrupted`` if the run is to end."""
        if self.number is not None:
            raise Interrupted(self.number)

    def items(self, source: Iterable[Any]) -> Generator[Any, None, None]:
        """Yield the items of a source. A signal interrupts the source's code, but not the code that gets the items."""
        try:
            self.in_source = True
            self.check()  # for a signal that came just before
            for item in source:
                self.in_source = False
                yield item
                self.in_source = True
                if self.number is not None:
                    raise Interrupted(self.number)
            self.in_source = False
            self.check()  # the source may have ended early because of it
        finally:
            self.in_source = False
            close = getattr(source, "close", None)
            if close is not None and hasattr(source, "send"):  # let a generator that was not exhausted clean up
                close()

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Delay the exception while the source's code calls something that must complete."""
        was, self.in_source = self.in_source, False
        try:
            yield
        finally:
            self.in_source = was
        if was:
            self.check()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_repeated:
            self._is_repeated = False
        else:
            super()._handle(number, frame)
        if not self.in_source:
            return
        if not _is_logging(frame):
            raise Interrupted(number)
        self._is_repeated = True  # finish that line first
        _thread.start_new_thread(_send_again, (number,))  # threading.Thread takes locks, which may be held here


def _send_again(number: int) -> None:
    time.sleep(_RETRY_SECONDS)
    signal.pthread_kill(cast("int", threading.main_thread().ident), number)


def _is_logging(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_LOGGING):
            return True
        frame = frame.f_back
    return False
