"""A folder as a backend of topics."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from balog.common.errors import ConfigError, TopicError
from balog.common.local_path import local_path
from balog.topics.base import Topics, check_name, uptime
from balog.topics.local.tables import LeaseClock
from balog.topics.local.topic import LocalTopic
from balog.topics.url import split_local_url

_SUFFIX = ".sqlite"


class LocalTopics(Topics):
    """A folder of topics.

    Args:
        path: the folder; the first published message creates it.
        retention: seconds after which messages and dead letters are deleted, even unhandled ones. None deletes messages
            after 14 days once all groups have handled them, and keeps dead letters until they are redriven.
        clock: returns seconds since the epoch.
        uptime: returns seconds since the machine's start, for leases and delays.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        retention: float | None = None,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = uptime,
    ) -> None:
        self.path = Path(local_path(os.fspath(path), f"local:{path}"))
        self.url = f"local:{path}"
        self._retention = retention
        self._clock = clock
        self._lease_clock = LeaseClock(clock, uptime)
        self._lock = threading.Lock()
        self._topics: dict[str, LocalTopic] = {}

    def topic(self, name: str) -> LocalTopic:
        """Return the topic of that name; the same object each time."""
        check_name("topic", name)
        with self._lock:
            if name not in self._topics:
                path = self.path / (name + _SUFFIX)
                self._topics[name] = LocalTopic(name, path, self._retention, self._clock, self._lease_clock)
            return self._topics[name]

    def names(self) -> list[str]:
        """List the topics that exist, sorted."""
        try:
            files = [entry.name for entry in os.scandir(self.path)]
        except OSError as error:
            raise TopicError(
                f"no topics in {self.path}: {error.strerror}; the folder is made when something is first published"
            ) from error
        return sorted(name[: -len(_SUFFIX)] for name in files if name.endswith(_SUFFIX) and not name.startswith("."))

    def close(self) -> None:
        """Close the files of all topics; a later use opens them again."""
        with self._lock:
            topics = list(self._topics.values())
        for topic in topics:
            topic.close()


def open_local(url: str) -> LocalTopics:
    """Open a URL ``local:PATH?retention=14d``.

    Raises:
        ConfigError: it names no folder, or the retention is not a time.
    """
    path, retention = split_local_url(url)
    if not path:
        raise ConfigError(f"{url!r} names no folder: expected local:PATH")
    return LocalTopics(path, retention)
