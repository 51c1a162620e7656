"""Failure logging: a line for each failure, up to a limit per period; further ones are counted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from balog.consumers.error_text import error_line
from balog.consumers.queueing.task_results import Disposition, TaskResult

MAX_LINES = 100
"""Lines of one kind (of one consumer, or one topic) in a period; one line at its end counts the others."""

PERIOD = 10.0
"""Seconds."""

log = logging.getLogger("balog.consumers.failures")
"""Logger for handler failures only, so you can silence it separately."""


class _Period:
    __slots__ = ("left_out", "logged", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.logged = self.left_out = 0


class FailureLog:
    """Logs failures. Ten thousand failures in the same place cost a hundred lines and a count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._periods: dict[str, _Period] = {}

    def log_results(self, results: Sequence[TaskResult]) -> None:
        """Log a line for each failure, and one line for all postponed events.

        A handler of messages reports its failures itself.
        """
        postponed: list[TaskResult] = []
        for result in results:
            task, disposition, delay, _, error, attempt, _ = result
            if error is None or task.handler.takes_messages:
                continue
            if disposition in (Disposition.POSTPONED, Disposition.REQUEUED):
                postponed.append(result)
                continue
            handler, delivery = task.handler, task.delivery
            if self._may_log(logging.ERROR, f"{handler.name} failed"):
                then = "dead-lettered" if disposition is Disposition.DEAD else f"again in {delay:g} s"
                log.error(
                    "%s failed on %s in %s, attempt %d of %d, %s: %s",
                    *(handler.name, delivery.id, delivery.subscription.name, attempt, handler.max_attempts, then),
                    error_line(error),
                )
        if postponed:
            self._log_postponed(postponed)

    def _log_postponed(self, postponed: Sequence[TaskResult]) -> None:
        task, _, delay, _, error = postponed[0][:5]
        name = task.handler.name
        if error is not None and self._may_log(logging.INFO, f"{name} put events off"):
            what = task.delivery.id if len(postponed) == 1 else f"{len(postponed)} events"
            log.info(
                "%s will try %s in %s again in %g s: %s",
                *(name, what, task.delivery.subscription.name, delay, error_line(error)),
            )

    def not_an_event(self, topic: str, id: str, error: Exception) -> None:
        """Log a message that can't be decoded."""
        if self._may_log(logging.ERROR, f"{topic}: dead-lettered what is not an event"):
            log.error("%s in %s is not an event, dead-lettered: %s", id, topic, error)

    def not_routed(self, topic: str, id: str, error: BaseException) -> None:
        """Log an event that can't be routed."""
        if self._may_log(logging.ERROR, f"{topic}: could not route an event"):
            log.error("%s in %s can't be routed, dead-lettered: %s", id, topic, error_line(error))

    def sum_up(self, *, at_once: bool = False) -> None:
        """Log how many failures got no line in the periods that are over.

        Args:
            at_once: include the periods that are not over.
        """
        now = time.monotonic()
        with self._lock:
            over = {what: period for what, period in self._periods.items() if at_once or now - period.since >= PERIOD}
            for what in over:
                del self._periods[what]
        for what, period in over.items():
            _log_left_out(what, period, now)

    def _may_log(self, level: int, what: str) -> bool:
        if not log.isEnabledFor(level):
            return False
        with self._lock:
            period = self._periods.setdefault(what, _Period(time.monotonic()))
            if period.logged >= MAX_LINES:
                period.left_out += 1
                return False
            period.logged += 1
            return True


def _log_left_out(what: str, period: _Period, now: float) -> None:
    if period.left_out:
        level = logging.INFO if what.endswith("put events off") else logging.ERROR
        log.log(level, "%s %d more times in %.0f s", what, period.left_out, now - period.since)
