"""The threads that run plain handlers, and the steps around each call: ledger, hooks, logging context, results."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from inspect import isawaitable
from itertools import count, islice
from typing import Any

from balog.common.errors import TopicError
from balog.consumers.consumer import ReceivedEvent
from balog.consumers.hooks import Hook, Work
from balog.consumers.ledgers.ledger import LedgerEntry, remembers
from balog.consumers.outcomes import Disposition, Retry, TaskResult, find_halt
from balog.consumers.queueing.calls import HandlerCall
from balog.consumers.queueing.delivery import HandlerTask
from balog.consumers.queueing.scheduling import Schedule
from balog.consumers.routing import causes
from balog.consumers.running.leases import extend
from balog.consumers.running.run_context import RunContext
from balog.log.context import bound
from balog.topics.base import uptime

_Results = Mapping[HandlerTask, TaskResult]

FRESH = 1.0
"""Seconds after which the ledger is asked again about an event that waits for its call."""


class HandlerCaller:
    """Prepares calls of handlers and reports their results to the schedule."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._schedule = context.schedule
        self._hooks = context.hooks
        self._group = context.settings.group
        self._pid = os.getpid()
        self._remembers = remembers(context.ledger)

    def prepare(self, call: HandlerCall) -> Any:
        """Return the handler's argument: an event (or a received one), or a list of those for a batch.

        Raises:
            Retry: the ledger does not answer, or no event of the call is left.
        """
        self._stay_one_process()
        self._drop(call)
        if call.is_suspect:
            self._mark(call)
        events, handler, work = call.take_events(), call.handler, None
        if self._hooks.watch_calls:
            topic = call.tasks[0].delivery.subscription.name
            attempt = max(task.attempt for task in call.tasks)
            work = Work(topic, handler.consumer, tuple(events), attempt)
            self._hooks.call(Hook.before_process, work)
        call.start(work)
        if handler.takes_messages:
            received = [ReceivedEvent(event, task.delivery.message) for event, task in zip(events, call.tasks)]
            return received if handler.batch is not None else received[0]
        return list(events) if handler.batch is not None else events[0]

    def _drop(self, call: HandlerCall) -> None:
        """Drop messages that are no longer this process's, and events that another process has handled meanwhile."""
        asked, dropped = [], {}
        now = uptime()
        waited = [task.delivery for task in call.tasks if task.delivery.leased_until <= now]
        late = [delivery for delivery in waited if delivery.is_revivable(self._group)]
        if late:  # this process was too busy to extend them
            with suppress(TopicError):
                extend(late[0].subscription, self._group, late, self._context.settings.lease)
        for task in call.tasks:
            delivery = task.delivery
            if not delivery.is_held(self._group):
                dropped[task] = False
            elif task.is_suspect or task.calls.explained < delivery.message.attempts - 1:
                asked.append(task)  # another process may be about to end its call of this consumer
            elif delivery.known_at < now - FRESH:
                asked.append(task)
        if asked and self._remembers:
            dropped |= dict.fromkeys(self._known([task for task in asked if task.delivery.may_be_known]), True)
        if dropped:
            call.drop(dropped)
            if not call.tasks:
                raise Retry("no event of the call is left")

    def _known(self, tasks: Sequence[HandlerTask]) -> Iterable[HandlerTask]:
        if not tasks:
            return ()
        try:
            known = self._context.ledger.known(self._group, [task.delivery.id for task in tasks])
        except TopicError as error:
            raise Retry(str(error), after=5.0) from error
        return (task for task in tasks if task.is_known(known.get(task.delivery.id, {})))

    def _mark(self, call: HandlerCall) -> None:
        """Record that the call never ended, in case the process ends before :meth:`_unmark`."""
        task = call.tasks[0]
        try:
            self._context.ledger.record(self._group, [task.delivery.entry(call.handler.name, task.calls_unended)])
        except TopicError as error:
            raise Retry(str(error), after=5.0) from error

    def _unmark(self, call: HandlerCall, result: TaskResult) -> LedgerEntry:
        """Return the entry for the result of the call."""
        task = call.tasks[0]
        delivery, name = task.delivery, call.handler.name
        if result.disposition is Disposition.SUCCEEDED:
            return delivery.entry(name)
        if result.disposition is Disposition.DEAD:
            return delivery.entry(name, gave_up=result.reason)
        return delivery.entry(name, task.calls_after(result.disposition is Disposition.FAILED))

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
        self._stay_one_process()
        try:
            self._end(call, error)
        except BaseException as broken:  # such as a ledger's; otherwise the thread would end silently and the run never
            self._context.fail(broken)

    def _end(self, call: HandlerCall, error: BaseException | None) -> None:
        if call.is_over:  # it took too long, and its results are already decided
            self._schedule.finish(call, {})
            return
        halt = find_halt(error) if error is not None else None
        if halt is not None:
            self._context.fail(halt)  # first, so that no event of the call is tried again
        results = call.results(error)
        if call.tasks:
            self._record(call, results)
            self._report(call, error, results)
        self._schedule.finish(call, results)

    def _record(self, call: HandlerCall, results: _Results) -> None:
        """Record at once a suspect's result, and successes that another process, which got the event, would repeat."""
        name = call.handler.name
        entries = [self._unmark(call, results[call.tasks[0]])] if call.is_suspect else []
        for task, result in islice(results.items(), len(entries), None):
            if result.disposition is Disposition.SUCCEEDED and not task.delivery.is_held(self._group):
                entries.append(task.delivery.entry(name))
        if entries:
            with suppress(TopicError):  # the settler records it a moment later
                self._context.ledger.record(self._group, entries)

    def _stay_one_process(self) -> None:
        """End a child process that a handler forked and that returned from it: its parent owns the messages."""
        if os.getpid() != self._pid:
            os._exit(1)

    def abandon(self, call: HandlerCall) -> bool:
        """Go on without a call that passed its deadline; return False if it ended in the meantime."""
        error = timeout_error(call)
        results = call.results(error)
        if not self._schedule.abandon(call, results):
            return False
        self._report(call, error, results)
        return True

    def _report(self, call: HandlerCall, error: BaseException | None, results: _Results) -> None:
        if error is not None:
            self._context.failure_log.log_results(results)
        work = call.work
        if work is None:
            return
        self._hooks.call(Hook.after_process, work, error, time.perf_counter() - call.started)
        for event, result in zip(work.events, results.values() if error is not None else ()):
            if result.error is not None and result.disposition is not Disposition.DEAD:
                self._hooks.call(Hook.retried, work, event, result.error, result.delay)


