"""What surrounds each call of a handler, in whichever thread it runs: hooks, the mark of its cause, its end."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NoReturn

from balog.consumers.attempts import describe_giving_up, describe_success
from balog.consumers.causes import causes
from balog.consumers.delivery import Call
from balog.consumers.hook_calls import HookCalls
from balog.consumers.hooks import Work
from balog.consumers.ledger import Entry, Ledger
from balog.consumers.outcomes import Retry
from balog.consumers.scheduling import GRACE, Schedule
from balog.consumers.telling import FailureLines
from balog.consumers.verdicts import Kind, Verdict, ends_run, judge
from balog.errors import TopicError
from balog.recording.context import bound

__all__ = ["Caller"]


class Caller:
    """Prepares calls and takes what they come to.

    Args:
        fail: ends the run with an error that is no event's fault.
    """

    def __init__(
        self,
        schedule: Schedule,
        ledger: Ledger,
        group: str,
        hooks: HookCalls,
        lines: FailureLines,
        fail: Callable[[BaseException], None],
    ) -> None:
        self._schedule = schedule
        self._ledger = ledger
        self._group = group
        self._hooks = hooks
        self._lines = lines
        self._fail = fail
        self._pid = os.getpid()

    def prepare(self, call: Call) -> Any:
        """Give what the handler is called with: an event, or a list of them.

        Raises:
            Retry: the ledger, which has to know that a suspect is tried, is out of reach.
        """
        if call.is_suspect:
            self._mark(call)
        events = call.events = [task.take_event() for task in call.tasks]
        desk = call.desk
        if self._hooks.watch_calls:
            topic = call.tasks[0].delivery.lane.name
            attempt = max(task.attempt for task in call.tasks)
            call.work = Work(topic, desk.consumer, tuple(events), attempt)
            self._hooks.call(self._hooks.before_process, call.work)
        call.started = time.perf_counter()
        return list(events) if desk.batch is not None else events[0]

    def _mark(self, call: Call) -> None:
        """Record that a call never ended, which is true should the process end before :meth:`_unmark`."""
        task = call.tasks[0]
        try:
            self._ledger.record(self._group, [task.delivery.calls_entry(call.desk.name, task.calls_unended)])
        except TopicError as error:
            raise Retry(str(error), after=5.0) from error

    def _unmark(self, call: Call, verdict: Verdict) -> None:
        """Record what the call came to."""
        task = call.tasks[0]
        delivery, name, generation = task.delivery, call.desk.name, task.delivery.message.generation
        if verdict.kind is Kind.DONE:
            entry = Entry(delivery.id, name, describe_success(generation))
        elif verdict.kind is Kind.DEAD:
            entry = Entry(delivery.id, name, describe_giving_up(verdict.reason, generation))
        else:
            entry = delivery.calls_entry(name, task.calls_after(verdict.kind is Kind.AGAIN))
        with suppress(TopicError):  # then the settler's word, a moment later, will do
            self._ledger.record(self._group, [entry])

    def binding(self, call: Call) -> AbstractContextManager[None]:
        """A context that marks what the handler logs as caused by its event, so that it never comes back to it.

        Of a batch the mark names the first event, and all the consumers that led to any of them.
        """
        name = call.desk.name
        names = [name]
        for event in call.events:
            if "caused_by" in event.header.context:
                names = [one for one in causes(event) if one not in names] + names
        return bound(caused_by={"event": call.events[0].header.id, "consumers": names})

    def end(self, call: Call, error: BaseException | None) -> None:
        """Take the end of a call, in the thread in which it ran."""
        self.stay_one_process(error)
        try:
            self._end(call, error)
        except BaseException as broken:  # of a ledger, say; the thread would end in silence, and the run never
            self._fail(broken)

    def _end(self, call: Call, error: BaseException | None) -> None:
        if call.is_over:  # it took too long and its events have gone another way
            self._schedule.finish(call, ())
            return
        end = ends_run(error) if error is not None else None
        if end is not None:
            self._fail(end)  # first, so that none of the events begins again
        verdicts = judge(call, error)
        if call.is_suspect:
            self._unmark(call, verdicts[0])
        self._report(call, error, verdicts)
        self._schedule.finish(call, verdicts)

    def stay_one_process(self, error: BaseException | None = None) -> None:
        """End a child that a handler forked and that came back from it: what is in hand is its parent's."""
        if os.getpid() != self._pid:
            _end_child(error)

    def overrun(self, call: Call) -> None:
        """Deal with a call whose time ran out: ask it to end, or go on without it."""
        if call.cancel is not None and not call.is_expired:
            self._schedule.allow(call, GRACE)
            call.cancel()
            return
        error = too_long(call)
        verdicts = judge(call, error)
        if self._schedule.abandon(call, verdicts):
            self._report(call, error, verdicts)
            if call.retire is not None:
                call.retire()

    def _report(self, call: Call, error: BaseException | None, verdicts: Sequence[Verdict]) -> None:
        if error is not None:
            self._lines.tell(verdicts)
        work = call.work
        if work is None:
            return
        hooks = self._hooks
        hooks.call(hooks.after_process, work, error, time.perf_counter() - call.started)
        if error is not None and hooks.retried:
            for event, verdict in zip(work.events, verdicts):
                if verdict.error is not None and verdict.kind in (Kind.AGAIN, Kind.LATER):
                    hooks.call(hooks.retried, work, event, verdict.error, verdict.delay)


def too_long(call: Call) -> TimeoutError:
    """Give the error of a call that took longer than its consumer allows."""
    return TimeoutError(f"no end after {call.desk.timeout:g} s")


def _end_child(error: BaseException | None) -> NoReturn:
    code: object = None
    if isinstance(error, SystemExit):
        code = error.code
    elif error is not None:
        traceback.print_exception(type(error), error, error.__traceback__)
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
