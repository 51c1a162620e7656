"""Publishes a batch to one topic, and reports which messages are new, duplicates, or rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from balog.common.errors import ConfigError, MessageError, TopicError
from balog.topics import Message, Topic


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
    try:
        try:
            opened = topic()
        except ConfigError as error:
            return PublishResult(refused=dict.fromkeys([message.id for message in messages], str(error)))
        new = opened.publish_new(messages)
        return PublishResult(None if new is None or len(new) == len(messages) else new)
    except MessageError:
        written = PublishResult(set())
        _write_parts(opened, messages, written)
        return written
    except TopicError:
        raise
    except Exception as error:  # an unexpected error of a backend must not end the writer
        raise TopicError(f"{type(error).__name__} while events were stored: {error!s:.300}") from error


def _write_parts(topic: Topic, messages: Sequence[Message], written: PublishResult) -> None:
    """Split a batch until the rejected messages are isolated."""
    try:
        new = topic.publish_new(messages)
    except MessageError as error:
        if len(messages) == 1:
            written.refused[messages[0].id] = str(error)
            return
        half = len(messages) // 2
        _write_parts(topic, messages[:half], written)
        _write_parts(topic, messages[half:], written)
    else:
        if written.new is not None:
            written.new = None if new is None else written.new | new
