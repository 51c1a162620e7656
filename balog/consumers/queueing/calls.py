"""Calls of handlers, from waiting tasks to results: batches, the order of events with the same key, and limits."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from balog.common.errors import redact_error
from balog.consumers.error_text import error_line, format_traceback
from balog.consumers.hooks import Work
from balog.consumers.outcomes import Disposition, PartialFailure, Reject, Requeue, Retry, TaskResult, find_halt
from balog.consumers.queueing.delivery import HandlerTask
from balog.consumers.routing import Handler
from balog.event import Event


@dataclass(slots=True, eq=False)
class HandlerCall:
    """One call of a handler, with one task or, for a batch, several.

    Attributes:
        dropped: former tasks that were not called: True for one that succeeded elsewhere, False for a lost message.
        started: when the handler was called, in seconds of ``time.perf_counter``; 0 before.
        deadline: when the call must end, in seconds of ``time.monotonic``; 0 without a timeout.
        is_expired: the call took too long and was asked to end.
        is_over: the result was decided without the call's end; a late return changes nothing.
    """

    handler: Handler
    tasks: list[HandlerTask]
    dropped: dict[HandlerTask, bool] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    work: Work | None = None
    started: float = 0.0
    deadline: float = 0.0
    is_expired: bool = False
    is_over: bool = False

    @property
    def is_suspect(self) -> bool:
        """Whether its first task is suspect."""
        return self.tasks[0].is_suspect

    def begin(self) -> int:
        """Note that a thread has it, and set its deadline; return how many messages' handling begins."""
        if self.handler.timeout is not None:
            self.deadline = time.monotonic() + self.handler.timeout
        begun = 0
        for task in self.tasks:
            begun += task.delivery.begin_call()
        return begun

    def drop(self, tasks: Mapping[HandlerTask, bool]) -> None:
        """Call the handler without some tasks: True for one that succeeded elsewhere, False for a lost message."""
        self.dropped.update(tasks)
        self.tasks = [task for task in self.tasks if task not in tasks]

    def take_events(self) -> list[Event]:
        """Return the events for the handler."""
        self.events = [task.take_event() for task in self.tasks]
        return self.events

    def start(self, work: Work | None) -> None:
        """Note that the handler is called now."""
        self.work = work
        self.started = time.perf_counter()

    def expire(self, seconds: float) -> None:
        """Note that the call was asked to end, which may take so many seconds."""
        self.is_expired = True
        self.deadline = time.monotonic() + seconds

    def abandon(self) -> None:
        """Note that its result is decided without its end."""
        self.is_over = True

    def results(self, error: BaseException | None) -> dict[HandlerTask, TaskResult]:
        """Return the result for each task, and then for each one that was dropped.

        Args:
            error: what the handler raised.
        """
        if error is None:
            results = dict.fromkeys(self.tasks, _SUCCESS)
        elif isinstance(error, PartialFailure):
            results = _results_of_partial_failure(self.tasks, error)
        else:
            results = {task: _result_of_error(task, error) for task in self.tasks}
        for task, is_known in self.dropped.items():
            results[task] = _KNOWN if is_known else _LEFT
        return results


_SUCCESS = TaskResult(Disposition.SUCCEEDED)
_KNOWN = TaskResult(Disposition.KNOWN)
_LEFT = TaskResult(Disposition.LEFT)
_AT_ONCE = TaskResult(Disposition.POSTPONED)


def _results_of_partial_failure(tasks: Iterable[HandlerTask], error: PartialFailure) -> dict[HandlerTask, TaskResult]:
    ids = {task.delivery.id for task in tasks}
    unknown = [id for id in error.failed if id not in ids]
    if unknown:  # so the events that it means are unknown, too
        wrong = ValueError(f"PartialFailure names {unknown[0]!r:.100}, which is not in the batch")
        wrong.__cause__ = error
        return {task: _result_of_error(task, wrong) for task in tasks}
    results = {}
    failed_keys: set[str] = set()
    for task in tasks:
        result = _SUCCESS
        if task.delivery.id in error.failed:
            why = error.failed[task.delivery.id]
            if not isinstance(why, BaseException):
                why = PartialFailure([task.delivery.id], why).with_traceback(error.__traceback__)
            result = _result_of_error(task, why)
        if task.key is not None:
            if result.disposition is not Disposition.SUCCEEDED:
                failed_keys.add(task.key)
            elif task.key in failed_keys:  # the handler may have stopped at the failed one, so it comes again behind it
                result = _AT_ONCE
        results[task] = result
    return results


