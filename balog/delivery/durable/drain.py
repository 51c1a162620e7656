"""Out of the fallback, back into the topic: in order, with the same ids, acked there only when it is durable here."""

from __future__ import annotations

from collections.abc import Sequence

from balog.delivery.durable.fallback import GROUP, Fallback
from balog.delivery.durable.publisher import publish
from balog.errors import TopicError
from balog.topics import GivenUp, Message, Received, Topic, Topics

__all__ = ["Drain"]

_MOST = 10_000
_LEASE = 20.0  # seconds: how long after a kill what was in hand, and all behind it, waits


class Drain:
    """Moves the events of one topic. Its calls block; one at a time.

    A kill at any moment loses nothing: what was not acked comes again, and a topic that keeps ids has it once.

    Args:
        moved: ids that are known to be in the topic already; they are only acked.
    """

    def __init__(self, topic: str, topics: Topics, fallback: Fallback, moved: set[str]) -> None:
        self._name = topic
        self._topics = topics
        self._fallback = fallback
        self._moved = moved
        self._is_first = True
        self._few = _MOST

    def step(self, limit: int) -> tuple[int, bool]:
        """Move at most ``limit`` events.

        What the topic can never take becomes a dead letter of the fallback's.

        Returns:
            how many left the fallback, and whether nothing is left in it.

        Raises:
            TopicError: the topic or the fallback fails; what was in hand is given back.
        """
        source = self._fallback.topic(self._name)
        if not source.exists():
            return 0, True
        if self._is_first and source.keeps_order and source.group_state(GROUP).in_flight:
            raise TopicError(f"topic {self._name}: another drain, or one that was killed, still has events in hand")
        # Where the fallback's disk is full, there is room for few leases; each event that is moved makes more.
        limit, self._few = min(limit, self._few), max(self._few // 8, 1)
        received = source.receive(GROUP, limit, lease=_LEASE)
        self._few = min(limit * 4, _MOST)
        self._is_first = False
        if not received:
            return 0, not source.group_state(GROUP).pending
        try:
            self._move(source, received)
        except TopicError:
            self._is_first = True
            source.release(GROUP, received, attempted=False)
            raise
        return len(received), False

    def _move(self, source: Topic, received: Sequence[Received]) -> None:
        messages = [Message(one.id, one.body, one.key) for one in received if one.id not in self._moved]
        written = publish(lambda: self._topics.topic(self._name), messages) if messages else None
        refused = {} if written is None else written.refused
        # Should the ack fail, they are not moved twice.
        self._moved.update(message.id for message in messages if message.id not in refused)
        if refused:
            source.dead_letter_each(GROUP, [GivenUp(one, refused[one.id]) for one in received if one.id in refused])
        source.ack(GROUP, [one for one in received if one.id not in refused])
        self._moved.difference_update(one.id for one in received)
        _forget_acked(source)


def _forget_acked(source: Topic) -> None:
    """Return the room of what was moved back, where the home would keep it."""
    from balog.topics.local import LocalTopic

    if isinstance(source, LocalTopic):
        source.trim(GROUP)
