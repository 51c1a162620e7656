"""How far an engine's group is in its topics, asked for when somebody looks, and not more often than needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping

from balog.errors import BalogError
from balog.topics import GroupState, Topics

__all__ = ["MAX_AGE", "Lag"]

MAX_AGE = 10.0
"""Seconds that an answer is good for: a scrape of each of many Prometheuses must not become a question to a server."""


PATIENCE = 3.0
"""Seconds that who asks waits for topics to answer: a scrape must end while a server is out of reach, of all times."""


class Lag:
    """The state of a group in some topics. Threads may share it: one question goes out, all get its answer.

    Args:
        names: of the topics.
        max_age: seconds.
        patience: seconds.
        clock: gives seconds.
    """

    def __init__(
        self,
        topics: Topics,
        names: Iterable[str],
        group: str,
        max_age: float = MAX_AGE,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.group = group
        self._topics = topics
        self._names = sorted(set(names))
        self._max_age = max_age
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._is_answered = threading.Event()
        self._is_answered.set()
        self._states: dict[str, GroupState | None] = {}

    def states(self) -> Mapping[str, GroupState | None]:
        """Give the state by topic: None where the topic does not exist yet, nothing where it can't be reached."""
        with self._lock:
            is_old = self._asked is None or self._clock() - self._asked >= self._max_age
            if is_old and self._is_answered.is_set():
                self._is_answered.clear()
                self._asked = self._clock()
                self._states = {}
                threading.Thread(target=self._ask, args=(self._states,), name="balog lag", daemon=True).start()
        self._is_answered.wait(self._patience)
        with self._lock:
            return dict(self._states)

    def close(self) -> None:
        """Wait for the question that is out, if one is, before the topics are closed; not longer than ``PATIENCE``."""
        self._is_answered.wait(PATIENCE)

    def _ask(self, states: dict[str, GroupState | None]) -> None:
        try:
            for name in self._names:
                try:
                    topic = self._topics.topic(name)
                    state = topic.group_state(self.group) if topic.exists() else None
                except BalogError:  # the engine says what is wrong with it
                    continue
                with self._lock:
                    states[name] = state
        finally:
            self._is_answered.set()
