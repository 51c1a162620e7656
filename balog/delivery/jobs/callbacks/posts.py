"""Requests to post: one event each, or a batch as a JSON array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from balog.consumers import ReceivedEvent
from balog.delivery.document import Callback
from balog.sinks.signing import batch_id
from balog.topics import Received


class Post(Struct, frozen=True, eq=False):
    """One request.

    Attributes:
        id: the ``webhook-id``.
        ids: the ids of its events.
        messages: the messages of its events, in the same order.
    """

    id: str
    body: bytes
    ids: Sequence[str]
    messages: Sequence[Received]

    def halves(self) -> tuple[Post, Post]:
        """Split a batch in two, to find the events that the endpoint rejects."""
        middle = len(self.ids) // 2
        return (
            _batch(self.ids[:middle], self.messages[:middle]),
            _batch(self.ids[middle:], self.messages[middle:]),
        )


def make_posts(config: Callback, received: Sequence[ReceivedEvent]) -> Iterator[Post]:
    """Yield the requests for events in their order.

    Args:
        config: the callback. With ``per: batch``, a request has at most ``batch.bytes``, except for a single larger
            event.
    """
    if config.per != "batch":
        for event, message in received:
            yield Post(event.header.id, message.body, (event.header.id,), (message,))
        return
    ids: list[str] = []
    messages: list[Received] = []
    size = 0
    for event, message in received:
        size += len(message.body) + 1
        if ids and size > config.batch.bytes:
            yield _batch(ids, messages)
            ids, messages, size = [], [], len(message.body) + 1
        ids.append(event.header.id)
        messages.append(message)
    yield _batch(ids, messages)


def _batch(ids: Sequence[str], messages: Sequence[Received]) -> Post:
    body = b"[" + b",".join(message.body for message in messages) + b"]"
    return Post(batch_id(ids), body, ids, messages)
