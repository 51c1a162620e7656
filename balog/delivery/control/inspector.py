"""What the topics of a home hold, how fast they grow and how far their groups are, looked at in the background.

To describe a topic may mean to walk over all of it. So a topic is looked at again only after twenty times as long as
its last look took, and nobody looks while nobody asks: looks take at most a twentieth of one thread's time each.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from balog.errors import BalogError, EventError
from balog.event import decode
from balog.signals import join
from balog.topics import GroupState, Received, Topic, Topics, TopicState
from balog.topics.inspection import NO_EVENT, NO_TYPE

__all__ = ["GroupView", "TopicInspector", "TopicView", "TypeCount"]

EVERY, SAMPLE_EVERY, NAMES_EVERY = 2.0, 10.0, 5.0
"""Seconds between two looks, two samples of the newest messages, and two listings of the topics, at least."""

IDLE = 30.0
"""Seconds after the last question for which looks go on."""

SAMPLE = 200
MAX_TOPICS = 500
MAX_TYPES = 20
MAX_OPEN = 50
"""Topics that stay open between two looks; each has files or a connection, of which a process has not many."""

_PART = 20


class TypeCount(Struct, frozen=True):
    """How many of a sample's messages have this ``cls_type`` and version; "" where there is no version."""

    type: str
    version: str
    count: int


class GroupView(Struct, frozen=True, kw_only=True):
    """A group: see ``GroupState``; ``rate`` is in messages a second that it received between two looks."""

    name: str
    lag: int
    in_flight: int
    waiting: int
    dead: int
    rate: float | None = None


class TopicView(Struct, frozen=True, kw_only=True, rename={"error": "trouble"}):
    """A topic as it was ``age`` seconds ago.

    ``rate`` is in messages a second, between two looks; None before the second one, and when messages went away in
    between. ``types`` are of the newest ``sampled`` messages, the most frequent first; a queue, where to look is to
    receive, is not sampled. ``error`` is why the last look failed, "" when it did not.
    """

    name: str
    messages: int = 0
    bytes: int = 0
    oldest: float | None = None
    rate: float | None = None
    groups: list[GroupView] = []
    sampled: int = 0
    types: list[TypeCount] = []
    age: float = 0.0
    error: str = ""


class TopicInspector:
    """Looks at all topics of a home, at most 500 by their names, while somebody asks. May be asked from any thread.

    Args:
        home: the topics; it is not closed. Those beyond the first 50 are closed after each look: in a home that others
            use, they open them again.
        clock: seconds that only grow.
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
        """Return what is known, by name, at once; the first time nothing is, as the looking only begins."""
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
        """Why the topics can't be listed, "" when they can."""
        return self._error

    def close(self) -> None:
        """Look no more."""
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
            self._error = str(error)
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
    """What is known of one topic."""

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
            self._view = TopicView(name=self._topic.name, error=str(error))
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
            return GroupView(
                name=group.name,
                lag=group.lag,
                in_flight=group.in_flight,
                waiting=group.waiting,
                dead=group.dead,
                rate=rate,
            )

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
