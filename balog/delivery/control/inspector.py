"""Inspects topics in the background: their size, their growth, and the lag of their groups.

Describing a topic may read all of it. So a topic is inspected again only after twenty times the duration of its last
inspection, and only while somebody requests the result. Inspections take at most a twentieth of one thread's time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from balog.error_redaction import redact_error
from balog.errors import BalogError, EventError
from balog.event import decode
from balog.signals import join
from balog.topics import GroupState, Received, Topic, Topics, TopicState
from balog.topics.inspection import NO_EVENT, NO_TYPE

EVERY, SAMPLE_EVERY, NAMES_EVERY = 2.0, 10.0, 5.0
"""Least seconds between two inspections, two samples of the newest messages, and two listings of the topics."""

IDLE = 30.0
"""Seconds after the last request until inspections stop."""

SAMPLE = 200
MAX_TOPICS = 500
MAX_TYPES = 20
MAX_OPEN = 50
"""Topics that stay open between two inspections; each needs files or a connection."""

_PART = 20


class TypeCount(Struct, frozen=True):
    """The number of sampled messages with a ``cls_type`` and version; "" if there is no version."""

    type: str
    version: str
    count: int


class GroupView(Struct, frozen=True, kw_only=True):
    """A group, see ``GroupState``; ``rate`` is in received messages per second between two inspections."""

    name: str
    lag: int
    in_flight: int
    waiting: int
    dead: int
    rate: float | None = None


class TopicView(Struct, frozen=True, kw_only=True):
    """A topic as it was ``age`` seconds ago.

    ``rate`` is in messages per second between two inspections; None before the second one, and if messages were deleted
    in between. ``types`` are of the newest ``sampled`` messages, the most frequent first. A queue is not sampled,
    because that would receive its messages. ``error`` is why the last inspection failed; "" if it did not.
    """

    name: str
    messages: int = 0
    bytes: int | None = 0
    oldest: float | None = None
    rate: float | None = None
    groups: list[GroupView] = []
    sampled: int = 0
    types: list[TypeCount] = []
    age: float = 0.0
    error: str = ""


class TopicInspector:
    """Inspects all topics of a backend, at most 500 in order of their names, while results are requested. Thread-safe.

    Args:
        topics: the backend; not closed. Topics beyond the first 50 are closed after each inspection.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, topics: Topics, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend = topics
        self._clock = clock
        self._lock = threading.Condition()
        self._inspections: dict[str, _TopicInspection] = {}
        self._error = ""
        self._requested = float("-inf")
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def topics(self) -> list[TopicView]:
        """Return the last results by name, without waiting. The first call starts the inspection and returns none."""
        with self._lock:
            self._requested = self._clock()
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(target=self._run, name="balog inspection", daemon=True)
                self._thread.start()
            self._lock.notify_all()
            now, inspections = self._clock(), list(self._inspections.values())
        return [inspection.view(now) for inspection in inspections]

    @property
    def error(self) -> str:
        """Why the topics cannot be listed; "" if they can."""
        return self._error

    def close(self) -> None:
        """Stop the inspections."""
        with self._lock:
            self._over.set()
            self._lock.notify_all()
            thread = self._thread
        if thread is not None:
            join(thread)

    def _run(self) -> None:
        names_due = float("-inf")
        while True:
            with self._lock:
                while not self._over.is_set() and self._clock() - self._requested > IDLE:
                    self._lock.wait(EVERY)
                if self._over.is_set():
                    return
            if self._clock() >= names_due:
                names_due = self._list() + NAMES_EVERY
            for number, inspection in enumerate(list(self._inspections.values())):
                if self._over.is_set():
                    return
                if self._clock() >= inspection.due:
                    inspection.inspect()
                    if number >= MAX_OPEN:
                        inspection.close()
            with self._lock:
                if not self._over.is_set():
                    self._lock.wait(EVERY / 4)

    def _list(self) -> float:
        try:
            names = self._backend.names()[:MAX_TOPICS]
            self._error = ""
        except BalogError as error:
            self._error = redact_error(str(error))
            return self._clock()
        inspections = {}
        for name in names:
            with suppress(BalogError):  # a name that only others use
                inspections[name] = self._inspections.get(name) or _TopicInspection(
                    self._backend.topic(name), self._clock
                )
        with self._lock:
            self._inspections = inspections
        return self._clock()


class _TopicInspection:
    """The state of one topic's inspections."""

    def __init__(self, topic: Topic, clock: Callable[[], float]) -> None:
        self.due = float("-inf")
        self._topic = topic
        self._clock = clock
        self._sample_due = float("-inf")
        self._view = TopicView(name=topic.name)
        self._state: TopicState | None = None
        self._at = clock()
        self._types: tuple[int, list[TypeCount]] = (0, [])

    def view(self, now: float) -> TopicView:
        return replace(self._view, age=round(max(now - self._at, 0.0), 1))

    def inspect(self) -> None:
        begun = self._clock()
        try:
            state = self._topic.describe()
            described = self._clock()
            if self._topic.keeps_groups and begun >= self._sample_due:
                self._types = _count_types(self._topic.peek(SAMPLE, newest=True))
                self._sample_due = begun + max(SAMPLE_EVERY, _PART * (self._clock() - described))
            self._update(state, begun)
        except BalogError as error:
            self._view = TopicView(name=self._topic.name, error=redact_error(str(error)))
            self._state = None
            described = self._clock()
        self.due = self._clock() + max(EVERY, _PART * (described - begun))

    def close(self) -> None:
        with suppress(BalogError):
            self._topic.close()

    def _update(self, state: TopicState, now: float) -> None:
        before, seconds = self._state, now - self._at
        came = state.messages - before.messages if before is not None else -1
        is_known = before is not None and seconds > 0 and came >= 0
        lags = {group.name: group.lag for group in before.groups} if before is not None else {}

        def group_view(group: GroupState) -> GroupView:
            rate = None
            if is_known and group.name in lags:
                rate = max(came + lags[group.name] - group.lag, 0) / seconds
            counts = {name: getattr(group, name) for name in GroupView.__struct_fields__ if name != "rate"}
            return GroupView(**counts, rate=rate)

        sampled, types = self._types
        self._view = TopicView(
            name=state.name,
            messages=state.messages,
            bytes=state.bytes,
            oldest=state.oldest,
            rate=came / seconds if is_known else None,
            groups=[group_view(group) for group in state.groups],
            sampled=sampled,
            types=types,
        )
        self._state, self._at = state, now


def _count_types(messages: Sequence[Received]) -> tuple[int, list[TypeCount]]:
    counts = Counter(_kind(message.body) for message in messages)
    return len(messages), [TypeCount(*kind, count) for kind, count in counts.most_common(MAX_TYPES)]


def _kind(body: bytes) -> tuple[str, str]:
    try:
        event = decode(body)
        return event.cls_type or NO_TYPE, event.version or ""
    except EventError:
        return NO_EVENT, ""