def _result_of_error(task: HandlerTask, error: BaseException) -> TaskResult:
    handler, attempt = task.handler, task.attempt
    if find_halt(error) is not None:
        return _AT_ONCE
    if isinstance(error, Retry):
        delay = _pause(handler, task.postponements + 1) if error.after is None else max(0.0, error.after)
        return TaskResult(Disposition.POSTPONED, delay, error=error)
    if isinstance(error, Requeue):
        return TaskResult(Disposition.REQUEUED, error.after, error=error, counts=error.counts)
    if isinstance(error, Reject) and handler.takes_messages:
        return TaskResult(Disposition.DEAD, reason=redact_error(str(error)), error=error, attempt=attempt)
    if isinstance(error, Reject) or attempt >= handler.max_attempts:
        reason = f"{handler.name}: {error_line(error)}\n{format_traceback(error)}"
        return TaskResult(Disposition.DEAD, reason=reason, error=error, attempt=attempt)
    return TaskResult(Disposition.FAILED, _pause(handler, attempt), error=error, attempt=attempt)


def _pause(handler: Handler, failures: int) -> float:
    """Draw a delay and round it down to one of eight values in each octave.

    Events that failed together get few different delays, so one transaction releases many of them.
    """
    fraction, exponent = math.frexp(handler.backoff.delay(failures))
    return round(math.ldexp(math.floor(fraction * 16) / 16, exponent), 3)


class ConsumerQueue:
    """The tasks that wait for one handler: forms batches, and keeps the order of events with the same key.

    Methods that accept tasks return the calls that can start now. The queue knows no threads: the caller holds the
    schedule's lock.

    Attributes:
        running: calls that are running, oldest first.
        over_limit: calls that wait only because the handler has its maximum of concurrent calls.
        forming_due: when the forming batch is called as it is, in seconds of ``time.monotonic``.
    """

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.running: dict[HandlerCall, None] = {}
        self.over_limit: deque[HandlerCall] = deque()
        self.forming_due = 0.0
        self._forming: list[HandlerTask] = []
        self._waiting: dict[str, deque[HandlerTask]] = {}
        """By key, the tasks behind those in a call or a forming batch."""
        self._active: set[str] = set()
        """Keys with tasks in a call or the forming batch."""
        self._blocked: set[str] = set()
        """Keys of which a call is running, or a failed task waits for its retry."""

    @property
    def is_forming(self) -> bool:
        """Whether a batch waits for more events or for ``forming_due``."""
        return bool(self._forming)

    @property
    def is_at_limit(self) -> bool:
        """Whether the handler has its maximum of concurrent calls."""
        return self.handler.max_calls is not None and len(self.running) >= self.handler.max_calls

    def submit(self, task: HandlerTask) -> list[HandlerCall]:
        """Add a task; one with a key waits for its turn."""
        if task.key is None:
            return self._start(task)
        self._waiting.setdefault(task.key, deque()).append(task)
        return self._start_waiting(task.key)

    def end_call(self, key: str, failed: Sequence[HandlerTask]) -> list[HandlerCall]:
        """Note that the call of a key ended.

        Args:
            failed: tasks to retry, in order. The key stays blocked until ``unblock`` if there are any.
        """
        self._active.discard(key)
        self._waiting[key].extendleft(reversed(failed))
        return [] if failed else self.unblock(key)

    def unblock(self, key: str) -> list[HandlerCall]:
        """Start the next tasks of a key."""
        self._blocked.discard(key)
        return self._start_waiting(key)

    def launch(self) -> list[HandlerCall]:
        """Call the forming batch as it is."""
        if not self._forming:
            return []
        tasks, self._forming = self._forming, []
        self._blocked.update(task.key for task in tasks if task.key is not None)
        return [HandlerCall(self.handler, tasks)]

    def find_overdue(self, now: float) -> tuple[list[HandlerCall], float | None]:
        """Return the calls that passed their deadline, and the next deadline; None without further ones."""
        later = [call.deadline for call in self.running if call.deadline > now]
        return [call for call in self.running if call.deadline <= now], min(later, default=None)

    def clear(self) -> None:
        """Drop every task that is not in a running call."""
        for waiting in (self.over_limit, self._forming, self._waiting, self._active, self._blocked):
            waiting.clear()

    def _runs_alone(self, task: HandlerTask) -> bool:
        # A poison event must not fail its neighbours: after a failed attempt or a crash, its call has no other events.
        if self.handler.takes_messages:  # such a handler finds the poison event of a batch itself
            return self.handler.batch is None
        return self.handler.batch is None or task.is_suspect or task.attempt > 1

    def _start(self, task: HandlerTask) -> list[HandlerCall]:
        batch = self.handler.batch
        if batch is None or self._runs_alone(task):
            return [HandlerCall(self.handler, [task])]
        if not self._forming:
            self.forming_due = time.monotonic() + batch.wait
        self._forming.append(task)
        return self.launch() if len(self._forming) >= batch.size else []

    def _start_waiting(self, key: str) -> list[HandlerCall]:
        """Start the next tasks of a key, as many as may run together."""
        calls: list[HandlerCall] = []
        waiting = self._waiting[key]
        while waiting and key not in self._blocked:
            if self._runs_alone(waiting[0]):
                if key in self._active:
                    break  # the forming batch has earlier ones
                self._blocked.add(key)
            self._active.add(key)
            calls += self._start(waiting.popleft())
        if not waiting and key not in self._active and key not in self._blocked:
            del self._waiting[key]
        return calls
