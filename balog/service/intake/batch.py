"""An event on its way through the intake: accepted, in a batch of its request, published, and the result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, field

from balog.common.errors import ConfigError, TopicError
from balog.event import Event
from balog.topics import Message, Topic
from balog.topics.publisher import publish_parts

Store = Literal["topics", "fallback"]


class AcceptedEvent(NamedTuple):
    """A valid event and its bytes to store: one line of JSON without a newline.

    ``topic`` overrides the routing, as for failed events; None means the router decides.
    """

    event: Event
    body: bytes
    topic: str | None = None


class IntakeResult(Struct, frozen=True, kw_only=True):
    """The result of storing one event.

    Attributes:
        status: 202 durable; 413 its topic can never store it; 429 its stream has too many waiting events; 503 no store
            accepts it now.
        store: where it is durable: "topics" or "fallback".
        stream: the matching stream; the topic's name if no stream matches.
        duplicate: the id was stored before, and was not stored again.
        retry_after: seconds, for 429 and 503.
        reason: one line, for all statuses except 202.
    """

    status: Literal[202, 413, 429, 503]
    store: Literal["", "topics", "fallback"] = ""
    stream: str = ""
    topic: str = ""
    duplicate: bool = False
    retry_after: float = 0.0
    reason: str = ""


class PublishResult(Struct):
    """The result of a durable batch.

    Attributes:
        new: the ids that the topic did not hold; None if it does not know, or if all were new.
        refused: reasons by id for messages that the topic can never store.
    """

    new: set[str] | None = None
    refused: dict[str, str] = field(default_factory=dict)


class PendingBatch:
    """Messages of one request that wait for one topic.

    Args:
        settled: called once, when the messages are durable or have failed; also if no client waits any more.

    Attributes:
        store: where the messages are durable; None before, and after a failure.
        refused: reasons by id for messages that the topic can never store.
        duplicates: the indices of messages that were stored already.
        error: why the messages could not be stored.
    """

    __slots__ = ("_is_settled", "_settled", "duplicates", "error", "messages", "refused", "size", "store")

    def __init__(self, settled: Callable[[PendingBatch], object]) -> None:
        self.messages: list[Message] = []
        self.size = 0
        self.store: Store | None = None
        self.refused: dict[str, str] = {}
        self.duplicates: set[int] = set()
        self.error = ""
        self._settled = settled
        self._is_settled = asyncio.Event()

    def add(self, messages: Sequence[Message], size: int) -> None:
        """Add messages whose bodies have ``size`` bytes together."""
        self.messages += messages
        self.size += size

    async def wait(self) -> None:
        """Wait until the batch is settled. Any number of tasks may wait, and may be cancelled."""
        await self._is_settled.wait()

    def succeed(self, store: Store, written: PublishResult) -> None:
        """Settle the batch as stored. Call it in order for batches written together: of equal ids, the first is new."""
        self.store, self.refused = store, written.refused
        if written.new is not None:
            for index, message in enumerate(self.messages):
                if message.id in written.new:
                    written.new.discard(message.id)
                else:
                    self.duplicates.add(index)
        self._notify()

    def fail(self, error: str) -> None:
        """Settle the batch as failed: none of its messages is known to be stored."""
        self.error = error
        self._notify()

    def _notify(self) -> None:
        self._settled(self)
        self._is_settled.set()


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
