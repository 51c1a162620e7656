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
        changed: notified when a worker thread may find a call.
    """

    def __init__(
        self, lock: threading.Lock, queues: Mapping[Handler, ConsumerQueue], wake_loop: Callable[[], object]
    ) -> None:
        self.tasks = 0
        self.changed = threading.Condition(lock)
        self._queues = queues
        self._wake_loop = wake_loop
        self._calls: dict[bool, deque[HandlerCall]] = {False: deque(), True: deque()}  # by whether they are async
        self._alone: HandlerCall | None = None
        self._wait_to_be_alone: deque[HandlerCall] = deque()

    def add(self, call: HandlerCall, *, is_first: bool = False) -> None:
        """Add a call behind all others, or before them."""
        self.tasks += len(call.tasks)
        is_async = call.handler.is_async
        calls = self._calls[is_async]
        calls.appendleft(call) if is_first else calls.append(call)
        if not is_async:
            self.changed.notify()
        elif is_first or len(calls) == 1:
            self._wake_loop()

    def end(self, call: HandlerCall) -> None:
        """Add the calls that waited for the end of this one."""
        queue = self._queues[call.handler]
        if queue.over_limit:
            self.add(queue.over_limit.popleft(), is_first=True)
        if call is self._alone:
            self._alone = None
            if self._wait_to_be_alone:
                self.add(self._wait_to_be_alone.popleft(), is_first=True)

    def clear(self) -> None:
        """Drop all calls."""
        for calls in self._calls.values():
            calls.clear()
        self._wait_to_be_alone.clear()
        self.tasks = 0

    def take(self, is_async: bool) -> HandlerCall | None:
        """Return the next call for the event loop, or for a worker thread; None when there is none now."""
        calls = self._calls[is_async]
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
