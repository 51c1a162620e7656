"""The intake: acknowledges events once they are in their topic or, while that fails, in the fallback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from balog.common.errors import BalogError, TopicError
from balog.delivery.notices import ThrottledNotices
from balog.service.document import ControlDocument
from balog.service.intake.admission import FlowControl, StreamState
from balog.service.intake.batch import PendingBatch, Store
from balog.service.intake.fallback import Fallback
from balog.service.intake.recent_ids import RecentIds
from balog.service.intake.results import AcceptedEvent, IntakeResult
from balog.service.intake.router import StreamRouter
from balog.service.intake.topic_writer import TIMEOUT, Stores, TopicWriter, TopicWriterState
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


class _Part:
    """The events of one request for one topic: those with an immediate result, and those that wait."""

    __slots__ = ("duplicates_of", "group", "indices", "messages")

    def __init__(self) -> None:
        self.indices: list[int] = []
        self.messages: list[Message] = []
        self.group: PendingBatch | None = None
        self.duplicates_of: list[tuple[int, PendingBatch | None]] = []
        """Indices of events whose ids another batch is storing now; None means this part's own batch."""


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

    def stream_of(self, type: str, version: str) -> str:
        """Return the name of the first stream that may match a type and version; see ``Route``."""
        return self._router.stream_of(type, version)

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
        parts: dict[tuple[str, str], _Part] = {}
        route = self._router.route
        for index, (event, body, topic) in enumerate(accepted):
            if topic is None:
                stream, name, key = route(event)
            else:
                stream, name, key = topic, topic, None
            part = parts.get((stream, name))
            if part is None:
                part = parts[stream, name] = _Part()
            part.indices.append(index)
            part.messages.append(Message(event.header.id, body, key))
        results: list[IntakeResult | None] = [None] * len(accepted)
        # Enqueue all before awaiting the first, so that all are accounted for even if the client disconnects.
        for (stream, name), part in parts.items():
            self._enqueue(stream, name, part, results)
        for (stream, name), part in parts.items():
            if part.group is not None:
                await part.group.wait()
                self._record_result(stream, name, part.group, part.indices, results)
            for index, other in part.duplicates_of:
                if group := other or part.group:
                    await group.wait()
                    self._record_result(stream, name, group, [index], results, accepted[index].event.header.id)
        return [result for result in results if result is not None]

    def _enqueue(self, stream: str, topic: str, part: _Part, results: list[IntakeResult | None]) -> None:
        """Enqueue the admitted events, and record the results of the others."""
        count, retry_after = self._flow.admit(stream, [len(message.body) for message in part.messages])
        if count < len(part.indices):
            reason = f"stream {stream} has too many waiting events"
            stored_late = IntakeResult(status=429, stream=stream, topic=topic, retry_after=retry_after, reason=reason)
            for index in part.indices[count:]:
                results[index] = stored_late
            part.indices, part.messages = part.indices[:count], part.messages[:count]
            if not count:
                return
        writer = self._writers.get(topic) or self._open(topic)
        if not writer.keeps_ids:
            self._remove_known(stream, topic, part, results)
        messages, size = part.messages, _size(part.messages)
        if not messages:
            return

        def settled(group: PendingBatch) -> None:
            self._flow.done(stream, len(messages), size)
            if group.store is not None:
                self._stored[group.store] += len(messages) - len(group.refused) - len(group.duplicates)
                self._duplicates += len(group.duplicates)
            elif self._stopping:
                self._lost += [message.id for message in messages]
            if not writer.keeps_ids:
                for message in messages:
                    self._in_flight.pop((topic, message.id), None)
                if group.store is not None:
                    self._recent.add(topic, group.store, [item.id for item in messages if item.id not in group.refused])

        part.group = PendingBatch(messages, size, settled)
        if not writer.keeps_ids:
            self._in_flight.update(((topic, message.id), part.group) for message in messages)
        writer.add(part.group)

    def _remove_known(self, stream: str, topic: str, part: _Part, results: list[IntakeResult | None]) -> None:
        """Record results for known ids, and link ids that are in flight. For topics that keep no ids."""
        seen: set[str] = set()
        indices, messages = [], []
        for index, message in zip(part.indices, part.messages):
            id = message.id
            if store := self._recent.store_of(topic, id):
                results[index] = IntakeResult(status=202, store=store, stream=stream, topic=topic, duplicate=True)
                self._duplicates += 1
            elif group := self._in_flight.get((topic, id)):
                part.duplicates_of.append((index, group))
            elif id in seen:
                part.duplicates_of.append((index, None))
            else:
                seen.add(id)
                indices.append(index)
                messages.append(message)
        self._flow.done(stream, len(part.messages) - len(messages), _size(part.messages) - _size(messages))
        part.indices, part.messages = indices, messages

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

    def _record_result(
        self,
        stream: str,
        topic: str,
        group: PendingBatch,
        indices: Sequence[int],
        results: list[IntakeResult | None],
        repeated: str = "",
    ) -> None:
        """Record the results of a batch, or of an event with the id of one of its messages."""
        if group.store is None:
            writer = self._writers.get(topic)
            wait = max(1.0, writer.retry_after if writer is not None else 0.0)
            reason = f"no store accepts it now: {group.error}"
            result = IntakeResult(status=503, stream=stream, topic=topic, retry_after=round(wait, 3), reason=reason)
        else:
            result = IntakeResult(status=202, store=group.store, stream=stream, topic=topic, duplicate=bool(repeated))
        for index in indices:
            results[index] = result
        if not repeated:
            for position in group.duplicates:
                results[indices[position]] = replace(result, duplicate=True)
        if group.refused:
            ids = [repeated] if repeated else [message.id for message in group.messages]
            for index, id in zip(indices, ids):
                if id in group.refused:
                    results[index] = IntakeResult(status=413, stream=stream, topic=topic, reason=group.refused[id])

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


def _size(messages: Sequence[Message]) -> int:
    return sum(len(message.body) for message in messages)
