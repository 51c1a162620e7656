"""Waits that end when they are cancelled."""

from __future__ import annotations

import threading
import time

_thread = threading.local()


class Cancelled(BaseException):
    """Raised in a worker's thread whose results are no longer needed; no ``except Exception`` catches it."""


def cancelled_by(event: threading.Event) -> None:
    """Make ``pause`` in this thread raise ``Cancelled`` when the event is set."""
    _thread.event = event


def pause(seconds: float) -> None:
    """Wait. In the main thread a signal handler that raises ends it, in a worker's thread its cancellation.

    Args:
        seconds: how long to wait.

    Raises:
        Cancelled: the thread's event was set; see ``cancelled_by``.
    """
    event: threading.Event | None = getattr(_thread, "event", None)
    if event is None:
        time.sleep(max(0.0, seconds))
    elif event.wait(max(0.0, seconds)):
        raise Cancelled
