"""Threads that run plain handlers. One that hangs can't be ended: another thread takes its place."""

from __future__ import annotations

import threading
from inspect import isawaitable
from itertools import count

from balog.consumers.async_loop import AsyncLoop
from balog.consumers.calling import Caller
from balog.consumers.delivery import Call
from balog.consumers.scheduling import Schedule

__all__ = ["Crew"]


class Crew:
    """So many threads that run calls, until the schedule has no more.

    Args:
        loop: goes on with what a plain handler gives to be awaited.
        async_cap: calls at once of a handler of which that turns out.
    """

    def __init__(self, schedule: Schedule, caller: Caller, loop: AsyncLoop, size: int, async_cap: int) -> None:
        self.async_cap = async_cap
        self._schedule = schedule
        self._caller = caller
        self._loop = loop
        self._size = size
        self._numbers = count(1)

    def start(self) -> None:
        """Start the threads; they end when the schedule stops."""
        for _ in range(self._size):
            self._hire()

    def _hire(self) -> None:
        _Worker(self, f"balog-worker-{next(self._numbers)}").start()


class _Worker(threading.Thread):
    def __init__(self, crew: Crew, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._crew = crew
        self._is_retired = False

    def run(self) -> None:
        take = self._crew._schedule.take
        while (call := take(self._retired)) is not None:
            call.retire = self._retire
            self._handle(call)

    def _handle(self, call: Call) -> None:
        caller = self._crew._caller
        error: BaseException | None = None
        try:
            given = caller.prepare(call)
            with caller.binding(call):
                result = call.desk.call(given)
                if result is not None and isawaitable(result):
                    caller.stay_one_process()
                    if call.desk.cap is None:
                        call.desk.cap = self._crew.async_cap
                    self._crew._loop.go_on(call, result)
                    return
        except BaseException as raised:
            error = raised
        try:
            caller.end(call, error)
        finally:
            error = None  # its traceback leads to this frame: a circle would be left to the garbage collector

    def _retired(self) -> bool:
        return self._is_retired

    def _retire(self) -> None:
        self._is_retired = True
        self._crew._hire()
