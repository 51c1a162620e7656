"""One way to open a home of topics: by its URL."""

from __future__ import annotations

from balog.errors import ConfigError
from balog.topics.base import Topics

__all__ = ["open_topics"]


def open_topics(url: str) -> Topics:
    """Open a home of topics; nothing is made before the first message is published.

    Args:
        url: ``local:PATH``, a folder with one SQLite file a topic.

    Raises:
        ConfigError: not such a URL.
    """
    scheme, colon, rest = url.partition(":")
    if not colon:
        raise ConfigError(f"{url!r} is not a URL of topics: want local:PATH")
    if scheme != "local":
        raise ConfigError(f"{url!r}: no topics of kind {scheme!r}; want local:PATH")
    if not rest:
        raise ConfigError(f"{url!r} names no folder: want local:PATH")
    from balog.topics.local import LocalTopics

    return LocalTopics(rest)
