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
_NOTHING_YET = 0.2  # seconds
_FEWEST, _MOST = 10, 10_000  # messages of a batch
_MOST_BYTES = 8 << 20
_SHORT, _LONG = 0.1, 0.5  # seconds: a full batch that takes less may be larger, one that takes more is too large


class Stores:
    """Where all lanes publish, and the threads that do it: a home that hangs takes no thread from another.

    Attributes:
        hurry: done when nothing may wait for the topics any longer.
    """

    def __init__(self, topics: Topics, fallback: Fallback | None, patience: float) -> None:
        self.topics = topics
        self.fallback = fallback
        self.patience = patience
        self.writers = DaemonExecutor(8, "intake")
        self.fallback_writers = DaemonExecutor(4, "fallback")
        self.drainers = DaemonExecutor(4, "drain")
        self.hurry: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def answer(self, work: PendingCall[T], what: str) -> T:
        """Wait for a call as long as patience, and hurry, allow.

        Raises:
            TopicError: what the call raised, or that it took too long: then it may still be going on.
        """
        done, _ = await asyncio.wait(
            (work.future, self.hurry), timeout=self.patience, return_when=asyncio.FIRST_COMPLETED
        )
        if work.future in done:
            return work.future.result()
        raise TopicError(f"{what} did not answer in time")

    def close(self) -> None:
        """Let the threads end."""
        for workers in (self.writers, self.fallback_writers, self.drainers):
            workers.close()


class TopicWriterState(Struct, frozen=True, kw_only=True):
    """How a topic's lane is, now.

    ``store`` is where its events go, ``waiting`` how many are not durable, ``backlog`` how many wait in the fallback,
    ``trouble`` why the last attempt at a store failed, "" when it did not.
    """

    store: Store
    waiting: int = 0
    backlog: int = 0
    trouble: str = ""


