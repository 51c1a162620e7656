"""The calls of an engine: from waiting tasks over ready calls to running ones, with their timers and deadlines."""

from __future__ import annotations

import math
import sched
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence

from balog.consumers.queueing.calls import ConsumerQueue, HandlerCall
from balog.consumers.queueing.delivery import HandlerTask
from balog.consumers.routing import Handler


class Timers:
    """Actions by the moment at which they are due, in seconds of ``time.monotonic``. The caller holds the lock.

    Args:
        wake: called when an action is due before the moment that ``run`` returned, so that the thread waits anew.
    """

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._actions = sched.scheduler(time.monotonic, lambda seconds: None)
        self._next = math.inf
        self._planned: dict[Hashable, float] = {}

    def add(self, due: float, action: Callable[..., object], *arguments: object) -> None:
        """Schedule an action."""
        self._actions.enterabs(due, 0, action, arguments)
        if due < self._next:
            self._next = due
            self._wake()

    def add_once(self, key: Hashable, due: float, action: Callable[..., object], *arguments: object) -> None:
        """Schedule an action unless the key has one that is due no later."""
        if due < self._planned.get(key, math.inf):
            self._planned[key] = due
            self.add(due, self._run_once, key, due, action, arguments)

    def run(self) -> float | None:
        """Run the actions that are due and return the seconds until the next one; None when there is none."""
        rest = self._actions.run(blocking=False)
        self._next = math.inf if rest is None else time.monotonic() + rest
        return rest

    def _run_once(self, key: Hashable, due: float, action: Callable[..., object], arguments: Sequence[object]) -> None:
        if self._planned.get(key) == due:  # otherwise an earlier one ran, which has scheduled the next
            del self._planned[key]
            action(*arguments)


