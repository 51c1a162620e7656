"""The messages in flight of an engine: how many more may be received, and which are settled next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from balog.consumers.ledgers.ledger import LedgerEntry
from balog.consumers.queueing.delivery import MessageDelivery
from balog.consumers.routing import Subscription
from balog.topics import Received

MAX_HELD = 10_000
"""Messages in flight at most: waiting for their turn, for others of their key, for a retry, for their ack."""

MAX_HELD_BYTES = 128 * 1024 * 1024
"""Bytes of their bodies; the receive that exceeds the limit is the last."""

HORIZON = 0.5
"""Seconds of calls for which messages are received ahead: a receive takes far less."""

MAX_BATCHES = 10
"""At most so many times ``batch`` deliveries are settled together."""

MAX_AGE = 1.0
"""Seconds that a concluded delivery waits for its ack at most."""

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
        prefetch: messages that wait here for a call to end; None for as many as are called within ``HORIZON``.
        admission: a further limit.

    Attributes:
        count: messages in flight.
        changed: notified when there may be more room.
        is_held_back: a poller waits for the admission, so messages in flight should be settled soon.
        call_seconds: how long a call takes, a moving average; an event that no handler wants takes none.
    """

    def __init__(self, lock: threading.Lock, batch: int, prefetch: int | None, admission: Admission | None) -> None:
        self.count = 0
        self.is_held_back = False
        self.call_seconds: float | None = None
        self.changed = threading.Condition(lock)
        self._bytes = 0
        self._batch = batch
        self._prefetch = prefetch
        self._admission = admission
        self._wake_at = -1
        self._held: dict[Subscription, dict[str, MessageDelivery]] = {}
        self._by_event: dict[Subscription, dict[str, MessageDelivery]] = {}
        """The one delivery of each event whose tasks run; other copies of the event follow it."""
        self._flowing: set[Subscription] = set()

    def __iter__(self) -> Iterator[MessageDelivery]:
        return (delivery for held in self._held.values() for delivery in held.values())

    # -- how many more ------------------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether nothing is received until some messages are settled."""
        return self.is_held_back or self.count >= MAX_HELD or self._bytes >= MAX_HELD_BYTES

    @property
    def is_flowing(self) -> bool:
        """Whether the last receive of a topic returned messages and the next one follows at once."""
        return bool(self._flowing)

    def free_calls(self, capacity: int, pending: int) -> int:
        """Return how many more messages can be called soon; when it is 0, ``wake`` notifies once it changes.

        Args:
            capacity: messages that can be called at once.
            pending: messages that are in calls or ready for one.
        """
        ahead = self._ahead(capacity)
        room = capacity + ahead - pending
        if room > ahead // 2:
            return room
        self._wake_at = max(self._wake_at, capacity + ahead - ahead // 2 - 1)
        return 0

    def _ahead(self, capacity: int) -> int:
        if self._prefetch is not None:
            return self._prefetch
        if self.call_seconds is None:
            return 0
        return min(int(HORIZON * capacity / max(self.call_seconds, 1e-6)), max(2 * self._batch, capacity))

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

    def note_duration(self, seconds: float) -> None:
        """Note how long a call took."""
        before = self.call_seconds
        self.call_seconds = seconds if before is None else before + (seconds - before) / 5

    def wake(self, pending: int) -> None:
        """Notify the pollers if more messages can be called soon."""
        if pending <= self._wake_at:
            self._wake_at = -1
            self.changed.notify_all()

    # -- from receive to settlement -----------------------------------------------------------------------------------

    def add(self, subscription: Subscription, received: Sequence[Received], until: float) -> list[MessageDelivery]:
        """Add messages: from now on their leases are extended."""
        deliveries = [MessageDelivery(subscription, message, until) for message in received]
        held = self._held.setdefault(subscription, {})
        self._by_event.setdefault(subscription, {})
        for delivery in deliveries:
            held[delivery.message.receipt] = delivery
            self._bytes += len(delivery.message.body)
        self.count += len(deliveries)
        # A queue that returns few messages per call should get its acks while the next ones are requested.
        if subscription.topic.keeps_groups:
            self._flowing.add(subscription)
        return deliveries

    def note_empty(self, subscription: Subscription) -> None:
        """Note that the last receive of a topic returned nothing."""
        self._flowing.discard(subscription)

    def is_first_copy(self, delivery: MessageDelivery) -> bool:
        """Return whether a delivery is handled now; otherwise it follows another delivery of its event."""
        if delivery.event is None:
            return True
        first = self._by_event[delivery.subscription].setdefault(delivery.id, delivery)
        if first is delivery:
            return True
        first.followers.append(delivery)
        return False

    def holds(self, delivery: MessageDelivery) -> bool:
        """Return whether a delivery is not settled yet."""
        return delivery.message.receipt in self._held[delivery.subscription]

    def leased_until(self, subscription: Subscription, moment: float) -> list[MessageDelivery]:
        """Return a topic's messages whose leases end before a moment, in seconds of ``uptime``."""
        return [delivery for delivery in self._held.get(subscription, {}).values() if delivery.leased_until < moment]

    def remove(self, deliveries: Sequence[MessageDelivery]) -> list[MessageDelivery]:
        """Remove settled messages; return the next copies of their events."""
        was_full, heirs = self.is_full, []
        for delivery in deliveries:
            subscription = delivery.subscription
            if self._held[subscription].pop(delivery.message.receipt, None) is delivery:
                self.count -= 1
                self._bytes -= len(delivery.message.body)
            heir = delivery.settle()
            if self._by_event[subscription].get(delivery.id) is delivery:
                del self._by_event[subscription][delivery.id]
                if heir is not None:
                    heirs.append(heir)
        if was_full:
            self.changed.notify_all()
        return heirs


class SettlementQueue:
    """Deliveries to settle, and ledger entries of deliveries that are still in flight.

    The methods that add need the lock held; ``wait``, ``put_back`` and ``close`` acquire it.

    Args:
        lock: the schedule's.
        batch: deliveries that are settled without waiting for more.
        is_urgent: whether waiting for more deliveries is useless now.
        is_stopping: whether the run stops.

    Attributes:
        changed: notified when a settler thread may go on.
    """

    def __init__(
        self, lock: threading.Lock, batch: int, is_urgent: Callable[[], bool], is_stopping: Callable[[], bool]
    ) -> None:
        self._lock = lock
        self.changed = threading.Condition(lock)
        self._batch = batch
        self._is_urgent = is_urgent
        self._is_stopping = is_stopping
        self._concluded: list[MessageDelivery] = []
        self._partial: list[MessageDelivery] = []
        self._oldest = 0.0
        self._is_closed = False

    # -- with the lock held -------------------------------------------------------------------------------------------

    def add(self, delivery: MessageDelivery) -> None:
        """Add a delivery to settle; adding it again does nothing."""
        if delivery.conclude():
            self._concluded.append(delivery)
            if len(self._concluded) == 1:
                self._start_clock(not self._partial)
            elif len(self._concluded) % self._batch == 0:
                self.changed.notify()

    def add_partial(self, delivery: MessageDelivery) -> None:
        """Have the ledger record a delivery's progress soon, because its message may stay in flight for long."""
        self._partial.append(delivery)
        if len(self._partial) == 1:
            self._start_clock(not self._concluded)

    def flush_now(self) -> None:
        """Settle now if waiting for more deliveries is useless."""
        if self._concluded and self._is_urgent():
            self.changed.notify()

    # -- for the settler ----------------------------------------------------------------------------------------------

    def wait(self) -> tuple[list[MessageDelivery], list[LedgerEntry]] | None:
        """Wait for deliveries to settle.

        Returns:
            Concluded deliveries, and the entries of others that the ledger should hold by now; None after ``close``.
        """
        with self._lock:
            while True:
                if self._concluded or self._partial:
                    rest = self._oldest + MAX_AGE - time.monotonic()
                    is_batch = len(self._concluded) >= self._batch or (self._concluded and self._is_urgent())
                    if rest <= 0 or self._is_stopping() or is_batch:
                        return self._take()
                    self.changed.wait(rest)
                elif self._is_closed:
                    return None
                else:
                    self.changed.wait()

    def put_back(self, concluded: Sequence[MessageDelivery]) -> None:
        """Put deliveries back that could not be settled."""
        with self._lock:
            if not (self._concluded or self._partial):
                self._oldest = time.monotonic()
            self._concluded[:0] = concluded

    def close(self) -> None:
        """Make ``wait`` return None once nothing is left to settle."""
        with self._lock:
            self._is_closed = True
            self.changed.notify_all()

    def _start_clock(self, is_first: bool) -> None:
        if is_first:
            self._oldest = time.monotonic()
            self.changed.notify()

    def _take(self) -> tuple[list[MessageDelivery], list[LedgerEntry]]:
        limit = self._batch * MAX_BATCHES
        concluded, self._concluded = self._concluded[:limit], self._concluded[limit:]
        if self._concluded:
            self.changed.notify()
        partial, self._partial = self._partial, []
        # The entries of a concluded one are recorded with the rest.
        entries = [entry for each in partial if not each.is_concluded for entry in each.take_entries()]
        return concluded, entries
