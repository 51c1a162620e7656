"""The fallback: topics of another backend that store events while the topics fail."""

from __future__ import annotations

import math
import os

from balog.common.errors import BalogError, ConfigError
from balog.common.storage.local_files import lock
from balog.topics import Topic, Topics, local_folder, open_topics

GROUP = "drain"
"""The consumer group that moves events from the fallback back to their topics."""

_PREFIX = "fallback--"


class Fallback:
    """A backend that stores events of a failing topic ``NAME`` in its topic ``fallback--NAME``.

    Args:
        backend: may hold other topics, too. Each service needs a fallback of its own, see ``claim``.
    """

    def __init__(self, backend: Topics) -> None:
        self.backend = backend
        self._lock = -1

    def claim(self) -> None:
        """Lock the fallback against other services on this machine until ``close``.

        Raises:
            BalogError: another service uses it, or its folder cannot be created.
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
        """Return the fallback of a topic.

        Raises:
            ConfigError: the name is too long for the backend, or has unsupported characters.
        """
        return self.backend.topic(_PREFIX + name)

    def waiting(self) -> dict[str, int]:
        """Return the number of waiting events by topic, without empty topics.

        Raises:
            TopicError: the backend cannot be read.
        """
        from balog.topics.local import LocalTopics

        if isinstance(self.backend, LocalTopics) and not self.backend.path.exists():
            return {}
        backlogs = {}
        for name in self.backend.names():
            if name.startswith(_PREFIX) and (pending := self.backend.topic(name).group_state(GROUP).pending):
                backlogs[name.removeprefix(_PREFIX)] = pending
        return backlogs

    def close(self) -> None:
        """Close the backend and release the lock."""
        self.backend.close()
        self._unlock()


def open_fallback(url: str, topics: str) -> Fallback:
    """Open a fallback. A fallback on this disk has no retention limit.

    Args:
        url: URL of the fallback's topics.
        topics: URL of the topics that it backs up.

    Raises:
        ConfigError: not a URL of topics, or the same topics.
        MissingExtraError: packages for the topics are not installed.
    """
    if url == topics:
        raise ConfigError("the fallback is the same as the topics, and fails when they do; name another")
    if (folder := local_folder(url)) is not None:
        from balog.topics.local import LocalTopics

        open_topics(url).close()  # rejects an invalid path
        return Fallback(LocalTopics(folder, retention=math.inf))
    return Fallback(open_topics(url))
