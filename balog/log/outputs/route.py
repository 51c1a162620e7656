"""An output of the logger with its conditions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from balog.common.errors import complain
from balog.event import Event
from balog.log.outputs.base import LogOutput

counting = threading.RLock()  # a signal handler may log while its thread is counting
os.register_at_fork(before=counting.acquire, after_in_parent=counting.release, after_in_child=counting.release)


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

    def use_general(self, threshold: int) -> None:
        """Use the threshold of all outputs, unless this one has its own."""
        if not self.has_own_level:
            self.threshold = threshold

    def reject(self, error: BaseException) -> None:
        """Count an event that the output did not accept, and report the first."""
        with counting:
            self.lost += 1
            is_first = self.lost == 1
        if is_first and self.name != "stderr":
            complain(f"output {self.name}: {type(error).__name__}: {error}; rejected events are counted")
