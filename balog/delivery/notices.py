"""Messages to people about one component, each sent once or at most every 30 seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from balog.common.errors import redact_error

AGAIN_SECONDS = 30.0
"""Seconds between two notices about the same thing, for a sink that keeps failing and recovering."""


class ThrottledNotices:
    """Notices about one component.

    Args:
        name: the component's name; each line begins with it.
        notify: takes a line.
    """

    def __init__(self, name: str, notify: Callable[[str], None]) -> None:
        self._name = name
        self._notify = notify
        self._sent: dict[str, float] = {}

    def send(self, line: str) -> None:
        """Send a line in any case."""
        self._notify(f"{self._name}: {redact_error(line)}")

    def send_once(self, line: str, about: str = "") -> None:
        """Send a line unless this line, or another one with the same ``about``, was sent before."""
        if (about or line) not in self._sent:
            self._sent[about or line] = time.monotonic()
            self.send(line)

    def is_due(self, about: str) -> bool:
        """Return whether a notice about this may be sent now, and count it as sent if so."""
        now = time.monotonic()
        if now - self._sent.get(about, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return False
        self._sent[about] = now
        return True

    def was_sent(self, about: str) -> bool:
        """Return whether there was a notice about this."""
        return about in self._sent
