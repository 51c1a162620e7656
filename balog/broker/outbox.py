"""Write the newest item elsewhere in a thread, so that the stream never waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

_RETRY_SECONDS = 1.0


class Outbox:
    """Writes the newest item; it replaces an older one that still waits.

    A write that fails is reported once until one succeeds, and tried again after a second, and at the end.

    Args:
        name: for messages to people.
        write: writes an item; may raise anything.
        say: called with one line for the user.
        pause: seconds between two writes at least.
    """

    def __init__(self, name: str, write: Callable[[bytes], None], say: Callable[[str], None], *, pause: float) -> None:
        self._name = name
        self._write = write
        self._say = say
        self._pause = pause
        self._item: bytes | None = None
        self._error = ""
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def put(self, item: bytes) -> None:
        """Queue an item for writing."""
        with self._changed:
            self._item = item
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"balog {self._name}", daemon=True)
            self._thread.start()

    def close(self, deadline: float) -> None:
        """Write the waiting item, for at most ``deadline`` seconds, and report one that could not be written."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(deadline)
            if self._thread.is_alive():
                self._error = self._error or f"it took more than {deadline:g} seconds"
        if self._item is not None:
            self._say(f"{self._name}: the last STATE was not written: {self._error}")

    def _run(self) -> None:
        while (item := self._wait()) is not None:
            is_written = self._attempt(item)
            if self._is_closing and not is_written:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing, self._pause if is_written else _RETRY_SECONDS)

    def _wait(self) -> bytes | None:
        """Wait for an item, and return it; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._item is not None or self._is_closing)
            return self._item

    def _attempt(self, item: bytes) -> bool:
        try:
            self._write(item)
        except Exception as error:  # the data must go on
            reason = " ".join(str(error).split()) or type(error).__name__
            if not self._error and not self._is_closing:
                self._say(f"{self._name}: {reason}; trying again")
            self._error = reason
            return False
        if self._error:
            self._say(f"{self._name}: is written again")
        self._error = ""
        with self._changed:
            if self._item is item:
                self._item = None
        return True
