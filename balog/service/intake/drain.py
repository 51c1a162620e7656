"""Moves events from the fallback back to their topic, in order and with the same ids."""

from __future__ import annotations

from collections.abc import Sequence

from balog.common.errors import TopicError
from balog.service.intake.batch import publish
from balog.service.intake.fallback import GROUP, Fallback
from balog.topics import GivenUp, Message, Received, Topic, Topics

_MOST = 10_000
_LEASE = 20.0  # seconds until events in flight, and those behind them, are available again after a kill


class Drain:
    """Moves the events of one topic. Its calls block, and must not overlap.

    A kill at any moment loses nothing: unacknowledged events are received again, and a topic that keeps ids stores them
    once.

    Args:
        moved: ids that are in the topic already; they are only acknowledged.
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

        Events that the topic can never store become dead letters of the fallback.

        Returns:
            The number of events that left the fallback, and whether it is empty.

        Raises:
            TopicError: the topic or the fallback fails; events in flight are released.
        """
        source = self._fallback.topic(self._name)
        if not source.exists():
            return 0, True
        if self._is_first and source.keeps_order and source.group_state(GROUP).in_flight:
            raise TopicError(f"topic {self._name}: another drain, or one that was killed, still has events in flight")
        # If the fallback's disk is full, there is room for few leases; each moved event frees some.
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
        messages = [Message(item.id, item.body, item.key) for item in received if item.id not in self._moved]
        written = publish(lambda: self._topics.topic(self._name), messages) if messages else None
        refused = {} if written is None else written.refused
        # If the ack fails, they are not moved twice.
        self._moved.update(message.id for message in messages if message.id not in refused)
        if refused:
            source.dead_letter_each(GROUP, [GivenUp(item, refused[item.id]) for item in received if item.id in refused])
        source.ack(GROUP, [item for item in received if item.id not in refused])
        self._moved.difference_update(item.id for item in received)
        _forget_acked(source)


def _forget_acked(source: Topic) -> None:
    """Free the space of moved events, if the backend would keep them."""
    from balog.topics.local import LocalTopic

    if isinstance(source, LocalTopic):
        source.trim(GROUP)
