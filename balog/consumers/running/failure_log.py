"""Failure logging: a line for each failure, up to a limit per period; further ones are counted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from balog.consumers.error_text import error_line
from balog.consumers.outcomes import Disposition, TaskResult
from balog.consumers.queueing.delivery import HandlerTask

MAX_LINES = 100
"""Lines of one kind (of one consumer, or one topic) in a period; one line at its end counts the others."""

PERIOD = 10.0
"""Seconds."""

log = logging.getLogger("balog.consumers.failures")
"""Logger for handler failures only, so you can silence it separately."""


class FailureLog:
    """Logs failures. Ten thousand failures in the same place cost a hundred lines and a count.

    Attributes:
        has_open_periods: there is something to sum up, now or later.
    """

    def __init__(self) -> None:
        self.has_open_periods = False
        self._lock = threading.Lock()
        self._periods: dict[str, tuple[float, int]] = {}
        """By kind, when its period began, in seconds of ``time.monotonic``, and the number of failures since."""

    def log_results(self, results: Mapping[HandlerTask, TaskResult]) -> None:
        """Log a line for each failure, and one line for all postponed events.

        A handler of messages reports its failures itself.
        """
        postponed: list[HandlerTask] = []
        for task, (disposition, delay, _, error, attempt, _) in results.items():
            if error is None or task.handler.takes_messages:
                continue
            if disposition in (Disposition.POSTPONED, Disposition.REQUEUED):
                postponed.append(task)
                continue
            handler, delivery = task.handler, task.delivery
            if self._may_log(logging.ERROR, f"{handler.name} failed"):
                then = "dead-lettered" if disposition is Disposition.DEAD else f"again in {delay:g} s"
                log.error(
                    "%s failed on %s in %s, attempt %d of %d, %s: %s",
                    *(handler.name, delivery.id, delivery.subscription.name, attempt, handler.max_attempts, then),
                    error_line(error),
                )
        if not postponed:
            return
        task, (_, delay, _, error, _, _) = postponed[0], results[postponed[0]]
        name = task.handler.name
        if error is not None and self._may_log(logging.INFO, f"{name} put events off"):
            what = task.delivery.id if len(postponed) == 1 else f"{len(postponed)} events"
            log.info(
                "%s will try %s in %s again in %g s: %s",
                *(name, what, task.delivery.subscription.name, delay, error_line(error)),
            )

    def not_routed(self, topic: str, id: str, error: BaseException, *, is_event: bool = True) -> None:
        """Log a message that can't be decoded, or an event that can't be routed."""
        what = "could not route an event" if is_event else "dead-lettered what is not an event"
        if self._may_log(logging.ERROR, f"{topic}: {what}"):
            why, text = ("can't be routed", error_line(error)) if is_event else ("is not an event", error)
            log.error("%s in %s %s, dead-lettered: %s", id, topic, why, text)

    def sum_up(self, *, at_once: bool = False) -> None:
        """Log how many failures got no line in the periods that are over.

        Args:
            at_once: include the periods that are not over.
        """
        now = time.monotonic()
        with self._lock:
            over = {what: each for what, each in self._periods.items() if at_once or now - each[0] >= PERIOD}
            for what in over:
                del self._periods[what]
            self.has_open_periods = bool(self._periods)
        for what, (since, count) in over.items():
            if count > MAX_LINES:
                level = logging.INFO if what.endswith("put events off") else logging.ERROR
                log.log(level, "%s %d more times in %.0f s", what, count - MAX_LINES, now - since)

    def _may_log(self, level: int, what: str) -> bool:
        if not log.isEnabledFor(level):
            return False
        with self._lock:
            self.has_open_periods = True
            since, count = self._periods.get(what) or (time.monotonic(), 0)
            self._periods[what] = since, count + 1
            return count < MAX_LINES
