"""Merge topics by the times of their events: a backlog in one of them holds back later events of the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from balog.consumers import Engine, Hook, Retry
from balog.event import Event

STALL_SECONDS = 60.0
"""Seconds without progress after which a topic's backlog holds back the others no longer."""

_LOOK_SECONDS = 0.1


class TopicMerge(Hook):
    """Gives each topic its turn when no other topic can have an earlier event. Each topic has a thread of its own.

    One batch of each topic waits at most, so the memory is bounded. Within a batch, events are sorted.

    Args:
        topics: their names.
        pending: returns the number of messages of a topic that are not handled.
        clock: returns the time, for events from the future.
        monotonic: returns monotonic seconds.
    """

    def __init__(
        self,
        topics: Sequence[str],
        pending: Callable[[str], int],
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topics = list(topics)
        self._pending = pending
        self._clock = clock
        self._monotonic = monotonic
        self._turn = threading.Condition()
        self._waiting: dict[str, float] = {}
        self._handled: dict[str, float] = {}
        self._moved: dict[str, float] = {}
        self._is_over = False

    def tick(self, engine: Engine) -> None:
        """Release the waiting threads when the engine stops."""
        if engine.state.draining and not self._is_over:
            with self._turn:
                self._is_over = True
                self._turn.notify_all()

    def wait_for_end(self, seconds: float) -> bool:
        """Wait, and return whether the engine stops."""
        with self._turn:
            self._turn.wait_for(lambda: self._is_over, seconds)
            return self._is_over

    def take(self, topic: str, events: Sequence[Event], handle: Callable[[Sequence[Event]], None]) -> None:
        """Handle events of a topic, each part when it is its turn.

        Raises:
            Retry: the engine stops.
        """
        rest = sorted(events, key=lambda event: event.header.timestamp)
        while rest:
            bound = self._wait(topic, self._time(rest[0]))
            count = next((number for number, event in enumerate(rest) if self._time(event) > bound), len(rest))
            try:
                handle(rest[:count])
            finally:
                with self._turn:
                    del self._waiting[topic]
                    self._turn.notify_all()
            with self._turn:
                self._handled[topic] = max(self._handled.get(topic, 0.0), self._time(rest[count - 1]))
                self._moved[topic] = self._monotonic()
            rest = rest[count:]

    def _time(self, event: Event) -> float:
        return min(event.header.timestamp.timestamp(), self._clock())

    def _wait(self, topic: str, first: float) -> float:
        """Return the time up to which the topic's events are next, once its first one is."""
        with self._turn:
            self._waiting[topic] = first
            self._turn.notify_all()
            began = self._monotonic()
            while (bound := self._bound(topic, began)) < first:
                if self._is_over:
                    del self._waiting[topic]
                    raise Retry("the engine stops")
                self._turn.wait(_LOOK_SECONDS)
            return bound

    def _bound(self, topic: str, began: float) -> float:
        """Return the earliest time that an event of another topic can have."""
        bound = float("inf")
        for other in self._topics:
            if other == topic:
                continue
            if other in self._waiting:
                bound = min(bound, self._waiting[other])
            elif self._monotonic() - max(began, self._moved.get(other, began)) < STALL_SECONDS:
                handled = self._handled.get(other, float("-inf"))
                if handled < bound and self._pending(other):
                    bound = handled
        return bound
