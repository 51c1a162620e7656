"""Inspects topics in the background: their size, their growth, and the lag of their groups.

Describing a topic may read all of it. So a request starts an inspection only after twenty times the duration of the
last one. Inspections take at most a twentieth of one thread's time, and none while nobody asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from balog.common.errors import BalogError, redact_error
from balog.common.signals import join
from balog.topics import GroupState, Topic, Topics, TopicState

EVERY = 2.0
"""Least seconds between two inspections."""

MAX_TOPICS = 500
MAX_OPEN = 50
"""Topics that stay open between two inspections; each needs files or a connection."""

_PART = 20


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
    in between. ``error`` is why the last inspection failed; "" if it did not.
    """

    name: str
    messages: int = 0
    bytes: int | None = 0
    oldest: float | None = None
    rate: float | None = None
    groups: list[GroupView] = []
    age: float = 0.0
    error: str = ""


class TopicInspector:
    """Inspects all topics of a backend, at most 500 in order of their names, when results are requested. Thread-safe.

    Args:
        topics: the backend; not closed. Topics beyond the first 50 are closed after each inspection.
        clock: a monotonic clock, in seconds.

    Attributes:
        error: why the topics cannot be listed; "" if they can.
    """

    def __init__(self, topics: Topics, clock: Callable[[], float] = time.monotonic) -> None:
        self.error = ""
        self._backend = topics
        self._clock = clock
        self._lock = threading.Lock()
        self._inspected: dict[str, _Inspected] = {}
        self._due = float("-inf")
        self._thread: threading.Thread | None = None
        self._is_over = False

    def topics(self) -> list[TopicView]:
        """Return the last results by name, without waiting, and start an inspection if it is due."""
        with self._lock:
            now, inspected = self._clock(), list(self._inspected.values())
            is_running = self._thread is not None and self._thread.is_alive()
            if now >= self._due and not is_running and not self._is_over:
                self._thread = threading.Thread(target=self._run, name="balog inspection", daemon=True)
                self._thread.start()
        return [replace(inspection.view, age=round(max(now - inspection.at, 0.0), 1)) for inspection in inspected]

    def close(self) -> None:
        """Stop the inspection."""
        with self._lock:
            self._is_over = True
        if self._thread is not None:
            join(self._thread)

    def _run(self) -> None:
        begun = self._clock()
        try:
            names = self._backend.names()[:MAX_TOPICS]
            self.error = ""
        except BalogError as error:
            names = list(self._inspected)
            self.error = redact_error(str(error))
        inspected = {}
        for number, name in enumerate(names):
            if self._is_over:
                return
            with suppress(BalogError):  # a name that only others use
                topic = self._backend.topic(name)
                inspected[name] = self._inspect(topic, self._inspected.get(name))
                if number >= MAX_OPEN:
                    topic.close()
        with self._lock:
            self._inspected = inspected
            self._due = self._clock() + max(EVERY, _PART * (self._clock() - begun))

    def _inspect(self, topic: Topic, before: _Inspected | None) -> _Inspected:
        begun = self._clock()
        try:
            state = topic.describe()
        except BalogError as error:
            return _Inspected(begun, None, TopicView(name=topic.name, error=redact_error(str(error))))
        return _Inspected(begun, state, _view(state, begun, before))


class _Inspected(NamedTuple):
    """The result of a topic's inspection, when it began, and the state; None if it failed."""

    at: float
    state: TopicState | None
    view: TopicView


def _view(state: TopicState, now: float, last: _Inspected | None) -> TopicView:
    before, seconds = (last.state, now - last.at) if last is not None else (None, 0.0)
    came = state.messages - before.messages if before is not None else -1
    is_known = before is not None and seconds > 0 and came >= 0
    lags = {group.name: group.lag for group in before.groups} if before is not None else {}

    def group_view(group: GroupState) -> GroupView:
        rate = None
        if is_known and group.name in lags:
            rate = max(came + lags[group.name] - group.lag, 0) / seconds
        counts = {name: getattr(group, name) for name in GroupView.__struct_fields__ if name != "rate"}
        return GroupView(**counts, rate=rate)

    return TopicView(
        name=state.name,
        messages=state.messages,
        bytes=state.bytes,
        oldest=state.oldest,
        rate=came / seconds if is_known else None,
        groups=[group_view(group) for group in state.groups],
    )
