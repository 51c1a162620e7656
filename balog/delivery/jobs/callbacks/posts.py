"""Requests to post: one event each, or a batch as a JSON array."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from balog.delivery.document import Callback
from balog.sinks.signing import batch_id
from balog.topics import Received

__all__ = ["Post", "PostQueue"]


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
    is_batch: bool

    def halves(self) -> tuple[Post, Post]:
        """Split a batch in two, to find the events that the endpoint rejects."""
        middle = len(self.ids) // 2
        return (
            _batch(self.ids[:middle], self.messages[:middle]),
            _batch(self.ids[middle:], self.messages[middle:]),
        )


class PostQueue:
    """Events that wait to be posted, in order of arrival.

    Args:
        config: the callback, with ``per`` and ``batch``.
    """

    def __init__(self, config: Callback) -> None:
        self._is_batch = config.per == "batch"
        self._batch = config.batch
        self._events: deque[tuple[str, Received, float]] = deque()
        self._halves: deque[Post] = deque()

    def __len__(self) -> int:
        return len(self._events) + sum(len(post.ids) for post in self._halves)

    def add(self, id: str, message: Received) -> None:
        """Add an event."""
        self._events.append((id, message, time.monotonic()))

    def split(self, post: Post) -> None:
        """Add the halves of a batch before all others."""
        self._halves.extendleft(reversed(post.halves()))

    @property
    def rest(self) -> float | None:
        """Seconds until the forming batch is posted as it is; None without a forming batch."""
        if not (self._is_batch and self._events):
            return None
        return max(0.0, self._events[0][2] + self._batch.age - time.monotonic())

    def take(self, *, at_once: bool = False) -> Post | None:
        """Return the next request; None when there is none, or when the forming batch waits for more events.

        Args:
            at_once: return also a batch that is not full.
        """
        if self._halves:
            return self._halves.popleft()
        if not self._events:
            return None
        if not self._is_batch:
            id, message, _ = self._events.popleft()
            return Post(id, message.body, (id,), (message,), False)
        count = self._count()
        if count == len(self._events) < self._batch.events and not at_once and self.rest:
            return None
        taken = [self._events.popleft() for _ in range(count)]
        return _batch([id for id, _, _ in taken], [message for _, message, _ in taken])

    def clear(self) -> list[Received]:
        """Remove all waiting events and return their messages."""
        found = [message for post in self._halves for message in post.messages]
        found += [message for _, message, _ in self._events]
        self._halves.clear()
        self._events.clear()
        return found

    def _count(self) -> int:
        """Return how many events fit into the next batch; an event above the size limit is a batch of its own."""
        size = count = 0
        for _, message, _ in self._events:
            size += len(message.body) + 1
            if count and (count == self._batch.events or size > self._batch.bytes):
                break
            count += 1
        return count


def _batch(ids: Sequence[str], messages: Sequence[Received]) -> Post:
    body = b"[" + b",".join(message.body for message in messages) + b"]"
    return Post(batch_id(ids), body, ids, messages, True)
