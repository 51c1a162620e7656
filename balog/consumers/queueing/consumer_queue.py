"""The queue of one consumer: forms batches, and keeps the order of events with the same key."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from balog.consumers.queueing.delivery import Handler, HandlerCall, HandlerTask


class _KeyQueue:
    """The tasks of one key: those in a call or a forming batch, and those that wait behind them."""

    __slots__ = ("active", "is_blocked", "waiting")

    def __init__(self) -> None:
        self.active = 0
        self.is_blocked = False
        """A call of this key is running, or a failed task waits for its retry."""
        self.waiting: deque[HandlerTask] = deque()


class ConsumerQueue:
    """The tasks that wait for one handler.

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
        self._keys: dict[str, _KeyQueue] = {}

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
        key_queue = self._keys.get(task.key)
        if key_queue is None:
            key_queue = self._keys[task.key] = _KeyQueue()
        key_queue.waiting.append(task)
        return self._start_waiting(task.key, key_queue)

    def end_call(self, key: str, failed: Sequence[HandlerTask]) -> list[HandlerCall]:
        """Note that the call of a key ended.

        Args:
            failed: tasks to retry, in order. The key stays blocked until ``unblock`` if there are any.
        """
        key_queue = self._keys[key]
        key_queue.active = 0
        key_queue.waiting.extendleft(reversed(failed))
        return [] if failed else self.unblock(key)

    def unblock(self, key: str) -> list[HandlerCall]:
        """Start the next tasks of a key."""
        key_queue = self._keys[key]
        key_queue.is_blocked = False
        return self._start_waiting(key, key_queue)

    def launch(self) -> list[HandlerCall]:
        """Call the forming batch as it is."""
        if not self._forming:
            return []
        tasks, self._forming = self._forming, []
        for task in tasks:
            if task.key is not None:
                self._keys[task.key].is_blocked = True
        return [HandlerCall(self.handler, tasks)]

    def clear(self) -> None:
        """Drop every task that is not in a running call."""
        self.over_limit.clear()
        self._forming.clear()
        self._keys.clear()

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

    def _start_waiting(self, key: str, key_queue: _KeyQueue) -> list[HandlerCall]:
        """Start the next tasks of a key, as many as may run together."""
        calls: list[HandlerCall] = []
        while key_queue.waiting and not key_queue.is_blocked:
            task = key_queue.waiting[0]
            if self._runs_alone(task):
                if key_queue.active:
                    break  # the forming batch has earlier ones
                key_queue.is_blocked = True
            key_queue.waiting.popleft()
            key_queue.active += 1
            calls += self._start(task)
        if not (key_queue.waiting or key_queue.active or key_queue.is_blocked):
            del self._keys[key]
        return calls
