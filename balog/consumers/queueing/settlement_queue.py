"""The queue between the schedule and the settler: concluded deliveries, which are settled many at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from balog.consumers.ledgers.ledger import LedgerEntry
from balog.consumers.queueing.delivery import MessageDelivery

MAX_BATCHES = 10
"""At most so many times ``batch`` deliveries are settled together."""

MAX_AGE = 1.0
"""Seconds that a concluded delivery waits for its ack at most."""


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
        self,
        lock: threading.Lock,
        batch: int,
        is_urgent: Callable[[], bool],
        is_stopping: Callable[[], bool],
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
        if not delivery.is_concluded:
            delivery.is_concluded = True
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
        entries = []
        for delivery in self._partial:
            if not delivery.is_concluded:  # the entries of a concluded one are recorded with the rest
                entries += delivery.entries
                delivery.entries = []
        self._partial = []
        return concluded, entries