class CallQueue:
    """Calls in the order in which they run. The caller holds the lock.

    Args:
        lock: the schedule's; workers wait on a condition of it.
        handlers: all handlers of the run.
        wake_main: wakes the main thread, which runs the timers.
        wake_loop: wakes the event loop's thread, because a call for it is ready.

    Attributes:
        ready: tasks in ready calls.
        running: calls that are running.
        begun: messages whose handling began with a call.
        changed: notified when a worker thread may find a call.
    """

    def __init__(
        self,
        lock: threading.Lock,
        handlers: Iterable[Handler],
        wake_main: Callable[[], object],
        wake_loop: Callable[[], object],
    ) -> None:
        self.ready = 0
        self.running = self.begun = 0
        self.changed = threading.Condition(lock)
        self._timers = Timers(wake_main)
        self._wake_loop = wake_loop
        self._queues = {handler: ConsumerQueue(handler) for handler in handlers}
        self._calls: dict[bool, deque[HandlerCall]] = {False: deque(), True: deque()}  # by whether they are async
        self._alone: HandlerCall | None = None
        self._wait_to_be_alone: deque[HandlerCall] = deque()
        self._in_calls = 0
        self._overdue: list[HandlerCall] = []
        self._is_closed = False

    @property
    def pending(self) -> int:
        """Tasks in calls that are ready or running."""
        return self.ready + self._in_calls

    # -- from tasks to calls ------------------------------------------------------------------------------------------

    def submit(self, task: HandlerTask) -> None:
        """Add a task to the queue of its handler."""
        queue = self._queues[task.handler]
        self._add(queue, queue.submit(task))

    def submit_later(self, task: HandlerTask, delay: float) -> None:
        """Add a task after so many seconds."""
        self._timers.add(time.monotonic() + delay, self.submit, task)

    def launch(self, handlers: Iterable[Handler]) -> None:
        """Call the handlers' forming batches as they are."""
        for handler in handlers:
            self._add(self._queues[handler], self._queues[handler].launch())

    def _add(self, queue: ConsumerQueue, calls: Sequence[HandlerCall]) -> None:
        if self._is_closed:
            return
        for call in calls:
            self._make_ready(call)
        if queue.is_forming:
            self._timers.add_once((queue, "batch"), queue.forming_due, self._launch_due, queue)

    def _launch_due(self, queue: ConsumerQueue) -> None:
        is_due = queue.is_forming and queue.forming_due <= time.monotonic()
        self._add(queue, queue.launch() if is_due else ())

    def _make_ready(self, call: HandlerCall, *, is_first: bool = False) -> None:
        """Add a call behind all others, or before them."""
        self.ready += len(call.tasks)
        is_async = call.handler.is_async
        calls = self._calls[is_async]
        calls.appendleft(call) if is_first else calls.append(call)
        if not is_async:
            self.changed.notify()
        elif is_first or len(calls) == 1:
            self._wake_loop()

    # -- running calls ------------------------------------------------------------------------------------------------

    def take(self, is_async: bool) -> HandlerCall | None:
        """Begin the next call for the event loop, or for a worker thread; None when there is none now."""
        calls = self._calls[is_async]
        while calls:
            call = calls.popleft()
            self.ready -= len(call.tasks)
            queue = self._queues[call.handler]
            runs_alone = call.tasks[0].runs_alone
            if queue.is_at_limit:
                queue.over_limit.append(call)
            elif runs_alone and self._alone is not None:
                self._wait_to_be_alone.append(call)
            else:
                if runs_alone:
                    self._alone = call
                self._begin(queue, call)
                return call
        return None

    def _begin(self, queue: ConsumerQueue, call: HandlerCall) -> None:
        queue.running[call] = None
        self.running += 1
        self._in_calls += len(call.tasks)
        self.begun += call.begin()
        if call.deadline:
            self._plan_deadline(queue, call.deadline)

    def is_running(self, call: HandlerCall) -> bool:
        """Return whether a call has not ended."""
        return call in self._queues[call.handler].running

    def remove(self, call: HandlerCall) -> None:
        """Remove a call that ended from the running ones."""
        del self._queues[call.handler].running[call]
        self.running -= 1
        self._in_calls -= len(call.tasks) + len(call.dropped)

    def end(self, call: HandlerCall, retries: dict[str, list[tuple[HandlerTask, float]]]) -> None:
        """Start what waited for the end of a call.

        Args:
            retries: by each key of the call's tasks, those to be called again, each with the seconds until then. The
                key goes on when the first of them is due.
        """
        queue = self._queues[call.handler]
        for key, tasks in retries.items():
            self._add(queue, queue.end_call(key, [task for task, _ in tasks]))
            if tasks:
                self._timers.add(time.monotonic() + tasks[0][1], self._unblock, queue, key)
        if queue.over_limit:
            self._make_ready(queue.over_limit.popleft(), is_first=True)
        if call is self._alone:
            self._alone = None
            if self._wait_to_be_alone:
                self._make_ready(self._wait_to_be_alone.popleft(), is_first=True)

    def _unblock(self, queue: ConsumerQueue, key: str) -> None:
        if not self._is_closed:
            self._add(queue, queue.unblock(key))

    # -- timers and the end -------------------------------------------------------------------------------------------

    def run_timers(self) -> tuple[float | None, list[HandlerCall]]:
        """Run what is due; return the seconds until the next timer, and the calls that passed their deadline since."""
        rest = self._timers.run()
        overdue, self._overdue = self._overdue, []
        return rest, overdue

    def expire(self, call: HandlerCall, seconds: float) -> None:
        """Extend the deadline of a call that was asked to end."""
        call.expire(seconds)
        self._plan_deadline(self._queues[call.handler], call.deadline)

    def _plan_deadline(self, queue: ConsumerQueue, deadline: float) -> None:
        self._timers.add_once((queue, "deadline"), deadline, self._find_overdue, queue)

    def _find_overdue(self, queue: ConsumerQueue) -> None:
        overdue, deadline = queue.find_overdue(time.monotonic())
        self._overdue += overdue
        if deadline is not None:
            self._plan_deadline(queue, deadline)

    def close(self) -> None:
        """Drop everything that does not run, and accept no more."""
        self._is_closed = True
        for queue in self._queues.values():
            queue.clear()
        for calls in (*self._calls.values(), self._wait_to_be_alone):
            calls.clear()
        self.ready = 0
        self.changed.notify_all()

    def abandon_all(self) -> list[HandlerCall]:
        """Stop waiting for running calls and return them."""
        calls = [call for queue in self._queues.values() for call in queue.running]
        for call in calls:
            self.remove(call)
        return calls
