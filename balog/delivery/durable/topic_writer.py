"""The way of one topic's events to where they are durable: all that wait go together, one batch after the other."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct

from balog.backoff import Backoff, BackoffSequence
from balog.delivery.durable.batch import PendingBatch, Store
from balog.delivery.durable.drain import Drain
from balog.delivery.durable.executor import DaemonExecutor, PendingCall
from balog.delivery.durable.fallback import Fallback
from balog.delivery.durable.publisher import PublishResult, publish
from balog.errors import ConfigError, TopicError
from balog.topics import Message, Topics

__all__ = ["TIMEOUT", "Stores", "TopicWriter", "TopicWriterState"]

T = TypeVar("T")

TIMEOUT = 5.0
"""Seconds that a batch waits for an answer of the topics or the fallback, before that counts as failed."""

_FIRST_RETRY, _LONGEST_RETRY = 0.25, 10.0  # seconds between attempts at a home that fails
_EMPTY_PAUSE = 0.2  # seconds
_MIN_MESSAGES, _MAX_MESSAGES = 10, 10_000  # messages of a batch
_MAX_BYTES = 8 << 20
_FAST_BATCH, _SLOW_BATCH = (
    0.1,
    0.5,
)  # seconds: a full batch that takes less may be larger, one that takes more is too large


class Stores:
    """Where all lanes publish, and the threads that do it: a home that hangs takes no thread from another.

    Attributes:
        hurry: done when nothing may wait for the topics any longer.
    """

    def __init__(self, topics: Topics, fallback: Fallback | None, timeout: float) -> None:
        self.topics = topics
        self.fallback = fallback
        self.timeout = timeout
        self.writers = DaemonExecutor(8, "intake")
        self.fallback_writers = DaemonExecutor(4, "fallback")
        self.drainers = DaemonExecutor(4, "drain")
        self.deadline_passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def answer(self, work: PendingCall[T], what: str) -> T:
        """Wait for a call as long as patience, and hurry, allow.

        Raises:
            TopicError: what the call raised, or that it took too long: then it may still be going on.
        """
        done, _ = await asyncio.wait(
            (work.future, self.deadline_passed), timeout=self.timeout, return_when=asyncio.FIRST_COMPLETED
        )
        if work.future in done:
            return work.future.result()
        raise TopicError(f"{what} did not answer in time")

    def close(self) -> None:
        """Let the threads end."""
        for workers in (self.writers, self.fallback_writers, self.drainers):
            workers.close()


class TopicWriterState(Struct, frozen=True, kw_only=True, rename={"error": "trouble"}):
    """How a topic's lane is, now.

    ``store`` is where its events go, ``waiting`` how many are not durable, ``backlog`` how many wait in the fallback,
    ``error`` why the last attempt at a store failed, "" when it did not.
    """

    store: Store
    waiting: int = 0
    backlog: int = 0
    error: str = ""


class TopicWriter:
    """One topic's events, in the order in which they came.

    They go straight to the topic. When that fails they go to the fallback, and so do all after them until the fallback
    is empty again: so their order is kept. Used by one event loop.

    Args:
        late: told of ids that a store took after nobody waited for it any more.

    Attributes:
        asked_at: when a batch was stored or refused last; ``refusal`` is why it was refused, "" when it was not.
    """

    def __init__(self, topic: str, stores: Stores, stored_late: Callable[[Store, list[str]], object]) -> None:
        self.topic = topic
        self.error = ""
        self.used = time.monotonic()
        self.backlog = 0
        self.written_at = float("-inf")
        self.refusal = ""
        self.lock = asyncio.Lock()
        self._stores = stores
        self._stored_late = stored_late
        self._waiting: deque[PendingBatch] = deque()
        self._count = 0
        self._limit = 500
        self._is_direct = True
        self._task: asyncio.Task[None] | None = None
        self._drain: asyncio.Task[None] | None = None
        self._drain_step: PendingCall[tuple[int, bool]] | None = None
        self._unanswered: PendingCall[Any] | None = None
        self._retry_at = 0.0
        self._delays = BackoffSequence(Backoff(_FIRST_RETRY, _LONGEST_RETRY))
        self._moved: set[str] = set()

    @cached_property
    def keeps_ids(self) -> bool:
        """Return whether the topic knows what it holds. One that can't be takes nothing anyway."""
        try:
            return self._stores.topics.topic(self.topic).keeps_ids
        except ConfigError:
            return True

    @property
    def is_idle(self) -> bool:
        """Return whether nothing waits and nothing goes on."""
        return self._is_direct and self._task is None and self._unanswered is None

    @property
    def busy(self) -> asyncio.Task[None] | None:
        """What writes just now, while something waits."""
        return self._task

    @property
    def retry_after(self) -> float:
        """Seconds until the topics are tried again."""
        return max(self._retry_at - time.monotonic(), 0.0)

    def state(self) -> TopicWriterState:
        """Tell how it is."""
        store: Store = "topics" if self._is_direct else "fallback"
        return TopicWriterState(store=store, waiting=self._count, backlog=self.backlog, error=self.error)

    def add(self, group: PendingBatch) -> None:
        """Take messages; their outcome is told when they are durable, or can't be."""
        self._waiting.append(group)
        self._count += len(group.messages)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop_draining(self) -> asyncio.Future[tuple[int, bool]] | None:
        """Begin to move nothing more back and return what still goes on."""
        if self._drain is not None:
            self._drain.cancel()
        return None if self._drain_step is None or self._drain_step.future.done() else self._drain_step.future

    def stop(self) -> None:
        """Return up what still waits or is not stored yet."""
        if self._task is not None:
            self._task.cancel()
        while self._waiting:
            self._waiting.popleft().fail("the service stopped before it was durable")

    async def _run(self) -> None:
        try:
            while self._waiting:
                async with self.lock:
                    await self._write(*self._next_batch())
        finally:
            self._task = None
            self.used = time.monotonic()

    def _next_batch(self) -> tuple[list[PendingBatch], list[Message]]:
        """Return what waits, up to a batch; a group is never divided, so that one of its own size is always taken."""
        groups: list[PendingBatch] = []
        messages: list[Message] = []
        size = 0
        while self._waiting:
            group = self._waiting[0]
            if groups and (len(messages) + len(group.messages) > self._limit or size + group.size > _MAX_BYTES):
                break
            groups.append(self._waiting.popleft())
            messages += group.messages
            size += group.size
        return groups, messages

    async def _write(self, groups: list[PendingBatch], messages: list[Message]) -> None:
        begin = time.monotonic()
        try:
            store, written = await self._stored(messages)
        except TopicError as error:
            self.error = self.refusal = str(error)
            self.written_at = time.monotonic()
            for group in groups:
                group.fail(self.error)
        except asyncio.CancelledError:
            for group in groups:
                group.fail("the service stopped before it was durable")
            raise
        else:
            self.refusal, self.written_at = "", time.monotonic()
            for group in groups:
                group.succeed(store, written)
            self._adapt(len(messages), self.written_at - begin)
        finally:
            self._count -= len(messages)

    def _adapt(self, count: int, seconds: float) -> None:
        if seconds > _SLOW_BATCH:
            self._limit = max(min(self._limit, count) // 2, _MIN_MESSAGES)
        elif seconds < _FAST_BATCH and self._waiting:
            self._limit = min(self._limit * 2, _MAX_MESSAGES)

    async def _stored(self, messages: list[Message]) -> tuple[Store, PublishResult]:
        fallback = self._stores.fallback
        if fallback is None:
            if self.retry_after:
                raise TopicError(self.error)
            return "topics", await self._to_topic(messages)
        if self._is_direct and not self._stores.deadline_passed.done():
            try:
                return "topics", await self._to_topic(messages)
            except TopicError as error:
                self._divert(str(error), fallback)
        try:
            written = await self._to_fallback(messages, fallback)
        except TopicError:
            # Order is worth less than the event: with no room in the fallback the topics may take it past the backlog.
            if self._stores.deadline_passed.done() or self.retry_after or self._unanswered is not None:
                raise
            return "topics", await self._to_topic(messages)
        self.backlog += len(messages) - len(written.refused) if written.new is None else len(written.new)
        return "fallback", written

    async def _to_fallback(self, messages: list[Message], fallback: Fallback) -> PublishResult:
        work = self._stores.fallback_writers.submit(lambda: publish(lambda: fallback.topic(self.topic), messages))
        done, _ = await asyncio.wait((work.future,), timeout=self._stores.timeout)
        if not done:
            if not work.cancel():
                self._watch_fallback(work, messages, fallback)
            raise TopicError(f"the fallback of topic {self.topic} did not answer in time")
        return work.future.result()

    def _watch_fallback(self, work: PendingCall[PublishResult], messages: list[Message], fallback: Fallback) -> None:
        """See that what a call stores after all is moved from there, also when the drain is over by then."""

        def end(future: asyncio.Future[PublishResult]) -> None:
            if future.cancelled() or future.exception() is not None:
                return
            taken = [message.id for message in messages if message.id not in future.result().refused]
            self._stored_late("fallback", taken)
            self.divert_for(len(taken), fallback)

        work.future.add_done_callback(end)

    async def _to_topic(self, messages: list[Message]) -> PublishResult:
        if self._unanswered is not None:
            raise TopicError(f"topic {self.topic} has not answered yet")
        stores = self._stores
        work = stores.writers.submit(lambda: publish(lambda: stores.topics.topic(self.topic), messages))
        try:
            written = await stores.answer(work, f"topic {self.topic}")
        except TopicError:
            if not work.future.done() and not work.cancel():
                self._watch_write(work, messages)
            self._failed()
            raise
        self._succeeded()
        return written

    def _watch_write(self, work: PendingCall[PublishResult], messages: list[Message]) -> None:
        """Remember what a call stores after all, so that it does not go there from the fallback once more."""
        self._unanswered = work

        def end(future: asyncio.Future[PublishResult]) -> None:
            self._unanswered = None
            if future.cancelled() or future.exception() is not None:
                return
            taken = [message.id for message in messages if message.id not in future.result().refused]
            self._stored_late("topics", taken)
            if self._stores.fallback is not None:
                self._moved.update(taken)

        work.future.add_done_callback(end)

    def _failed(self) -> None:
        """Try the topics again later, and later each time."""
        self._retry_at = time.monotonic() + self._delays.next()

    def _succeeded(self) -> None:
        """Forget that the topics failed."""
        self._retry_at, self.error = 0.0, ""
        self._delays.reset()

    # -- back to the topics -----------------------------------------------------------------------------------------

    def divert_for(self, backlog: int, fallback: Fallback) -> None:
        """Go on with what was found in the fallback, and let new events go behind it."""
        self.backlog += backlog
        if self._is_direct:
            self._divert("", fallback)

    def _divert(self, error: str, fallback: Fallback) -> None:
        self._is_direct = False
        self.error = error
        if self._stores.deadline_passed.done():
            return  # what is in the fallback is for the next start
        self._drain = asyncio.get_running_loop().create_task(self._drain_all(fallback))

    async def _drain_all(self, fallback: Fallback) -> None:
        """Move what is in the fallback back until there is nothing; only then do new events go straight again."""
        drain = Drain(self.topic, self._stores.topics, fallback, self._moved)
        is_working = False
        while True:
            if self._unanswered is not None or self.retry_after:
                await asyncio.sleep(max(self.retry_after, 0.02))
                continue
            if not is_working:  # a first attempt may hang: nobody waits for it
                is_working = await self._step(drain) is not None
                continue
            # From now on every other batch is one of the drain's, at least as large: it wins.
            async with self.lock:
                found = await self._step(drain)
                if found is not None and found[1]:
                    self._is_direct, self.backlog = True, 0
                    self._moved.clear()
                    self._drain = None
                    return
            is_working = found is not None
            if found == (0, False):  # a queue may need a moment to hand out what it has
                await asyncio.sleep(_EMPTY_PAUSE)

    async def _step(self, drain: Drain) -> tuple[int, bool] | None:
        """Move some; tell how many and whether nothing is left, or None when a home failed."""
        work = self._drain_step = self._stores.drainers.submit(lambda: drain.step(max(self._limit, 500)))
        try:
            moved, is_empty = await self._stores.answer(work, f"topic {self.topic}")
        except Exception as error:  # whatever a home raises: a drain that ends would leave events there for ever
            if not work.future.done() and not work.cancel():
                self._watch_step(work)
            self.error = str(error)
            self._failed()
            return None
        self.backlog = max(self.backlog - moved, 0)
        self._succeeded()
        return moved, is_empty

    def _watch_step(self, work: PendingCall[tuple[int, bool]]) -> None:
        self._unanswered = work

        def end(future: asyncio.Future[tuple[int, bool]]) -> None:
            self._unanswered = None
            if not future.cancelled() and future.exception() is None:
                self.backlog = max(self.backlog - future.result()[0], 0)

        work.future.add_done_callback(end)
