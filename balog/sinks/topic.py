"""Events into a topic, for consumers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from balog.common.errors import MessageError, TopicError
from balog.common.local_path import NEW, check_folder
from balog.sinks.base import Delivery, SinkError, SinkGuarantee, SinkOptions
from balog.topics.keys import RUN, key_reader
from balog.topics.url import TopicsUrl

if TYPE_CHECKING:
    from balog.event import Event
    from balog.topics import Topic, Topics


_SQS_ENTRIES = 10
"""Messages that one request to SQS carries at most."""

_Expression = Annotated[str, Meta(min_length=1)]


class TopicSinkConfig(SinkOptions, tag_field="type", tag="topic", forbid_unknown_fields=True, kw_only=True):
    """Publish to a topic; each event is durable there once its batch returns."""

    examples: ClassVar = (
        {"type": "topic", "url": "local:topics", "topic": "singer-events"},
        {"type": "topic", "url": "kafka:localhost:9092", "topic": "orders", "key": "payload.order_id"},
    )

    guarantees: ClassVar = (
        SinkGuarantee(
            "at least once",
            "it is on disk (fsync)",
            "a batch, all or nothing",
            repeats="is stored once by its id",
            not_retried="an event that is too large",
            option="local:",
        ),
        SinkGuarantee(
            "at least once",
            "SQS has stored it",
            "up to 10 events",
            not_retried="an event that is too large",
            option="sqs:",
            extra="aws",
        ),
        SinkGuarantee(
            "at least once",
            "all in-sync replicas have it",
            "a batch",
            not_retried="an event that is too large",
            option="kafka:",
            extra="kafka",
        ),
    )

    url: TopicsUrl
    topic: Annotated[str, Meta(min_length=1, max_length=200, description="The topic's name in that home.")]
    key: Annotated[
        _Expression | None,
        Meta(description="An expression: events of one value keep their order in Kafka and SQS FIFO; null for none."),
    ] = RUN

    @property
    def name(self) -> str:
        """``topic URL#TOPIC``, without the URL's options."""
        return f"topic {self.url.partition('?')[0]}#{self.topic}"

    def build(self) -> TopicSink:
        """Return the sink, unopened; the URL is checked here.

        Raises:
            ConfigError: the backend, the topic's name or the expression of the key is invalid.
            MissingExtraError: the backend's packages are not installed.
        """
        from balog.topics import open_topics

        key_of = key_reader(self.key, "key")
        topics = open_topics(self.url)
        base_url = self.url.partition("?")[0]
        part = _SQS_ENTRIES if base_url.startswith("sqs:") else None
        return TopicSink(f"topic {self.topic} ({base_url})", topics, topics.topic(self.topic), key_of, part)


class TopicSink:
    """See ``TopicSinkConfig``.

    Args:
        name: the topic as its errors name it.
        topics: the backend of ``topic``.
        key_of: returns the key of an event's message.
        part: how many events one request carries; None for all.
    """

    def __init__(
        self, name: str, topics: Topics, topic: Topic, key_of: Callable[[Event], str | None], part: int | None = None
    ) -> None:
        self._prefix = f"{name}: "  # the line of an error names the sink anyway
        self._topics = topics
        self._topic = topic
        self._key_of = key_of
        self._part = part

    def open(self) -> None:
        """Do nothing: the first publish creates the topic."""

    def probe(self) -> str:
        """Check that the backend answers and, on local disk, that the topic can be read or created; see ``Sink``."""
        from balog.topics.local import LocalTopics

        try:
            exists = self._topic.exists()
            if not isinstance(self._topics, LocalTopics):
                return ""
            if exists:
                self._topic.describe()
                return ""
            return check_folder(self._topics.path) or NEW
        except TopicError as error:
            raise SinkError(self._reason(error)) from None
        except OSError as error:
            raise SinkError(f"{error.filename}: no topic can be made there by this user; give another url") from None

    def write(self, batch: Sequence[Delivery]) -> None:
        """Publish a batch: atomically on local disk; elsewhere, events that were stored may come again."""
        from balog.topics import Message

        for begin in range(0, len(batch), self._part or len(batch) or 1):
            part = batch[begin:][: self._part]
            try:
                self._topic.publish([Message(event.header.id, body, self._key_of(event)) for event, body in part])
            except TopicError as error:
                # A missing permission or a damaged file can be corrected, so the events are kept.
                reason, is_kept = self._reason(error), not isinstance(error, MessageError)
                raise SinkError(reason, retryable=is_kept, remaining=range(begin, len(batch))) from error
            for delivery in part:
                delivery.accept()

    def _reason(self, error: TopicError) -> str:
        return str(error).removeprefix(self._prefix)

    def close(self) -> None:
        """Close the topic and its backend."""
        self._topic.close()
        self._topics.close()
