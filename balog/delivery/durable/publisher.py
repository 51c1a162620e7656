"""Many events into one topic at once, each known to be new, there already, or nothing that the topic takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from balog.errors import ConfigError, MessageError, TopicError
from balog.topics import Message, Topic

__all__ = ["PublishResult", "publish"]


class PublishResult(Struct):
    """What became of a batch that is durable now.

    Attributes:
        new: the ids that the topic did not hold; None where it can't tell, and where all were new.
        refused: of messages that the topic can never take, by id, why; they are not stored.
    """

    new: set[str] | None = None
    refused: dict[str, str] = field(default_factory=dict)


def publish(topic: Callable[[], Topic], messages: Sequence[Message]) -> PublishResult:
    """Store messages durably, in their order, without those that the topic can never take.

    Where a home takes a part of a batch before it refuses one message, and keeps no ids, that part may be there twice.

    Args:
        topic: gives the topic; a name that the home cannot have is the fault of all messages.

    Raises:
        TopicError: nobody knows of any message that it is stored.
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
    except Exception as error:  # a home's own failure must not end what waits for it
        raise TopicError(f"{type(error).__name__} while events were stored: {error!s:.300}") from error


def _write_parts(topic: Topic, messages: Sequence[Message], written: PublishResult) -> None:
    """Halve a batch until the messages that can't be taken are alone."""
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
