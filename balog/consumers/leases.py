"""Leases of the messages in flight, extended however long a handler takes or a message waits for its turn."""

from __future__ import annotations

import logging
import threading
import time

from balog.consumers.delivery import Subscription
from balog.consumers.scheduling import Schedule
from balog.errors import TopicError

__all__ = ["LeaseKeeper"]

log = logging.getLogger("balog.consumers")


class LeaseKeeper:
    """A thread that extends leases when a third of their time is over.

    Args:
        lease: seconds that each extension lasts.
    """

    def __init__(self, schedule: Schedule, group: str, lease: float) -> None:
        self._schedule = schedule
        self._group = group
        self._lease = lease
        self._end = threading.Event()
        self.thread = threading.Thread(target=self._run, name="balog-leases", daemon=True)

    def end(self) -> None:
        """Stop extending leases."""
        self._end.set()

    def _run(self) -> None:
        while not self._end.wait(self._lease / 3):
            for subscription in self._schedule.subscriptions:
                try:
                    self._extend(subscription)
                except TopicError as error:
                    log.warning("leases could not be extended: %s", error)
                except Exception:
                    log.exception("leases in %s could not be extended", subscription.name)

    def _extend(self, subscription: Subscription) -> None:
        with subscription.lease_lock:
            # A message that arrived a moment ago can wait for the next turn: most of them are handled by then.
            held = self._schedule.leased_before(subscription, time.monotonic() - self._lease / 6)
            if held:
                extended_at = time.monotonic()
                subscription.topic.extend(self._group, [delivery.message for delivery in held], self._lease)
                for delivery in held:
                    delivery.leased_at = extended_at
