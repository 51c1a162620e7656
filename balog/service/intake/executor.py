"""Blocking calls of an event loop on daemon threads: to the topics, to the fallback, or any other."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar, cast

from balog.common.errors import TopicError
from balog.service.intake.fallback import Fallback
from balog.topics import Topics

T = TypeVar("T")


class PendingCall(Generic[T]):
    """A submitted call; ``future`` gets its result or exception. It can be cancelled until it starts."""

    def __init__(self, call: Callable[[], T], future: asyncio.Future[T]) -> None:
        self.future = future
        self._call = [call]  # the thread that pops it runs or cancels it

    def cancel(self) -> bool:
        """Cancel the call. Return False if it has already started."""
        try:
            self._call.pop()
        except IndexError:
            return False
        self.future.cancel()
        return True

    def run(self) -> None:
        """Call, unless the call was cancelled, and pass the result or exception to the event loop."""
        try:
            call = self._call.pop()
        except IndexError:
            return
        try:
            finish = partial(self._finish, call(), None)
        except BaseException as error:
            finish = partial(self._finish, None, error)
        with suppress(RuntimeError):  # the loop is closed
            self.future.get_loop().call_soon_threadsafe(finish)

    def _finish(self, result: T | None, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(cast(T, result))
        else:
            self.future.set_exception(error)
            self.future.exception()  # marks it as retrieved: the waiting task may be gone


class DaemonExecutor:
    """A pool of at most ``count`` daemon threads, started on demand.

    Unlike ``ThreadPoolExecutor``, it does not delay the end of the process: a call to a server that does not answer may
    take longer than a stop.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._calls: queue.SimpleQueue[PendingCall[Any] | None] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], T]) -> PendingCall[T]:
        """Run a call on a thread, for the running event loop."""
        work = PendingCall(call, asyncio.get_running_loop().create_future())
        with self._lock:
            if self._idle <= 0 and self._threads < self._count:
                self._threads += 1
                name = f"balog-{self._name}-{self._threads}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            else:
                self._idle -= 1  # a negative number is the number of queued calls
        self._calls.put(work)
        return work

    def close(self) -> None:
        """End the threads when they have finished the queued calls."""
        with self._lock:
            threads, self._threads = self._threads, 0
        for _ in range(threads):
            self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            item.run()
            del item
            with self._lock:
                self._idle += 1


class Stores:
    """The topics and the fallback with their threads. A backend that hangs does not block the threads of the other.

    Attributes:
        deadline_passed: done when events may no longer wait for the topics.
    """

    def __init__(self, topics: Topics, fallback: Fallback | None, timeout: float) -> None:
        self.topics = topics
        self.fallback = fallback
        self.timeout = timeout
        self.writers = DaemonExecutor(8, "intake")
        self.fallback_writers = DaemonExecutor(4, "fallback")
        self.drainers = DaemonExecutor(4, "drain")
        self.deadline_passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def answer(self, work: PendingCall[T], what: str, *, until_deadline: bool = True) -> T:
        """Wait for a call until its timeout or, with ``until_deadline``, the deadline of a stop.

        Raises:
            TopicError: the call failed, or took too long; then it may still be running.
        """
        ends = (work.future, self.deadline_passed) if until_deadline else (work.future,)
        done, _ = await asyncio.wait(ends, timeout=self.timeout, return_when=asyncio.FIRST_COMPLETED)
        if work.future in done:
            return work.future.result()
        raise TopicError(f"{what} did not answer in time")

    def close(self) -> None:
        """End the threads."""
        for workers in (self.writers, self.fallback_writers, self.drainers):
            workers.close()
