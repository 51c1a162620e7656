"""The names of loggers, and the channels under them."""

from __future__ import annotations

import sys
from typing import Any

from balog.log.configuration import state
from balog.log.values.json_values import safe_str

_MAX_KNOWN = 256
_MAX_KNOWN_LENGTH = 256


class LoggerChannel:
    """The wrapped logger in structlog's terms: a name, and its channels by suffix.

    Attributes:
        known: channels by suffix, without limits of what ``under`` returns: for a lookup before it.
    """

    __slots__ = ("known", "name")

    name: str

    def __init__(self, name: object) -> None:
        self.name = safe_str(name)
        self.known: dict[str, str] = {}

    def under(self, suffix: str) -> str:
        """Return the channel under a suffix; the name itself without one."""
        known = self.known.get(suffix)
        if known is None:
            known = f"{self.name}.{suffix}" if self.name and suffix else self.name or suffix
            if len(self.known) < _MAX_KNOWN and len(suffix) <= _MAX_KNOWN_LENGTH:  # suffixes are few; messages many
                self.known[suffix] = known
        return known


class ApplicationChannel(LoggerChannel):
    """The channel of a logger without a name in a script: the application's name, as it is configured at each event."""

    __slots__ = ()

    def __init__(self) -> None:
        self.known = {}

    @property
    def name(self) -> str:  # type: ignore[override]
        """The application's name."""
        return safe_str(state.current().process_context.get()[0]["application"])

    def under(self, suffix: str) -> str:
        """Return the channel under a suffix; the application's name without one."""
        name = self.name
        return f"{name}.{suffix}" if suffix else name

    def __reduce__(self) -> tuple[Any, ...]:
        return ApplicationChannel, ()


def channel_of_caller(depth: int) -> LoggerChannel:
    """Return the channel of the module that calls: its name, or the application's in a script.

    Args:
        depth: the number of frames between this function and the caller, 1 for the caller of the calling function.
    """
    name = sys._getframe(depth + 1).f_globals.get("__name__")
    return LoggerChannel(name) if isinstance(name, str) and name != "__main__" else ApplicationChannel()
