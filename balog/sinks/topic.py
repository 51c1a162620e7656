"""Events into a topic, where consumers find them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from balog.errors import TopicError
from balog.sinks.base import Delivery, SinkError, SinkOptions

if TYPE_CHECKING:
    from balog.topics import Topic, Topics

__all__ = ["TopicSink", "TopicSinkConfig"]


class TopicSinkConfig(SinkOptions, tag_field="type", tag="topic", forbid_unknown_fields=True, kw_only=True):
    """Publish to a topic; each event is durable there once its batch returns, and kept once by its id."""

    url: Annotated[str, Meta(min_length=1, description="The home of the topics, such as local:PATH.")]
    topic: Annotated[str, Meta(min_length=1, max_length=200, description="The topic's name in that home.")]

    @property
    def name(self) -> str:
        """``topic NAME``."""
        return f"topic {self.topic}"

    def build(self) -> TopicSink:
        """Make the sink; the URL is checked here.

        Raises:
            ConfigError: no such kind of home, or a name that no topic can have.
        """
        from balog.topics import open_topics

        home = open_topics(self.url)
        return TopicSink(home, home.topic(self.topic))


class TopicSink:
    """See ``TopicSinkConfig``."""

    def __init__(self, home: Topics, topic: Topic) -> None:
        self._home = home
        self._topic = topic

    def open(self) -> None:
        """Nothing to do: the topic is made by the first publish."""

    def probe(self) -> None:
        """See whether the topic can be read, or else its folder written to, see ``Sink``."""
        from balog.topics.local import LocalTopics

        try:
            if self._topic.exists():
                self._topic.describe()
                return
        except TopicError as error:
            raise SinkError(str(error), retryable=error.retryable) from None
        if isinstance(self._home, LocalTopics):
            home = self._home.path.absolute()
            folder = next(path for path in (home, *home.parents) if path.exists())
            if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
                raise SinkError(f"{folder}: no topic can be made there by this user; give another url")

    def write(self, batch: Sequence[Delivery]) -> None:
        """Publish a batch in one transaction."""
        from balog.topics import Message

        try:
            self._topic.publish([Message(id=event.header.id, body=body) for event, body in batch])
        except TopicError as error:
            raise SinkError(str(error), retryable=error.retryable) from error

    def close(self) -> None:
        """Close the home."""
        self._topic.close()
        self._home.close()
