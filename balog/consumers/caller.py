"""The steps around each call of a handler: ledger, hooks, logging context, results."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NoReturn

from balog.consumers.consumer import ReceivedEvent
from balog.consumers.delivery import HandlerCall
from balog.consumers.hooks import Work
from balog.consumers.ledger import LedgerEntry
from balog.consumers.outcomes import Retry
from balog.consumers.routing import causes
from balog.consumers.run_context import RunContext
from balog.consumers.scheduling import GRACE
from balog.consumers.task_results import Disposition, TaskResult, find_halt, results_of
from balog.error_redaction import redact_error
from balog.errors import TopicError
from balog.recording.context import bound


class HandlerCaller:
    """Prepares calls of handlers and reports their results to the schedule."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._schedule = context.schedule
        self._hooks = context.hooks
        self._pid = os.getpid()

    def prepare(self, call: HandlerCall) -> Any:
        """Return the handler's argument: an event (or a received one), or a list of those for a batch.

        Raises:
            Retry: the ledger can't record that a suspect event is tried.
        """
        if call.is_suspect:
            self._mark(call)
        events = call.events = [task.take_event() for task in call.tasks]
        handler = call.handler
        if self._hooks.watch_calls:
            topic = call.tasks[0].delivery.subscription.name
            attempt = max(task.attempt for task in call.tasks)
            call.work = Work(topic, handler.consumer, tuple(events), attempt)
            self._hooks.call(self._hooks.before_process, call.work)
        call.started = time.perf_counter()
        if handler.takes_messages:
            received = [ReceivedEvent(event, task.delivery.message) for event, task in zip(events, call.tasks)]
            return received if handler.batch is not None else received[0]
        return list(events) if handler.batch is not None else events[0]

    def _mark(self, call: HandlerCall) -> None:
        """Record that the call never ended, in case the process ends before :meth:`_unmark`."""
        task = call.tasks[0]
        try:
            self._context.ledger.record(
                self._context.settings.group, [task.delivery.calls_entry(call.handler.name, task.calls_unended)]
            )
        except TopicError as error:
            raise Retry(str(error), after=5.0) from error

    def _unmark(self, call: HandlerCall, result: TaskResult) -> None:
        """Record the result of the call."""
        task = call.tasks[0]
        delivery, name = task.delivery, call.handler.name
        if result.disposition is Disposition.SUCCEEDED:
            entry = delivery.success_entry(name)
        elif result.disposition is Disposition.DEAD:
            entry = delivery.giving_up_entry(name, result.reason)
        else:
            entry = delivery.calls_entry(name, task.calls_after(result.disposition is Disposition.FAILED))
        with suppress(TopicError):  # the settler records it a moment later
            self._record(entry)

    def _record(self, entry: LedgerEntry) -> None:
        self._context.ledger.record(self._context.settings.group, [entry])

    def binding(self, call: HandlerCall) -> AbstractContextManager[None]:
        """Return a context that marks events logged by the handler with ``caused_by``, so that they never return to it.

        For a batch it names the first event, and all the consumers that led to any event of the batch.
        """
        name = call.handler.name
        names = [name]
        for event in call.events:
            if "caused_by" in event.header.context:
                names = [name for name in causes(event) if name not in names] + names
        return bound(caused_by={"event": call.events[0].header.id, "consumers": names})

    def end(self, call: HandlerCall, error: BaseException | None) -> None:
        """Report the end of a call, in the thread that ran it."""
        self.stay_one_process(error)
        try:
            self._end(call, error)
        except BaseException as broken:  # such as a ledger's; otherwise the thread would end silently and the run never
            self._context.fail(broken)

    def _end(self, call: HandlerCall, error: BaseException | None) -> None:
        if call.is_over:  # it took too long, and its results are already decided
            self._schedule.finish(call, ())
            return
        halt = find_halt(error) if error is not None else None
        if halt is not None:
            self._context.fail(halt)  # first, so that no event of the call is tried again
        results = results_of(call, error)
        if call.is_suspect:
            self._unmark(call, results[0])
        self._report(call, error, results)
        self._schedule.finish(call, results)

    def stay_one_process(self, error: BaseException | None = None) -> None:
        """End a child process that a handler forked and that returned from it: its parent owns the messages."""
        if os.getpid() != self._pid:
            _end_child(error)

    def overrun(self, call: HandlerCall) -> None:
        """Ask a call that passed its deadline to end, or go on without it."""
        if call.cancel is not None and not call.is_expired:
            self._schedule.allow(call, GRACE)
            call.cancel()
            return
        error = timeout_error(call)
        results = results_of(call, error)
        if self._schedule.abandon(call, results):
            self._report(call, error, results)
            if call.retire is not None:
                call.retire()

    def _report(self, call: HandlerCall, error: BaseException | None, results: Sequence[TaskResult]) -> None:
        if error is not None:
            self._context.failure_log.log_results(results)
        work = call.work
        if work is None:
            return
        hooks = self._hooks
        hooks.call(hooks.after_process, work, error, time.perf_counter() - call.started)
        if error is not None and hooks.retried:
            for event, result in zip(work.events, results):
                if result.error is not None and result.disposition not in (Disposition.SUCCEEDED, Disposition.DEAD):
                    hooks.call(hooks.retried, work, event, result.error, result.delay)


def timeout_error(call: HandlerCall) -> TimeoutError:
    """Return the error of a call that took longer than its consumer's timeout."""
    return TimeoutError(f"no end after {call.handler.timeout:g} s")


def _end_child(error: BaseException | None) -> NoReturn:
    code: object = None
    if isinstance(error, SystemExit):
        code = error.code
    elif error is not None:
        sys.stderr.write(redact_error("".join(traceback.format_exception(error))))
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{redact_error(code)}\n")
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
