"""Where events go while the topics fail: topics of another home, each standing for one of the first."""

from __future__ import annotations

import math
import os

from balog.errors import BalogError, ConfigError
from balog.storage.local_files import lock
from balog.topics import Topic, Topics, local_folder, open_topics

__all__ = ["GROUP", "Fallback", "open_fallback"]

GROUP = "drain"
"""The group that takes events out of a fallback, back to their topics."""

_PREFIX = "fallback--"


class Fallback:
    """A home that keeps, for topic ``NAME`` of another, what that could not take, in its topic ``fallback--NAME``.

    Args:
        home: may hold other topics besides; a second service must have another one, see ``claim``.
    """

    def __init__(self, backend: Topics) -> None:
        self.backend = backend
        self._lock = -1

    def claim(self) -> None:
        """Keep other services of this machine out of it until ``close``: each would move the other's events.

        Raises:
            BalogError: another one has it, or its folder can't be made.
        """
        from balog.topics.local import LocalTopics

        if not isinstance(self.backend, LocalTopics):
            return
        try:
            self.backend.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.backend.path / ".service.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            is_ours = lock(self._lock, wait=False)
        except OSError as error:
            self._unlock()
            raise BalogError(f"the fallback {self.backend.url} can't be used: {error.strerror or error}") from None
        if not is_ours:
            self._unlock()
            raise BalogError(f"another running service uses the fallback {self.backend.url}; give each service its own")

    def _unlock(self) -> None:
        descriptor, self._lock = self._lock, -1
        if descriptor >= 0:
            os.close(descriptor)

    def topic(self, name: str) -> Topic:
        """Return what stands for a topic.

        Raises:
            ConfigError: the name is too long for this home, or has characters that it does not take.
        """
        return self.backend.topic(_PREFIX + name)

    def waiting(self) -> dict[str, int]:
        """Return the topics for which something waits here, and how many events.

        Raises:
            TopicError: the home can't be read.
        """
        from balog.topics.local import LocalTopics

        if isinstance(self.backend, LocalTopics) and not self.backend.path.exists():
            return {}
        found = {}
        for name in self.backend.names():
            if name.startswith(_PREFIX) and (pending := self.backend.topic(name).group_state(GROUP).pending):
                found[name.removeprefix(_PREFIX)] = pending
        return found

    def close(self) -> None:
        """Close the home, and let others have it."""
        self.backend.close()
        self._unlock()


def open_fallback(url: str, topics: str) -> Fallback:
    """Open a fallback. On this disk nothing that waits is ever too old to be kept.

    Args:
        url: a home of topics; ``topics`` is the URL of those that it stands in for.

    Raises:
        ConfigError: no such URL, or the same home.
        MissingExtraError: the packages of that kind of topics are not installed.
    """
    if url == topics:
        raise ConfigError("the fallback is the home of the topics themselves, and fails when they do; name another")
    if (folder := local_folder(url)) is not None:
        from balog.topics.local import LocalTopics

        open_topics(url).close()  # refuses what is no path
        return Fallback(LocalTopics(folder, retention=math.inf))
    return Fallback(open_topics(url))
