"""Topics in memory, for tests: local topics whose database is in memory, with a settable clock."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from balog.common.errors import TopicNotFoundError
from balog.topics.base import Topics, check_name
from balog.topics.local import tables
from balog.topics.local.tables import LeaseClock
from balog.topics.local.topic import LocalTopic
from balog.topics.sqlite_file import SqliteFile


class MemoryTopics(Topics):
    """A backend in memory. It keeps all messages for its own lifetime, even handled ones.

    Args:
        clock: gives the seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.url = "memory:"
        self._clock = clock
        self._topics: dict[str, MemoryTopic] = {}

    def topic(self, name: str) -> MemoryTopic:
        """Return the topic of that name; the same object each time."""
        check_name("topic", name)
        return self._topics.setdefault(name, MemoryTopic(name, self._clock))

    def names(self) -> list[str]:
        """List the topics that were published to, sorted."""
        return sorted(name for name, topic in list(self._topics.items()) if topic.exists())

    def close(self) -> None:
        """Do nothing; messages stay."""


class MemoryTopic(LocalTopic):
    """A local topic in memory; see ``MemoryTopics``. Leases are measured by its clock."""

    poll_timeout: float = 0.02  # a test waits for it at its end

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        super().__init__(name, Path(name), math.inf, clock, LeaseClock(clock, clock, lambda: ""))
        self._file = _MemoryFile(f"topic {name}")


class _MemoryFile(SqliteFile):
    """A database in memory, which the threads of a process share. Closing it changes nothing."""

    def __init__(self, label: str) -> None:
        super().__init__(Path(label), label, tables.SCHEMA, tables.APPLICATION_ID, tables.VERSION)

    def exists(self) -> bool:
        """Return whether the database was created."""
        return self._connection is not None

    def _create(self) -> None:
        with self._lock:
            if self._connection is None:
                connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                connection.executescript(self._schema)
                self._connection = connection

    def _connect(self) -> sqlite3.Connection:
        raise TopicNotFoundError(self.label)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        yield

    def _forget_if_replaced(self) -> None:
        """Do nothing: no other process can replace it."""

    def _close(self) -> None:
        """Do nothing; messages stay."""
