"""Writes the events of one topic in batches, to the topic or to the fallback."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct

from balog.common.backoff import Backoff, BackoffSequence
from balog.common.errors import ConfigError, TopicError, redact_error
from balog.service.intake.batch import PendingBatch, PublishResult, Store, publish
from balog.service.intake.drain import Drain
from balog.service.intake.executor import PendingCall, Stores
from balog.service.intake.fallback import Fallback
from balog.topics import Message

T = TypeVar("T")

TIMEOUT = 5.0
"""Seconds that a batch waits for the topics or the fallback to answer, before the write counts as failed."""

_FIRST_RETRY, _LONGEST_RETRY = 0.25, 10.0  # seconds between attempts at a failing backend
_EMPTY_PAUSE = 0.2  # seconds
_MIN_MESSAGES, _MAX_MESSAGES = 10, 10_000  # messages of a batch
_MAX_BYTES = 8 << 20
_FAST_BATCH, _SLOW_BATCH = 0.1, 0.5  # seconds: faster full batches may grow, slower ones shrink


class TopicWriterState(Struct, frozen=True, kw_only=True):
    """The state of a topic's writer.

    ``store`` is where its events go, ``waiting`` the number of events that are not durable, ``backlog`` the number in
    the fallback, ``error`` why the last write failed; "" if it did not.
    """

    store: Store
    waiting: int = 0
    backlog: int = 0
    error: str = ""


class TopicWriter:
    """Writes the events of one topic in order. Not thread-safe.

    Events go directly to the topic. If that fails, they go to the fallback, and so do later events until the fallback
    has been drained. This keeps their order.

    Args:
        stored_late: called with the ids that a store wrote after the timeout.
        diverted: called with the reason when events go to the fallback, and with "" when it is empty again.

    Attributes:
        is_direct: whether events go directly to the topic.
        busy: the running write task, if events wait.
        written_at: time of the last write; ``refusal`` is why it failed, "" if it did not.
    """

    def __init__(
        self,
        topic: str,
        stores: Stores,
        stored_late: Callable[[Store, list[str]], object],
        diverted: Callable[[str], object],
    ) -> None:
        self.topic = topic
        self.error = ""
        self.used = time.monotonic()
        self.backlog = 0
        self.written_at = float("-inf")
        self.refusal = ""
        self.lock = asyncio.Lock()
        self._stores = stores
        self._stored_late = stored_late
        self._diverted = diverted
        self._waiting: deque[PendingBatch] = deque()
        self._count = 0
        self._limit = 500
        self.is_direct = True
        self.busy: asyncio.Task[None] | None = None
        self._drain: asyncio.Task[None] | None = None
        self._drain_step: PendingCall[tuple[int, bool]] | None = None
        self._unanswered: PendingCall[Any] | None = None
        self._retry_at = 0.0
        self._delays = BackoffSequence(Backoff(_FIRST_RETRY, _LONGEST_RETRY))
        self._moved: set[str] = set()

    @cached_property
    def keeps_ids(self) -> bool:
        """Whether the topic keeps ids. True for a topic with an invalid name, which rejects every event."""
        try:
            return self._stores.topics.topic(self.topic).keeps_ids
        except ConfigError:
            return True

    @property
    def is_idle(self) -> bool:
        """Whether no event waits and no write or drain is running."""
        return self.is_direct and self.busy is None and self._unanswered is None

    @property
    def retry_after(self) -> float:
        """Seconds until the next attempt at the topics."""
        return max(self._retry_at - time.monotonic(), 0.0)

    def state(self) -> TopicWriterState:
        """Return the state."""
        store: Store = "topics" if self.is_direct else "fallback"
        return TopicWriterState(store=store, waiting=self._count, backlog=self.backlog, error=self.error)

    def add(self, group: PendingBatch) -> None:
        """Enqueue a batch; it is settled when it is durable or has failed."""
        self._waiting.append(group)
        self._count += len(group.messages)
        if self.busy is None:
            self.busy = asyncio.get_running_loop().create_task(self._run())

    def stop_draining(self) -> asyncio.Future[tuple[int, bool]] | None:
        """Stop draining. Return the future of a step that is still running."""
        if self._drain is not None:
            self._drain.cancel()
        return None if self._drain_step is None or self._drain_step.future.done() else self._drain_step.future

    def stop(self) -> None:
        """Stop writing; fail the batches that are not stored yet."""
        if self.busy is not None:
            self.busy.cancel()
        while self._waiting:
            self._waiting.popleft().fail("the service stopped before it was durable")

    async def _run(self) -> None:
        try:
            while self._waiting:
                async with self.lock:
                    await self._write(*self._next_batch())
        finally:
            self.busy = None
            self.used = time.monotonic()

    def _next_batch(self) -> tuple[list[PendingBatch], list[Message]]:
        """Return the next waiting batches and their messages, up to the limits. A batch is never divided."""
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
            self.error = self.refusal = redact_error(str(error))
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
        if self.is_direct and not self._stores.deadline_passed.done():
            try:
                return "topics", await self._to_topic(messages)
            except TopicError as error:
                self._divert(redact_error(str(error)), fallback)
        try:
            written = await self._to_fallback(messages, fallback)
        except TopicError:
            # Durability counts more than order: if the fallback fails, write to the topic past the backlog.
            if self._stores.deadline_passed.done() or self.retry_after or self._unanswered is not None:
                raise
            return "topics", await self._to_topic(messages)
        self.backlog += len(messages) - len(written.refused) if written.new is None else len(written.new)
        return "fallback", written

    async def _to_fallback(self, messages: list[Message], fallback: Fallback) -> PublishResult:
        def stored(written: PublishResult) -> None:
            """Drain what the fallback stored after the timeout, too."""
            ids = [message.id for message in messages if message.id not in written.refused]
            self._stored_late("fallback", ids)
            self.divert_for(len(ids), fallback)

        work = self._stores.fallback_writers.submit(lambda: publish(lambda: fallback.topic(self.topic), messages))
        return await self._answer(work, f"the fallback of topic {self.topic}", stored, is_of_topic=False)

    async def _to_topic(self, messages: list[Message]) -> PublishResult:
        if self._unanswered is not None:
            raise TopicError(f"topic {self.topic} has not answered yet")

        def stored(written: PublishResult) -> None:
            """Remember what the topic stored after the timeout, so that the drain skips it."""
            ids = [message.id for message in messages if message.id not in written.refused]
            self._stored_late("topics", ids)
            if self._stores.fallback is not None:
                self._moved.update(ids)

        stores = self._stores
        work = stores.writers.submit(lambda: publish(lambda: stores.topics.topic(self.topic), messages))
        try:
            written = await self._answer(work, f"topic {self.topic}", stored)
        except TopicError:
            self._failed()
            raise
        self._succeeded()
        return written

    async def _answer(
        self, work: PendingCall[T], what: str, late: Callable[[T], object], *, is_of_topic: bool = True
    ) -> T:
        """Wait for a call. If it succeeds after its timeout, ``late`` is called with its result."""

        def end(future: asyncio.Future[T]) -> None:
            if self._unanswered is work:
                self._unanswered = None
            if not future.cancelled() and future.exception() is None:
                late(future.result())

        try:
            return await self._stores.answer(work, what, until_deadline=is_of_topic)
        except Exception:
            if not work.future.done() and not work.cancel():
                if is_of_topic:
                    self._unanswered = work
                work.future.add_done_callback(end)
            raise

    def _failed(self) -> None:
        """Schedule the next attempt at the topics, with backoff."""
        self._retry_at = time.monotonic() + self._delays.next()

    def _succeeded(self) -> None:
        """Reset the backoff and the error."""
        self._retry_at, self.error = 0.0, ""
        self._delays.reset()

    # -- drain ------------------------------------------------------------------------------------------------------

    def divert_for(self, backlog: int, fallback: Fallback) -> None:
        """Drain events found in the fallback, and write new events behind them."""
        self.backlog += backlog
        if self.is_direct:
            self._divert("", fallback)

    def _divert(self, error: str, fallback: Fallback) -> None:
        self.is_direct = False
        self.error = error
        if error:
            self._diverted(error)
        if self._stores.deadline_passed.done():
            return  # the next start drains the fallback
        self._drain = asyncio.get_running_loop().create_task(self._drain_all(fallback))

    async def _drain_all(self, fallback: Fallback) -> None:
        """Drain the fallback until it is empty. Only then new events go directly to the topic again."""
        drain = Drain(self.topic, self._stores.topics, fallback, self._moved)
        is_working = False
        while True:
            if self._unanswered is not None or self.retry_after:
                await asyncio.sleep(max(self.retry_after, 0.02))
                continue
            if not is_working:  # a first attempt may hang, so writes do not wait for it
                is_working = await self._step(drain) is not None
                continue
            # From now on every other batch belongs to the drain and is at least as large, so the drain finishes.
            async with self.lock:
                step = await self._step(drain)
                if step is not None and step[1]:
                    self.is_direct, self.backlog = True, 0
                    self._moved.clear()
                    self._drain = None
                    self._diverted("")
                    return
            is_working = step is not None
            if step == (0, False):  # a queue may deliver its messages with a delay
                await asyncio.sleep(_EMPTY_PAUSE)

    async def _step(self, drain: Drain) -> tuple[int, bool] | None:
        """Move some events. Return their number and whether the fallback is empty; None if a backend failed."""
        work = self._drain_step = self._stores.drainers.submit(lambda: drain.step(max(self._limit, 500)))
        try:
            step = await self._answer(work, f"topic {self.topic}", self._moved_late)
        except Exception as error:  # any error: if the drain ended, the events would stay in the fallback
            self.error = redact_error(str(error))
            self._failed()
            return None
        self._moved_late(step)
        self._succeeded()
        return step

    def _moved_late(self, step: tuple[int, bool]) -> None:
        self.backlog = max(self.backlog - step[0], 0)
