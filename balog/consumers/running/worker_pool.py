"""Threads that run plain handlers. A thread that hangs can't be ended, so another one replaces it."""

from __future__ import annotations

import threading
from contextvars import copy_context
from inspect import isawaitable
from itertools import count

from balog.consumers.queueing.delivery import HandlerCall
from balog.consumers.queueing.scheduling import Schedule
from balog.consumers.running.caller import HandlerCaller


class HandlerWorkerPool:
    """Worker threads that run calls until the schedule stops.

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
            self._start_worker()

    def _start_worker(self) -> None:
        _Worker(self, f"balog-worker-{next(self._numbers)}").start()


class _Worker(threading.Thread):
    def __init__(self, pool: HandlerWorkerPool, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._pool = pool
        self._is_retired = False

    def run(self) -> None:
        take = self._pool._schedule.take
        while (call := take(self._retired)) is not None:
            call.retire = self._retire
            copy_context().run(self._handle, call)  # no event sees what a handler bound for another one

    def _handle(self, call: HandlerCall) -> None:
        caller = self._pool._caller
        error: BaseException | None = None
        try:
            argument = caller.prepare(call)
            with caller.binding(call):
                result = call.handler.function(argument)
                if result is not None and isawaitable(result):
                    raise TypeError("the handler returned an awaitable, which nothing awaits; declare it async def")
        except BaseException as raised:
            error = raised
        try:
            caller.end(call, error)
        finally:
            error = None  # its traceback leads to this frame: only the garbage collector would free the circle

    def _retired(self) -> bool:
        return self._is_retired

    def _retire(self) -> None:
        self._is_retired = True
        self._pool._start_worker()
