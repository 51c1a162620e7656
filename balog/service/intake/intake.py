"""The intake: acknowledges events once they are in their topic or, while that fails, in the fallback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from balog.common.errors import BalogError, TopicError
from balog.delivery.notices import ThrottledNotices
from balog.service.document import ControlDocument
from balog.service.intake.admission import FlowControl, StreamState
from balog.service.intake.batch import AcceptedEvent, IntakeResult, PendingBatch, Store
from balog.service.intake.executor import Stores
from balog.service.intake.fallback import Fallback
from balog.service.intake.recent_ids import RecentIds
from balog.service.intake.router import StreamRouter
from balog.service.intake.topic_writer import TIMEOUT, TopicWriter, TopicWriterState
from balog.topics import Message, Topics

_MAX_OPEN_WRITERS = 100
_BACKLOG_RETRY_SECONDS = 5.0  # seconds
_RECENT_SECONDS = 10.0  # seconds
_TOPICS_SHARE = 0.75  # the share of a stop's time in which events may wait for the topics


class IntakeState(Struct, frozen=True, kw_only=True):
    """The state of the intake.

    ``in_flight`` and ``in_flight_bytes`` are of events that are not durable yet. ``stored`` counts durable events by
    store since the start, ``backlog`` those in the fallback. ``error`` is one line, "" if there is none.
    """

    in_flight: int
    in_flight_bytes: int
    stored: dict[Store, int]
    duplicates: int
    backlog: int
    streams: dict[str, StreamState]
    topics: dict[str, TopicWriterState]
    error: str = ""


class _Waiting(NamedTuple):
    """Events of one request that wait for a batch: its own events, or one with an id that is in the batch already."""

    stream: str
    topic: str
    batch: PendingBatch
    indices: list[int]
    repeated_id: str = ""


class EventIntake:
    """Stores valid events, and reports when each is durable. Not thread-safe, except for the methods that say so.

    An event that was stored before is a duplicate, and acknowledged: in topics that keep ids (``local:``) always, in
    others while its id is among the last 200,000. Topics that keep no ids may hold an event twice if they failed while
    storing it, so consumers should deduplicate by id.

    Args:
        topics: the topics.
        fallback: stores events while the topics fail; None rejects them instead.
        in_flight_bytes: limit of events that are not durable yet.
        timeout: seconds for a backend to answer.
        notify: takes a line for people when events begin to go to the fallback, and when it is empty again.
    """

    def __init__(
        self,
        topics: Topics,
        *,
        fallback: Fallback | None = None,
        in_flight_bytes: int = 64 << 20,
        timeout: float = TIMEOUT,
        notify: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._notices = ThrottledNotices("fallback", notify)
        self._topics = topics
        self._fallback = fallback
        self._timeout = timeout
        self._flow = FlowControl(in_flight_bytes)
        self._writers: dict[str, TopicWriter] = {}
        self._recent = RecentIds()
        self._in_flight: dict[tuple[str, str], PendingBatch] = {}
        self._stored: dict[Store, int] = {"topics": 0, "fallback": 0}
        self._duplicates = 0
        self._stopping = False
        self._lost: list[str] = []
        self._backlog_error = ""
        self._backlog_task: asyncio.Task[None] | None = None
        self._dots = not topics.url.startswith("sqs:")
        self.apply(ControlDocument())

    def apply(self, document: ControlDocument) -> None:
        """Use the streams of another document from the next request on. Thread-safe.

        Raises:
            ConfigError: an expression is not valid; then nothing changes.
        """
        router = StreamRouter(document, dots=self._dots)
        self._router = router
        self._flow.limit_rates(router.rates)

    def stream_of(self, type: str) -> str:
        """Return the name of the first stream that may match a type; see ``Route``."""
        return self._router.stream_of(type)

    async def start(self) -> None:
        """Start, and drain what an earlier run left in the fallback."""
        self._stores = Stores(self._topics, self._fallback, self._timeout)
        if self._fallback is not None and not await self._read_backlog(self._fallback):
            self._backlog_task = asyncio.get_running_loop().create_task(self._retry_backlog(self._fallback))

    async def _read_backlog(self, fallback: Fallback) -> bool:
        call = self._stores.drainers.submit(fallback.waiting)
        try:
            backlogs = await self._stores.answer(call, "the fallback")
        except TopicError as error:
            call.cancel()
            self._backlog_error = f"the fallback can't be read: {error}"
            return False
        for topic, backlog in backlogs.items():
            writer = self._writers.get(topic) or self._open(topic)
            writer.divert_for(backlog, fallback)
        self._backlog_error = ""
        return True

    async def _retry_backlog(self, fallback: Fallback) -> None:
        while not await self._read_backlog(fallback):
            await asyncio.sleep(_BACKLOG_RETRY_SECONDS)

    # -- storing ----------------------------------------------------------------------------------------------------

    async def put(self, accepted: Sequence[AcceptedEvent]) -> list[IntakeResult]:
        """Store events. Return their results in order, when each is durable or has failed.

        Events of one stream keep their order, within a request and from an acknowledged request to the next. If a
        stream's flow control admits only some of them, these are the first ones.
        """
        if self._stopping:
            refusal = IntakeResult(status=503, retry_after=1.0, reason="the service is stopping; send it again")
            return [refusal] * len(accepted)
        parts: dict[tuple[str, str], tuple[list[int], list[Message]]] = {}
        route = self._router.route
        for index, (event, body, topic) in enumerate(accepted):
            stream, name, key = route(event) if topic is None else (topic, topic, None)
            part = parts.get((stream, name))
            if part is None:
                part = parts[stream, name] = [], []
            part[0].append(index)
            part[1].append(Message(event.header.id, body, key))
        results: list[IntakeResult | None] = [None] * len(accepted)
        # Enqueue all before awaiting the first, so that all are accounted for even if the client disconnects.
        waiting: list[_Waiting] = []
        for (stream, name), (indices, messages) in parts.items():
            waiting += self._enqueue(stream, name, indices, messages, results)
        for group in waiting:
            await group.batch.wait()
            self._record_result(group, results)
        return [result for result in results if result is not None]

    def _enqueue(
        self, stream: str, topic: str, indices: list[int], messages: list[Message], results: list[IntakeResult | None]
    ) -> list[_Waiting]:
        """Enqueue the admitted events and return those that wait. Record the results of the others."""
        sizes = [len(message.body) for message in messages]
        count, retry_after = self._flow.admit(stream, sizes)
        if count < len(messages):
            reason = f"stream {stream} has too many waiting events"
            refusal = IntakeResult(status=429, stream=stream, topic=topic, retry_after=retry_after, reason=reason)
            for index in indices[count:]:
                results[index] = refusal
            indices, messages = indices[:count], messages[:count]
        if not count:
            return []
        writer = self._writers.get(topic) or self._open(topic)
        batch = PendingBatch(partial(self._settled, stream, writer))
        waiting: list[_Waiting] = []
        own: list[int] = []
        if writer.keeps_ids:
            own = indices
            batch.add(messages, sum(sizes[:count]))
        else:
            for index, message, size in zip(indices, messages, sizes):
                if store := self._recent.store_of(topic, message.id):
                    results[index] = IntakeResult(status=202, store=store, stream=stream, topic=topic, duplicate=True)
                    self._duplicates += 1
                elif known := self._in_flight.get((topic, message.id)):
                    waiting.append(_Waiting(stream, topic, known, [index], message.id))
                else:
                    batch.add([message], size)
                    own.append(index)
                    self._in_flight[topic, message.id] = batch
        self._flow.done(stream, count - len(own), sum(sizes[:count]) - batch.size)
        if own:
            writer.add(batch)
            waiting.insert(0, _Waiting(stream, topic, batch, own))
        return waiting

    def _settled(self, stream: str, writer: TopicWriter, batch: PendingBatch) -> None:
        self._flow.done(stream, len(batch.messages), batch.size)
        if batch.store is not None:
            self._stored[batch.store] += len(batch.messages) - len(batch.refused) - len(batch.duplicates)
            self._duplicates += len(batch.duplicates)
        elif self._stopping:
            self._lost += [message.id for message in batch.messages]
        if not writer.keeps_ids:
            for message in batch.messages:
                self._in_flight.pop((writer.topic, message.id), None)
            if batch.store is not None:
                stored = [message.id for message in batch.messages if message.id not in batch.refused]
                self._recent.add(writer.topic, batch.store, stored)

    def _open(self, topic: str) -> TopicWriter:
        if len(self._writers) >= _MAX_OPEN_WRITERS:
            self._close_idle()

        def stored_late(store: Store, ids: list[str]) -> None:
            if not writer.keeps_ids:
                self._recent.add(topic, store, ids)

        writer = self._writers[topic] = TopicWriter(topic, self._stores, stored_late, self._diverted)
        return writer

    def _diverted(self, error: str) -> None:
        """Notify of an outage, at most every 30 seconds for all topics together, and of its end."""
        if error:
            if self._notices.is_due("outage"):
                self._notices.send(f"stores events, because a topic fails: {error}")
            return
        is_over = all(writer.is_direct for writer in self._writers.values())
        if is_over and self._notices.was_sent("outage") and self._notices.is_due("end"):
            self._notices.send("empty again; its events are in their topics")

    def _close_idle(self) -> None:
        """Close the writers that have been idle longest, because open files are limited."""
        idle = sorted((writer for writer in self._writers.values() if writer.is_idle), key=lambda writer: writer.used)
        for writer in idle[: len(self._writers) // 2]:
            del self._writers[writer.topic]
            if writer.keeps_ids:  # others share connections between all topics
                self._stores.writers.submit(partial(self._close_topic, writer.topic))

    def _close_topic(self, topic: str) -> None:
        with suppress(BalogError):
            self._topics.topic(topic).close()

    def _record_result(self, group: _Waiting, results: list[IntakeResult | None]) -> None:
        stream, topic, batch, indices, repeated_id = group
        if batch.store is None:
            writer = self._writers.get(topic)
            wait = max(1.0, writer.retry_after if writer is not None else 0.0)
            reason = f"no store accepts it now: {batch.error}"
            result = IntakeResult(status=503, stream=stream, topic=topic, retry_after=round(wait, 3), reason=reason)
        else:
            is_duplicate = bool(repeated_id)
            result = IntakeResult(status=202, store=batch.store, stream=stream, topic=topic, duplicate=is_duplicate)
        for index in indices:
            results[index] = result
        if not repeated_id:
            for position in batch.duplicates:
                results[indices[position]] = replace(result, duplicate=True)
        if batch.refused:
            ids = [repeated_id] if repeated_id else [message.id for message in batch.messages]
            for index, id in zip(indices, ids):
                if id in batch.refused:
                    results[index] = IntakeResult(status=413, stream=stream, topic=topic, reason=batch.refused[id])

    # -- stop and state ---------------------------------------------------------------------------------------------

    async def stop(self, deadline: float) -> list[str]:
        """Reject new events, and store the accepted ones.

        Events that the topics have not stored after three quarters of the time go to the fallback.

        Args:
            deadline: seconds for the stop.

        Returns:
            The ids of events that are not known to be durable; their senders got no acknowledgement.
        """
        self._stopping = True
        end = time.monotonic() + deadline
        if self._backlog_task is not None:
            self._backlog_task.cancel()
        steps = [step for writer in self._writers.values() if (step := writer.stop_draining()) is not None]
        await self._settled_until(end - deadline * (1 - _TOPICS_SHARE))
        if not self._stores.deadline_passed.done():
            self._stores.deadline_passed.set_result(None)
        await self._settled_until(end)
        busy = [writer.busy for writer in self._writers.values() if writer.busy is not None]
        for writer in self._writers.values():
            writer.stop()
        await asyncio.gather(*busy, return_exceptions=True)
        if steps:  # the caller closes the backends next
            await asyncio.wait(steps, timeout=max(end - time.monotonic(), 0.0))
        self._stores.close()
        return self._lost

    async def _settled_until(self, end: float) -> None:
        while busy := [writer.busy for writer in self._writers.values() if writer.busy is not None]:
            left = end - time.monotonic()
            if left <= 0 or not (await asyncio.wait(busy, timeout=left))[0]:
                return

    @property
    def error(self) -> str:
        """The current error in one line; "" if there is none. Thread-safe.

        A failure of a topic counts until it stores an event, but only for some seconds: a service that gets no more
        events because of the error would never clear it.
        """
        if self._stopping:
            return "the service is stopping"
        return next((refusal for refusal in self._recent_refusals() if refusal), self._backlog_error)

    @property
    def accepts_events(self) -> bool:
        """Whether at least one topic, or the fallback, may store events. Thread-safe."""
        refusals = self._recent_refusals()
        return not self._stopping and not (refusals and all(refusals))

    def _recent_refusals(self) -> list[str]:
        """Return the last error of each recently used topic; "" if its last batch was stored."""
        since = time.monotonic() - _RECENT_SECONDS
        return [writer.refusal for _, writer in sorted(self._writers.copy().items()) if writer.written_at > since]

    def state(self) -> IntakeState:
        """Return the state. Thread-safe."""
        writers = dict(self._writers)
        return IntakeState(
            in_flight=self._flow.waiting,
            in_flight_bytes=self._flow.bytes,
            stored=dict(self._stored),
            duplicates=self._duplicates,
            backlog=sum(writer.backlog for writer in writers.values()),
            streams=self._flow.states(),
            topics={name: writer.state() for name, writer in sorted(writers.items())},
            error=self.error,
        )
