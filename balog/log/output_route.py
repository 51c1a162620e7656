"""An output of the logger with its conditions."""

from __future__ import annotations

from collections.abc import Callable

from balog.event import Event
from balog.log.outputs import LogOutput


class OutputRoute:
    """One output, and the conditions for the events that go to it.

    Args:
        name: its name in errors.
        threshold: the number of the lowest level, as in ``LEVELS``.
        where: returns whether an event goes to the output; None for all events.
        has_own_level: whether ``threshold`` is the output's own. Otherwise it is that of all outputs, which the levels
            of channels replace.
    """

    def __init__(
        self,
        name: str,
        output: LogOutput,
        threshold: int = 0,
        where: Callable[[Event], bool] | None = None,
        *,
        has_own_level: bool = True,
    ) -> None:
        self.name = name
        self.output = output
        self.threshold = threshold
        self.where = where
        self.has_own_level = has_own_level
        self.lost = 0

    def threshold_under(self, level: int) -> int:
        """Return the output's threshold for a channel that has its own."""
        return max(level, self.threshold) if self.has_own_level else level
