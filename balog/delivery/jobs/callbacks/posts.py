"""What is to be posted next: each event by itself, or several as one JSON array."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from balog.delivery.document import Callback
from balog.sinks.signing import batch_id
from balog.topics import Received

__all__ = ["Post", "Waiting"]


class Post(Struct, frozen=True, eq=False):
    """One request: its ``webhook-id``, its body, and the messages that are through when it succeeds.

    ``ids`` are those of their events, in the same order.
    """

    id: str
    body: bytes
    ids: Sequence[str]
    messages: Sequence[Received]
    is_batch: bool

    def halves(self) -> tuple[Post, Post]:
        """Cut a batch in two, to find what in it is refused."""
        middle = len(self.ids) // 2
        return (
            _batch(self.ids[:middle], self.messages[:middle]),
            _batch(self.ids[middle:], self.messages[middle:]),
        )


class Waiting:
    """Events that wait for a request, in the order in which they came.

    Args:
        config: the callback's; ``per`` and ``batch`` are what counts.
    """

    def __init__(self, config: Callback) -> None:
        self._is_batch = config.per == "batch"
        self._batch = config.batch
        self._events: deque[tuple[str, Received, float]] = deque()
        self._halves: deque[Post] = deque()

    def __len__(self) -> int:
        return len(self._events) + sum(len(post.ids) for post in self._halves)

    def add(self, id: str, message: Received) -> None:
        """Let an event wait."""
        self._events.append((id, message, time.monotonic()))

    def split(self, post: Post) -> None:
        """Let a batch come again as two, before all others."""
        self._halves.extendleft(reversed(post.halves()))

    @property
    def rest(self) -> float | None:
        """Seconds until a batch is old enough to go as it is; None when none is forming."""
        if not (self._is_batch and self._events):
            return None
        return max(0.0, self._events[0][2] + self._batch.age - time.monotonic())

    def take(self, *, at_once: bool = False) -> Post | None:
        """Give the next request; None when nothing waits, or what waits should wait for more.

        Args:
            at_once: a batch that is not full goes too.
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
        """Let nothing wait any more, and give what did."""
        found = [message for post in self._halves for message in post.messages]
        found += [message for _, message, _ in self._events]
        self._halves.clear()
        self._events.clear()
        return found

    def _count(self) -> int:
        """Tell how many of the events fit into the next batch; one that is too large alone makes one of its own."""
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
