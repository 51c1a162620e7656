"""A thread with an event loop that runs ``async def`` handlers concurrently."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextvars import Context
from functools import partial
from inspect import isawaitable

from balog.consumers.queueing.calls import HandlerCall
from balog.consumers.queueing.scheduling import GRACE, Schedule
from balog.consumers.running.caller import HandlerCaller, timeout_error

log = logging.getLogger("balog.consumers")


class AsyncLoop:
    """Runs the schedule's async calls. The thread starts with the first call."""

    def __init__(self, schedule: Schedule, caller: HandlerCaller) -> None:
        self._schedule = schedule
        self._caller = caller
        self._start = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: dict[HandlerCall, asyncio.Task[None]] = {}
        self._is_ending = False

    def wake(self) -> None:
        """Have the thread run ready calls. May be called from any thread."""
        # An empty context, which each task copies: the caller may be in that of another event's handler.
        self._running_loop().call_soon_threadsafe(self._take, context=Context())

    def cancel(self, call: HandlerCall) -> None:
        """Cancel a call that passed its deadline. May be called from any thread."""
        if (task := self._tasks.get(call)) is not None:
            self._running_loop().call_soon_threadsafe(task.cancel)

    def stop(self) -> None:
        """Cancel the running calls and end the thread, unless a call blocks it."""
        with self._start:
            self._is_ending = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(self._end)
        thread.join(GRACE)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._start:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name="balog-async", daemon=True)
                self._thread.start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._is_ending:
            try:
                loop.run_forever()
            except BaseException as error:  # SystemExit in a task that a handler left behind
                log.warning("a task that a handler started raised %s", type(error).__name__)
        loop.run_until_complete(self._close())
        loop.close()

    async def _close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=1.0)
        await asyncio.get_running_loop().shutdown_asyncgens()

    def _end(self) -> None:
        assert self._loop is not None  # noqa: S101
        self._loop.stop()

    def _take(self) -> None:
        while (call := self._schedule.take_async()) is not None:
            assert self._loop is not None  # noqa: S101
            task = self._tasks[call] = self._loop.create_task(self._handle(call))
            task.add_done_callback(partial(self._forget, call))

    def _forget(self, call: HandlerCall, task: asyncio.Task[None]) -> None:
        del self._tasks[call]

    async def _handle(self, call: HandlerCall) -> None:
        error: BaseException | None = None
        try:
            argument = self._caller.prepare(call)
            with self._caller.binding(call):
                result = call.handler.function(argument)
                if isawaitable(result):
                    await result
            if call.is_expired:  # the handler caught its cancellation and returned
                error = timeout_error(call)
        except BaseException as raised:  # a loop whose task lets SystemExit through would end
            error = timeout_error(call) if call.is_expired and isinstance(raised, asyncio.CancelledError) else raised
        try:
            self._caller.end(call, error)
        finally:
            error = None  # its traceback leads to this frame: only the garbage collector would free the circle
