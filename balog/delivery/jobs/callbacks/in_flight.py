"""The messages in flight of a callback: their leases, and the acks, releases and dead letters to send to the topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from balog.topics import GivenUp, Received, Topic

__all__ = ["LEASE", "InFlightMessages"]

LEASE = 30.0
"""Seconds that messages stay with a callback whose process died; leases are extended while it lives."""


class InFlightMessages:
    """Messages of one group of a topic, from receive to settlement. Not thread-safe.

    Methods that call the topic raise ``TopicError``. Messages that could not be settled are settled the next time.

    Args:
        on_dead: called with each dead letter.

    Attributes:
        bytes: the size of the bodies in flight.
    """

    def __init__(self, topic: Topic, group: str, on_dead: Callable[[GivenUp], object]) -> None:
        self._topic = topic
        self._group = group
        self._on_dead = on_dead
        self.bytes = 0
        self._held: dict[str, Received] = {}
        self._extended_at = 0.0
        self._acks: list[Received] = []
        self._releases: list[tuple[Received, float, bool]] = []
        self._given_up: list[GivenUp] = []

    def __len__(self) -> int:
        return len(self._held)

    @property
    def is_due(self) -> bool:
        """Whether messages wait to be settled."""
        return bool(self._acks or self._releases or self._given_up)

    def receive(self, limit: int, wait: float) -> list[Received]:
        """Receive messages; see ``Topic.receive``."""
        if not self._held:
            self._extended_at = time.monotonic()
        received = self._topic.receive(self._group, limit, wait, LEASE)
        self._held.update((one.receipt, one) for one in received)
        self.bytes += sum(len(one.body) for one in received)
        return received

    def ack(self, messages: Sequence[Received]) -> None:
        """Ack messages at the next ``settle``."""
        self._acks += messages

    def release(self, messages: Sequence[Received], delay: float = 0.0, *, attempted: bool) -> None:
        """Release messages at the next ``settle``; they are delivered again after ``delay`` seconds.

        Args:
            attempted: count the delivery as an attempt.
        """
        due = time.monotonic() + delay
        self._releases += [(message, due, attempted) for message in messages]

    def release_all(self) -> None:
        """Release all messages that have no other result yet."""
        decided = {message.receipt for message in self._acks}
        decided |= {message.receipt for message, _, _ in self._releases}
        decided |= {one.received.receipt for one in self._given_up}
        self.release([message for receipt, message in self._held.items() if receipt not in decided], attempted=True)

    def give_up(self, message: Received, reason: str) -> None:
        """Dead-letter a message at the next ``settle``."""
        self._given_up.append(GivenUp(message, reason, (self._group,)))

    def settle(self) -> None:
        """Send acks, dead letters and releases to the topic."""
        if self._acks:
            self._topic.ack(self._group, self._acks)
            self._let_go(self._acks)
            self._acks = []
        while self._given_up:
            given_up, self._given_up = self._given_up[:100], self._given_up[100:]
            try:
                self._topic.dead_letter_each(self._group, given_up)
            except BaseException:
                self._given_up[:0] = given_up
                raise
            self._let_go([one.received for one in given_up])
            for one in given_up:
                self._on_dead(one)
        now = time.monotonic()
        by_kind: dict[tuple[float, bool], list[Received]] = {}
        for message, due, attempted in self._releases:
            by_kind.setdefault((round(max(0.0, due - now), 1), attempted), []).append(message)
        for (delay, attempted), messages in by_kind.items():
            self._topic.release(self._group, messages, delay, attempted=attempted)
            gone = {message.receipt for message in messages}
            self._releases = [one for one in self._releases if one[0].receipt not in gone]
            self._let_go(messages)

    def extend(self) -> None:
        """Extend the leases of all messages in flight if a third of their time is over."""
        now = time.monotonic()
        if self._held and now - self._extended_at > LEASE / 3:
            self._topic.extend(self._group, list(self._held.values()), LEASE)
            self._extended_at = now

    def _let_go(self, messages: Sequence[Received]) -> None:
        for message in messages:
            if self._held.pop(message.receipt, None) is not None:
                self.bytes -= len(message.body)
