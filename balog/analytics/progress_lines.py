"""Progress where stderr is not a terminal: lines for the log of a cron job or of CI."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

_EVERY = 30.0  # seconds


class ProgressLines:
    """Reports the current step every half minute, until it is closed.

    Args:
        say: reports a line.
        step: the first step.
        every: seconds between two lines.

    Attributes:
        step: the current step.
        note: returns what is known of the step, such as finished tasks; "" for nothing.
    """

    def __init__(self, say: Callable[[str], None], step: str, every: float = _EVERY) -> None:
        self.step = step
        self.note: Callable[[], str] = str
        self._say = say
        self._every = every
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="balog-progress-lines")
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            note = self.note()
            self.report(f"{self.step}{note and f' ({note})'}, {time.monotonic() - self._began:,.0f} s")

    def report(self, line: str) -> None:
        """Report a line. A closed stderr does not end the work."""
        with suppress(OSError):
            self._say(line)

    def close(self) -> None:
        """Report nothing more."""
        self._stop.set()
        self._thread.join()
