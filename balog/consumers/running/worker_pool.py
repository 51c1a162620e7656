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
        threading.Thread(target=self._run, name=f"balog-worker-{next(self._numbers)}", daemon=True).start()

    def _run(self) -> None:
        retired = threading.Event()

        def retire() -> None:
            retired.set()
            self._start_worker()

        while (call := self._schedule.take(retired.is_set)) is not None:
            call.retire = retire
            copy_context().run(self._handle, call)  # no event sees what a handler bound for another one

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
