"""Events into a topic, where consumers find them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from balog.errors import MessageError, TopicError
from balog.sinks.base import Delivery, SinkError, SinkOptions
from balog.topics.keys import RUN, key_reader

if TYPE_CHECKING:
    from balog.event import Event
    from balog.topics import Topic, Topics

__all__ = ["TopicSink", "TopicSinkConfig", "TopicsUrl"]

TopicsUrl = Annotated[
    str, Meta(min_length=1, description="The home of the topics: local:PATH, sqs:REGION or kafka:HOST:PORT.")
]


class TopicSinkConfig(SinkOptions, tag_field="type", tag="topic", forbid_unknown_fields=True, kw_only=True):
    """Publish to a topic; each event is durable there once its batch returns."""

    url: TopicsUrl
    topic: Annotated[str, Meta(min_length=1, max_length=200, description="The topic's name in that home.")]
    key: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="An expression: events of one value keep their order in Kafka and SQS FIFO; null for none.",
            ),
        ]
        | None
    ) = RUN

    @property
    def name(self) -> str:
        """``topic NAME``."""
        return f"topic {self.topic}"

    def build(self) -> TopicSink:
        """Make the sink; the URL is checked here.

        Raises:
            ConfigError: no such kind of home, a name that no topic can have, or a key that is no expression.
            MissingExtraError: the packages of that kind of home are not installed.
        """
        from balog.topics import open_topics

        key_of = key_reader(self.key, "key")
        home = open_topics(self.url)
        return TopicSink(home, home.topic(self.topic), key_of)


class TopicSink:
    """See ``TopicSinkConfig``."""

    def __init__(self, home: Topics, topic: Topic, key_of: Callable[[Event], str | None]) -> None:
        self._home = home
        self._topic = topic
        self._key_of = key_of

    def open(self) -> None:
        """Nothing to do: the topic is made by the first publish."""

    def probe(self) -> None:
        """See whether the home answers and, of one on this disk, the topic can be read or made; see ``Sink``."""
        from balog.topics.local import LocalTopics

        try:
            exists = self._topic.exists()
            if not isinstance(self._home, LocalTopics):
                return
            if exists:
                self._topic.describe()
                return
        except TopicError as error:
            raise SinkError(str(error)) from None
        home = self._home.path.absolute()
        folder = next(path for path in (home, *home.parents) if path.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise SinkError(f"{folder}: no topic can be made there by this user; give another url")

    def write(self, batch: Sequence[Delivery]) -> None:
        """Publish a batch: on this disk all or none of it, elsewhere what was stored may come again."""
        from balog.topics import Message

        messages = [Message(event.header.id, body, self._key_of(event)) for event, body in batch]
        try:
            self._topic.publish(messages)
        except TopicError as error:
            # Who is denied, or finds a file damaged, is heard when that is put right: no fault of the events.
            raise SinkError(str(error), retryable=not isinstance(error, MessageError)) from error

    def close(self) -> None:
        """Close the home."""
        self._topic.close()
        self._home.close()
