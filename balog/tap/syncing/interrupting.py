"""How a run hears that it is to end: between two records by a number, inside of a source's code by an exception.

The first SIGTERM or SIGINT lets the record in hand be written. A source that waits, for a server or in a pause, is
interrupted in that; while a record is made, written or waits for a slow reader nothing is. The second ends the process.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import cast

from balog.signals import StopSignals

__all__ = ["Interrupted", "Stop"]

_AGAIN = 0.02  # seconds


class Interrupted(BaseException):
    """The run was asked to end; no ``except Exception`` of a source may hold it up.

    Args:
        number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stop(StopSignals):
    """Whether the run is to end. As a context, which is for the main thread, it takes SIGTERM and SIGINT.

    Attributes:
        number: the signal that came; None as long as none did.
        in_source: the source's own code is running, which may be interrupted by an exception: no record is in hand.
            Who sets it asks ``check`` then, for a signal that came just before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.in_source = False
        self._is_entered = self._is_asked_again = False

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            super().__enter__()
            self._is_entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_entered:
            self._is_entered = False
            super().__exit__(kind, error, trace)

    def check(self) -> None:
        """Raise ``Interrupted`` when the run is to end."""
        if self.number is not None:
            raise Interrupted(self.number)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the exception away while the source's code has this side do something that must be whole."""
        was, self.in_source = self.in_source, False
        try:
            yield
        finally:
            self.in_source = was
        if was:
            self.check()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_asked_again:
            self._is_asked_again = False
        else:
            super()._handle(number, frame)
        if not self.in_source:
            return
        if not _is_writing(frame):
            raise Interrupted(number)
        self._is_asked_again = True  # the source logs: that line is finished first
        _thread.start_new_thread(_ask_again, (number,))  # threading.Thread takes locks, which may be held here


def _ask_again(number: int) -> None:
    time.sleep(_AGAIN)
    signal.pthread_kill(cast("int", threading.main_thread().ident), number)


def _is_writing(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("balog.outputs"):
            return True
        frame = frame.f_back
    return False
