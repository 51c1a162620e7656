"""Waiting that ends when nobody wants what comes after it."""

from __future__ import annotations

import threading
import time

__all__ = ["Cancelled", "cancelled_by", "pause"]

_thread = threading.local()


class Cancelled(BaseException):
    """Raised in a worker's thread whose results nobody wants any more; no ``except Exception`` may hold it up."""


def cancelled_by(event: threading.Event) -> None:
    """Have ``pause`` in this thread end with ``Cancelled`` when the event is set."""
    _thread.event = event


def pause(seconds: float) -> None:
    """Wait. In the main thread a signal's handler that raises ends it, in a worker's thread its cancellation.

    Raises:
        Cancelled: see there.
    """
    event: threading.Event | None = getattr(_thread, "event", None)
    if event is None:
        time.sleep(max(0.0, seconds))
    elif event.wait(max(0.0, seconds)):
        raise Cancelled