def timeout_error(call: HandlerCall) -> TimeoutError:
    """Return the error of a call that took longer than its consumer's timeout."""
    return TimeoutError(f"no end after {call.handler.timeout:g} s")


class HandlerWorkerPool:
    """Worker threads that run plain handlers until the schedule stops.

    Args:
        size: the number of threads.
    """

    def __init__(self, schedule: Schedule, caller: HandlerCaller, size: int) -> None:
        self._schedule = schedule
        self._caller = caller
        self._size = size
        self._numbers = count(1)

    def start(self) -> None:
        """Start the threads; they end when the schedule stops."""
        for _ in range(self._size):
            self.add_worker()

    def add_worker(self) -> None:
        """Start a thread, also to replace one that hangs in an abandoned call and can't be ended."""
        threading.Thread(target=self._run, name=f"balog-worker-{next(self._numbers)}", daemon=True).start()

    def _run(self) -> None:
        while (call := self._schedule.take()) is not None:
            copy_context().run(self._handle, call)  # no event sees what a handler bound for another one
            if call.is_over:  # another thread has replaced this one
                return

    def _handle(self, call: HandlerCall) -> None:
        error: BaseException | None = None
        try:
            argument = self._caller.prepare(call)
            with self._caller.binding(call):
                result = call.handler.function(argument)
                if result is not None and isawaitable(result):
                    raise TypeError("the handler returned an awaitable, which nothing awaits; declare it async def")
        except BaseException as raised:
            error = raised
        try:
            self._caller.end(call, error)
        finally:
            error = None  # its traceback leads to this frame: only the garbage collector would free the circle
