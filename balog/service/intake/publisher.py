"""Publishes a batch to one topic, and reports which messages are new, duplicates, or rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from balog.common.errors import ConfigError, TopicError
from balog.topics import Message, Topic
from balog.topics.publisher import publish_parts


class PublishResult(Struct):
    """The result of a durable batch.

    Attributes:
        new: the ids that the topic did not hold; None if it does not know, or if all were new.
        refused: reasons by id for messages that the topic can never store.
    """

    new: set[str] | None = None
    refused: dict[str, str] = field(default_factory=dict)


def publish(topic: Callable[[], Topic], messages: Sequence[Message]) -> PublishResult:
    """Store messages durably in order, except those that the topic can never store.

    If a backend without ids stores a part of a batch before it rejects a message, that part may be stored twice.

    Args:
        topic: returns the topic; an invalid name rejects all messages.

    Raises:
        TopicError: no message is known to be stored.
    """
    refused: dict[str, str] = {}
    try:
        try:
            opened = topic()
        except ConfigError as error:
            return PublishResult(refused=dict.fromkeys([message.id for message in messages], str(error)))
        parts = list(
            publish_parts(opened.publish_new, messages, lambda message, error: refused.update({message.id: str(error)}))
        )
    except TopicError:
        raise
    except Exception as error:  # an unexpected error of a backend must not end the writer
        raise TopicError(f"{type(error).__name__} while events were stored: {error!s:.300}") from error
    new = set[str]()
    for part in parts:
        if part is None:
            return PublishResult(None, refused)
        new |= part
    return PublishResult(None if len(new) == len(messages) else new, refused)