class TopicWriter:
    """One topic's events, in the order in which they came.

    They go straight to the topic. When that fails they go to the fallback, and so do all after them until the fallback
    is empty again: so their order is kept. Used by one event loop.

    Args:
        late: told of ids that a store took after nobody waited for it any more.

    Attributes:
        asked_at: when a batch was stored or refused last; ``refusal`` is why it was refused, "" when it was not.
    """

    def __init__(self, topic: str, stores: Stores, late: Callable[[Store, list[str]], object]) -> None:
        self.topic = topic
        self.trouble = ""
        self.used = time.monotonic()
        self.backlog = 0
        self.asked_at = float("-inf")
        self.refusal = ""
        self.turn = asyncio.Lock()
        self._stores = stores
        self._late = late
        self._waiting: deque[PendingBatch] = deque()
        self._count = 0
        self._limit = 500
        self._straight = True
        self._task: asyncio.Task[None] | None = None
        self._drain: asyncio.Task[None] | None = None
        self._stepping: PendingCall[tuple[int, bool]] | None = None
        self._stuck: PendingCall[Any] | None = None
        self._retry_at = 0.0
        self._delays = BackoffSequence(Backoff(_FIRST_RETRY, _LONGEST_RETRY))
        self._moved: set[str] = set()

    @cached_property
    def keeps_ids(self) -> bool:
        """Tell whether the topic knows what it holds. One that can't be takes nothing anyway."""
        try:
            return self._stores.topics.topic(self.topic).keeps_ids
        except ConfigError:
            return True

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing waits and nothing goes on."""
        return self._straight and self._task is None and self._stuck is None

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
        store: Store = "topics" if self._straight else "fallback"
        return TopicWriterState(store=store, waiting=self._count, backlog=self.backlog, trouble=self.trouble)

    def add(self, group: PendingBatch) -> None:
        """Take messages; their outcome is told when they are durable, or can't be."""
        self._waiting.append(group)
        self._count += len(group.messages)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop_draining(self) -> asyncio.Future[tuple[int, bool]] | None:
        """Begin to move nothing more back; give what still goes on."""
        if self._drain is not None:
            self._drain.cancel()
        return None if self._stepping is None or self._stepping.future.done() else self._stepping.future

    def stop(self) -> None:
        """Give up what still waits or is not stored yet."""
        if self._task is not None:
            self._task.cancel()
        while self._waiting:
            self._waiting.popleft().fail("the service stopped before it was durable")

    async def _run(self) -> None:
        try:
            while self._waiting:
                async with self.turn:
                    await self._write(*self._take())
        finally:
            self._task = None
            self.used = time.monotonic()

    def _take(self) -> tuple[list[PendingBatch], list[Message]]:
        """Give what waits, up to a batch; a group is never divided, so that one of its own size is always taken."""
        groups: list[PendingBatch] = []
        messages: list[Message] = []
        size = 0
        while self._waiting:
            group = self._waiting[0]
            if groups and (len(messages) + len(group.messages) > self._limit or size + group.size > _MOST_BYTES):
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
            self.trouble = self.refusal = str(error)
            self.asked_at = time.monotonic()
            for group in groups:
                group.fail(self.trouble)
        except asyncio.CancelledError:
            for group in groups:
                group.fail("the service stopped before it was durable")
            raise
        else:
            self.refusal, self.asked_at = "", time.monotonic()
            for group in groups:
                group.succeed(store, written)
            self._adapt(len(messages), self.asked_at - begin)
        finally:
            self._count -= len(messages)

    def _adapt(self, count: int, seconds: float) -> None:
        if seconds > _LONG:
            self._limit = max(min(self._limit, count) // 2, _FEWEST)
        elif seconds < _SHORT and self._waiting:
            self._limit = min(self._limit * 2, _MOST)

    async def _stored(self, messages: list[Message]) -> tuple[Store, PublishResult]:
        fallback = self._stores.fallback
        if fallback is None:
            if self.retry_after:
                raise TopicError(self.trouble)
            return "topics", await self._to_topic(messages)
        if self._straight and not self._stores.hurry.done():
            try:
                return "topics", await self._to_topic(messages)
            except TopicError as error:
                self._divert(str(error), fallback)
        try:
            written = await self._to_fallback(messages, fallback)
        except TopicError:
            # Order is worth less than the event: with no room in the fallback the topics may take it past the backlog.
            if self._stores.hurry.done() or self.retry_after or self._stuck is not None:
                raise
            return "topics", await self._to_topic(messages)
        self.backlog += len(messages) - len(written.refused) if written.new is None else len(written.new)
        return "fallback", written

    async def _to_fallback(self, messages: list[Message], fallback: Fallback) -> PublishResult:
        work = self._stores.fallback_writers.run(lambda: publish(lambda: fallback.topic(self.topic), messages))
        done, _ = await asyncio.wait((work.future,), timeout=self._stores.patience)
        if not done:
            if not work.withdraw():
                self._watch_fallback(work, messages, fallback)
            raise TopicError(f"the fallback of topic {self.topic} did not answer in time")
        return work.future.result()

    def _watch_fallback(self, work: PendingCall[PublishResult], messages: list[Message], fallback: Fallback) -> None:
        """See that what a call stores after all is moved from there, also when the drain is over by then."""

        def end(future: asyncio.Future[PublishResult]) -> None:
            if future.cancelled() or future.exception() is not None:
                return
            taken = [message.id for message in messages if message.id not in future.result().refused]
            self._late("fallback", taken)
            self.divert_for(len(taken), fallback)

        work.future.add_done_callback(end)

    async def _to_topic(self, messages: list[Message]) -> PublishResult:
        if self._stuck is not None:
            raise TopicError(f"topic {self.topic} has not answered yet")
        stores = self._stores
        work = stores.writers.run(lambda: publish(lambda: stores.topics.topic(self.topic), messages))
        try:
            written = await stores.answer(work, f"topic {self.topic}")
        except TopicError:
            if not work.future.done() and not work.withdraw():
                self._watch(work, messages)
            self._failed()
            raise
        self._succeeded()
        return written

    def _watch(self, work: PendingCall[PublishResult], messages: list[Message]) -> None:
        """Remember what a call stores after all, so that it does not go there from the fallback once more."""
        self._stuck = work

        def end(future: asyncio.Future[PublishResult]) -> None:
            self._stuck = None
            if future.cancelled() or future.exception() is not None:
                return
            taken = [message.id for message in messages if message.id not in future.result().refused]
            self._late("topics", taken)
            if self._stores.fallback is not None:
                self._moved.update(taken)

        work.future.add_done_callback(end)

    def _failed(self) -> None:
        """Try the topics again later, and later each time."""
        self._retry_at = time.monotonic() + self._delays.next()

    def _succeeded(self) -> None:
        """Forget that the topics failed."""
        self._retry_at, self.trouble = 0.0, ""
        self._delays.reset()

    # -- back to the topics -----------------------------------------------------------------------------------------

    def divert_for(self, backlog: int, fallback: Fallback) -> None:
        """Go on with what was found in the fallback, and let new events go behind it."""
        self.backlog += backlog
        if self._straight:
            self._divert("", fallback)

    def _divert(self, trouble: str, fallback: Fallback) -> None:
        self._straight = False
        self.trouble = trouble
        if self._stores.hurry.done():
            return  # what is in the fallback is for the next start
        self._drain = asyncio.get_running_loop().create_task(self._drain_all(fallback))

    async def _drain_all(self, fallback: Fallback) -> None:
        """Move what is in the fallback back until there is nothing; only then do new events go straight again."""
        drain = Drain(self.topic, self._stores.topics, fallback, self._moved)
        proven = False
        while True:
            if self._stuck is not None or self.retry_after:
                await asyncio.sleep(max(self.retry_after, 0.02))
                continue
            if not proven:  # a first attempt may hang: nobody waits for it
                proven = await self._step(drain) is not None
                continue
            # From now on every other batch is one of the drain's, at least as large: it wins.
            async with self.turn:
                found = await self._step(drain)
                if found is not None and found[1]:
                    self._straight, self.backlog = True, 0
                    self._moved.clear()
                    self._drain = None
                    return
            proven = found is not None
            if found == (0, False):  # a queue may need a moment to hand out what it has
                await asyncio.sleep(_NOTHING_YET)

    async def _step(self, drain: Drain) -> tuple[int, bool] | None:
        """Move some; tell how many and whether nothing is left, or None when a home failed."""
        work = self._stepping = self._stores.drainers.run(lambda: drain.step(max(self._limit, 500)))
        try:
            moved, is_empty = await self._stores.answer(work, f"topic {self.topic}")
        except Exception as error:  # whatever a home raises: a drain that ends would leave events there for ever
            if not work.future.done() and not work.withdraw():
                self._watch_step(work)
            self.trouble = str(error)
            self._failed()
            return None
        self.backlog = max(self.backlog - moved, 0)
        self._succeeded()
        return moved, is_empty

    def _watch_step(self, work: PendingCall[tuple[int, bool]]) -> None:
        self._stuck = work

        def end(future: asyncio.Future[tuple[int, bool]]) -> None:
            self._stuck = None
            if not future.cancelled() and future.exception() is None:
                self.backlog = max(self.backlog - future.result()[0], 0)

        work.future.add_done_callback(end)
