"""The lag of a group in its topics, requested when it is read and cached for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping

from balog.common.errors import BalogError
from balog.topics import GroupState, Topics

MAX_AGE = 10.0
"""Seconds that an answer is cached: several Prometheus servers must not multiply the requests to a broker."""


TIMEOUT = 3.0
"""Seconds to wait for topics to answer: a scrape must end also while a broker is unreachable."""


class Lag:
    """The state of a group in several topics. Threads may share it: they share one request and its answer.

    Args:
        names: the topics.
        max_age: seconds that an answer is cached.
        timeout: seconds that a reader waits for an answer.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        topics: Topics,
        names: Iterable[str],
        group: str,
        max_age: float = MAX_AGE,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.group = group
        self._topics = topics
        self._names = sorted(set(names))
        self._max_age = max_age
        self._timeout = timeout
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._is_answered = threading.Event()
        self._is_answered.set()
        self._states: dict[str, GroupState | None] = {}

    def states(self) -> Mapping[str, GroupState | None]:
        """Return the state by topic: None for a topic that does not exist yet, no entry for an unreachable one."""
        with self._lock:
            is_old = self._asked is None or self._clock() - self._asked >= self._max_age
            if is_old and self._is_answered.is_set():
                self._is_answered.clear()
                self._asked = self._clock()
                self._states = {}
                threading.Thread(target=self._ask, args=(self._states,), name="balog lag", daemon=True).start()
        self._is_answered.wait(self._timeout)
        with self._lock:
            return dict(self._states)

    def close(self) -> None:
        """Wait for a pending request before the topics are closed, at most ``TIMEOUT`` seconds."""
        self._is_answered.wait(TIMEOUT)

    def _ask(self, states: dict[str, GroupState | None]) -> None:
        try:
            for name in self._names:
                try:
                    topic = self._topics.topic(name)
                    state = topic.group_state(self.group) if topic.exists() else None
                except BalogError:  # the engine reports it
                    continue
                with self._lock:
                    states[name] = state
        finally:
            self._is_answered.set()
