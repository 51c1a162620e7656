"""Write items elsewhere in a thread, so that the stream never waits."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

_RETRY_SECONDS = 1.0


class Outbox:
    """Writes queued items in order; a full queue drops the oldest.

    A write that fails is said once until one succeeds, and tried again with what has come since: after a second, and at
    the end.

    Args:
        name: for messages to people.
        write: writes all of what waits; may raise anything.
        say: called with one line for the user.
        pause: seconds between two writes at least.
        most: items that may wait.
        most_bytes: bytes that may wait, beside the newest item.
        finish: called at the end, after the last write.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[bytes]], None],
        say: Callable[[str], None],
        *,
        pause: float,
        most: int,
        most_bytes: int,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._write = write
        self._say = say
        self._pause = pause
        self._most = most
        self._most_bytes = most_bytes
        self._finish = finish
        self._items: deque[bytes] = deque()
        self._bytes = 0
        self._gone = 0  # items that no longer wait
        self._dropped = 0
        self._error = ""
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def put(self, item: bytes) -> None:
        """Queue an item for writing."""
        with self._changed:
            self._items.append(item)
            self._bytes += len(item)
            while len(self._items) > 1 and (len(self._items) > self._most or self._bytes > self._most_bytes):
                self._take_first()
                self._dropped += self._most > 1  # if only the last item counts, nothing is lost
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"balog {self._name}", daemon=True)
            self._thread.start()

    def close(self, deadline: float) -> None:
        """Write queued items, for at most ``deadline`` seconds, and report those that could not be written."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(deadline)
            if self._thread.is_alive():
                self._error = self._error or f"it took more than {deadline:g} seconds"
        if self._items:
            what = "the last STATE was" if self._most == 1 else f"{len(self._items)} STATE messages were"
            self._say(f"{self._name}: {what} not written: {self._error}")
        if self._dropped:
            self._say(f"{self._name}: {self._dropped} STATE messages were dropped, older ones first")

    def _run(self) -> None:
        try:
            while waiting := self._wait():
                if self._attempt(*waiting):
                    self._rest(self._pause)
                elif self._is_closing:
                    return
                else:
                    self._rest(_RETRY_SECONDS)
        finally:
            try:
                self._finish()
            except Exception as error:
                self._say(f"{self._name}: {_line(error)}")

    def _wait(self) -> tuple[list[bytes], int] | None:
        """Wait for items, and return them with the number of the last; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._is_closing)
            return (list(self._items), self._gone + len(self._items)) if self._items else None

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing, max(0.0, until - time.monotonic()))

    def _attempt(self, items: list[bytes], last: int) -> bool:
        try:
            self._write(items)
        except Exception as error:  # the data must go on
            if not self._error and not self._is_closing:
                self._say(f"{self._name}: {_line(error)}; trying again")
            self._error = _line(error)
            return False
        if self._error:
            self._say(f"{self._name}: is written again")
        self._error = ""
        with self._changed:
            while self._gone < last:
                self._take_first()
        return True

    def _take_first(self) -> None:
        self._bytes -= len(self._items.popleft())
        self._gone += 1


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
