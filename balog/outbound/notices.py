"""What people are told of a sink: each thing once, or not too often."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["News"]

AGAIN_SECONDS = 30.0
"""A sink that fails now and then is told of no more often."""


class News:
    """Lines about one sink.

    Args:
        name: the sink's; each line begins with it.
        say: takes a line.
    """

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name = name
        self._say = say
        self._told: dict[str, float] = {}

    def tell(self, line: str) -> None:
        """Tell a line."""
        self._say(f"{self._name}: {line}")

    def once(self, line: str, about: str = "") -> None:
        """Tell a line, unless it, or one about the same, was told before."""
        if (about or line) not in self._told:
            self._told[about or line] = time.monotonic()
            self.tell(line)

    def is_due(self, about: str) -> bool:
        """Whether a line about this may be told now, which then counts as told."""
        now = time.monotonic()
        if now - self._told.get(about, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return False
        self._told[about] = now
        return True

    def was_told(self, about: str) -> bool:
        """Whether there was a line about this."""
        return about in self._told
