"""The interface of an output."""

from __future__ import annotations

from abc import ABC, abstractmethod


class LogOutput(ABC):
    """A destination of the logger's events. It may raise; the logger does not pass the error to the application."""

    @abstractmethod
    def write(self, level: str, event: bytes) -> None:
        """Write one encoded event, completely or not at all. Called from any thread."""

    def flush(self, deadline: float) -> int:
        """Wait at most ``deadline`` seconds until events are delivered. Return how many were lost so far."""
        return 0

    def close(self, deadline: float) -> int:
        """Flush, and release files and threads; a later write opens them again."""
        return self.flush(deadline)
