"""The messages in flight of an engine: how many there are, and how many more may be received."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from balog.consumers.queueing.delivery import MessageDelivery, Subscription
from balog.topics import Received

MAX_HELD = 10_000
"""Messages in flight at most: waiting for their turn, for others of their key, for a retry, for their ack."""

MAX_HELD_BYTES = 128 * 1024 * 1024
"""Bytes of their bodies; the receive that exceeds the limit is the last."""

Admission = Callable[[int, int], "tuple[int, float]"]
"""Says how many messages may be received now, from the number in flight and the bytes of their bodies.

It returns that number, and the seconds after which to ask again when it is 0. It is called before each receive and must
return at once.
"""


class InFlightMessages:
    """The messages that were received and are not settled yet. The caller holds the schedule's lock.

    Args:
        lock: the schedule's.
        batch: messages to receive at once.
        admission: a further limit.

    Attributes:
        count: messages in flight.
        changed: notified when there may be more room.
        is_held_back: a poller waits for the admission, so messages in flight should be settled soon.
    """

    def __init__(self, lock: threading.Lock, batch: int, admission: Admission | None) -> None:
        self.count = 0
        self.is_held_back = False
        self._bytes = 0
        self._batch = batch
        self._admission = admission
        self.changed = threading.Condition(lock)

    @property
    def is_full(self) -> bool:
        """Whether nothing is received until some messages are settled."""
        return self.is_held_back or self.count >= MAX_HELD or self._bytes >= MAX_HELD_BYTES

    def room(self) -> tuple[int, float | None]:
        """Return how many messages may be received; when it is 0, also the seconds until it may change by itself."""
        self.is_held_back = False
        if self.is_full:
            return 0, None
        most = min(self._batch, MAX_HELD - self.count)
        if self._admission is None:
            return most, None
        room, rest = self._admission(self.count, self._bytes)
        self.is_held_back = room <= 0
        return max(0, min(room, most)), rest

    def add(self, subscription: Subscription, received: Sequence[Received], until: float) -> list[MessageDelivery]:
        """Add messages: from now on their leases are extended."""
        deliveries = [MessageDelivery(subscription, message, until) for message in received]
        for delivery in deliveries:
            subscription.held[delivery.message.receipt] = delivery
            self._bytes += len(delivery.message.body)
        self.count += len(deliveries)
        return deliveries

    def remove(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Remove settled messages."""
        was_full = self.is_full
        for delivery in deliveries:
            if delivery.subscription.held.pop(delivery.message.receipt, None) is delivery:
                self.count -= 1
                self._bytes -= len(delivery.message.body)
        if was_full:
            self.changed.notify_all()
