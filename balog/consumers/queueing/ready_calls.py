"""Calls that are ready to run, for the worker threads and for the event loop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping

from balog.consumers.queueing.consumer_queue import ConsumerQueue
from balog.consumers.queueing.delivery import Handler, HandlerCall


class ReadyCalls:
    """Calls in the order in which they run. The caller holds the lock.

    Args:
        lock: the schedule's; workers wait on a condition of it.
        queues: the consumers' queues by handler.
        wake_loop: wakes the event loop's thread, which waits for other things too.

    Attributes:
        tasks: the number of tasks in all ready calls.
    """

    def __init__(
        self, lock: threading.Lock, queues: Mapping[Handler, ConsumerQueue], wake_loop: Callable[[], object]
    ) -> None:
        self.tasks = 0
        self._changed = threading.Condition(lock)
        self._queues = queues
        self._wake_loop = wake_loop
        self._calls: deque[HandlerCall] = deque()
        self._async_calls: deque[HandlerCall] = deque()
        self._alone: HandlerCall | None = None
        self._wait_to_be_alone: deque[HandlerCall] = deque()

    def add(self, call: HandlerCall) -> None:
        """Add a call behind all others."""
        self.tasks += len(call.tasks)
        if call.handler.is_async:
            self._async_calls.append(call)
            if len(self._async_calls) == 1:
                self._wake_loop()
        else:
            self._calls.append(call)
            self._changed.notify()

    def take(self) -> HandlerCall | None:
        """Return the next call for a worker thread; None when there is none now."""
        return self._next(self._calls)

    def take_async(self) -> HandlerCall | None:
        """Return the next call for the event loop; None when there is none now."""
        return self._next(self._async_calls)

    def wait(self) -> None:
        """Wait until a call is added."""
        self._changed.wait()

    def wake_all(self) -> None:
        """Wake every thread that waits."""
        self._changed.notify_all()

    def end(self, call: HandlerCall) -> None:
        """Add the calls that waited for the end of this one."""
        queue = self._queues[call.handler]
        if queue.over_limit:
            self._add_first(queue.over_limit.popleft())
        if call is self._alone:
            self._alone = None
            if self._wait_to_be_alone:
                self._add_first(self._wait_to_be_alone.popleft())

    def clear(self) -> None:
        """Drop all calls."""
        self._calls.clear()
        self._async_calls.clear()
        self._wait_to_be_alone.clear()
        self.tasks = 0

    def _add_first(self, call: HandlerCall) -> None:
        self.tasks += len(call.tasks)
        if call.handler.is_async:
            self._async_calls.appendleft(call)
            self._wake_loop()
        else:
            self._calls.appendleft(call)
            self._changed.notify()

    def _next(self, calls: deque[HandlerCall]) -> HandlerCall | None:
        while calls:
            call = calls.popleft()
            self.tasks -= len(call.tasks)
            queue = self._queues[call.handler]
            if queue.is_at_limit:
                queue.over_limit.append(call)
            elif call.runs_alone and self._alone is not None:
                self._wait_to_be_alone.append(call)
            else:
                if call.runs_alone:
                    self._alone = call
                return call
        return None
