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


class Lag:
    """The state of a group in some topics. Threads may share it: one asks, the others get the same answer.

    Args:
        names: of the topics.
        max_age: seconds.
        clock: gives seconds.
    """

    def __init__(
        self,
        topics: Topics,
        names: Iterable[str],
        group: str,
        max_age: float = MAX_AGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.group = group
        self._topics = topics
        self._names = sorted(set(names))
        self._max_age = max_age
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._states: dict[str, GroupState | None] = {}

    def states(self) -> Mapping[str, GroupState | None]:
        """Give the state by topic: None where the topic does not exist yet, nothing where it can't be reached."""
        with self._lock:
            if self._asked is None or self._clock() - self._asked >= self._max_age:
                found: dict[str, GroupState | None] = {}
                for name in self._names:
                    try:
                        topic = self._topics.topic(name)
                        found[name] = topic.group_state(self.group) if topic.exists() else None
                    except BalogError:  # the engine says what is wrong with it
                        continue
                self._states = found
                self._asked = self._clock()
            return self._states
