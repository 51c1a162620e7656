"""What failures are told by: a line for each, but no more than anybody reads; the rest are counted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from balog.consumers.verdicts import Kind, Verdict, describe

__all__ = ["MOST_LINES", "PERIOD", "FailureLines"]

MOST_LINES = 100
"""Lines of one kind (of one consumer, or one topic) within a period; what else there is gets one line at its end."""

PERIOD = 10.0
"""Seconds."""

log = logging.getLogger("balog.consumers.failures")
"""What failures are told by, and nothing else, so that who has them otherwise can turn these lines off."""


class _Period:
    __slots__ = ("left_out", "since", "told")

    def __init__(self, since: float) -> None:
        self.since = since
        self.told = self.left_out = 0


class FailureLines:
    """Logs failures. Ten thousand that fail in the same place cost a number, not ten thousand lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._periods: dict[str, _Period] = {}

    def tell(self, verdicts: Sequence[Verdict]) -> None:
        """Log one line for each failure, and one for all that the other side was not ready for."""
        later: list[Verdict] = []
        for verdict in verdicts:
            task, kind, delay, _, error, attempt = verdict
            if error is None:
                continue
            if kind is Kind.LATER:
                later.append(verdict)
                continue
            desk, delivery = task.desk, task.delivery
            if self._may_tell(logging.ERROR, f"{desk.name} failed"):
                then = "dead-lettered" if kind is Kind.DEAD else f"again in {delay:g} s"
                log.error(
                    "%s failed on %s in %s, attempt %d of %d, %s: %s",
                    *(desk.name, delivery.id, delivery.lane.name, attempt, desk.limit, then, describe(error)),
                )
        if later:
            self._tell_later(later)

    def _tell_later(self, later: Sequence[Verdict]) -> None:
        task, _, delay, _, error, _ = later[0]
        name = task.desk.name
        if error is not None and self._may_tell(logging.INFO, f"{name} put events off"):
            what = task.delivery.id if len(later) == 1 else f"{len(later)} events"
            log.info(
                "%s will try %s in %s again in %g s: %s", name, what, task.delivery.lane.name, delay, describe(error)
            )

    def not_an_event(self, topic: str, id: str, error: Exception) -> None:
        """Log a message that can't be decoded."""
        if self._may_tell(logging.ERROR, f"{topic}: dead-lettered what is not an event"):
            log.error("%s in %s is not an event, dead-lettered: %s", id, topic, error)

    def not_routed(self, topic: str, id: str, attempt: int, limit: int, then: str, error: BaseException) -> None:
        """Log an event of which nobody can tell who wants it."""
        if self._may_tell(logging.ERROR, f"{topic}: could not tell who wants an event"):
            log.error(
                "who wants %s in %s can't be told, attempt %d of %d, %s: %s",
                *(id, topic, attempt, limit, then, describe(error)),
            )

    def sum_up(self, *, at_once: bool = False) -> None:
        """Log how many failures got no line in the periods that are over.

        Args:
            at_once: those that are not over, too.
        """
        now = time.monotonic()
        with self._lock:
            over = {what: one for what, one in self._periods.items() if at_once or now - one.since >= PERIOD}
            for what in over:
                del self._periods[what]
        for what, period in over.items():
            _tell_rest(what, period, now)

    def _may_tell(self, level: int, what: str) -> bool:
        if not log.isEnabledFor(level):
            return False
        now = time.monotonic()
        with self._lock:
            period = self._periods.get(what)
            if period is not None and now - period.since < PERIOD:
                if period.told >= MOST_LINES:
                    period.left_out += 1
                    return False
                period.told += 1
                return True
            before = period
            self._periods[what] = period = _Period(now)
            period.told = 1
        if before is not None:
            _tell_rest(what, before, now)
        return True


def _tell_rest(what: str, period: _Period, now: float) -> None:
    if period.left_out:
        level = logging.INFO if what.endswith("put events off") else logging.ERROR
        log.log(level, "%s %d more times in %.0f s", what, period.left_out, now - period.since)
