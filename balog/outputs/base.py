"""What an output is: something that takes encoded events, one at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["Output"]


class Output(ABC):
    """Where the logger's events go. An output may raise: the logger sees to it that the application never notices."""

    @abstractmethod
    def write(self, level: str, event: bytes) -> None:
        """Write one event, whole or not at all. Called from any thread."""

    def flush(self, deadline: float) -> int:
        """Wait at most ``deadline`` seconds until what was written is where it belongs; give what was lost so far."""
        return 0

    def close(self, deadline: float) -> int:
        """Flush, and give files and threads back; a later write opens them again."""
        return self.flush(deadline)
