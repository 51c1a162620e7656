"""Leases of the messages in flight, extended however long a handler takes or a message waits for its turn."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from balog.common.errors import TopicError
from balog.consumers.queueing.delivery import MessageDelivery
from balog.consumers.queueing.scheduling import Schedule
from balog.consumers.routing import Subscription
from balog.topics.base import uptime

log = logging.getLogger("balog.consumers")


class LeaseKeeper:
    """A thread that extends leases when a third of their time is over, and drops messages that are lost.

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
                    self._keep(subscription)
                except TopicError as error:
                    log.warning("leases could not be extended: %s", error)
                except Exception:
                    log.exception("leases in %s could not be extended", subscription.name)

    def _keep(self, subscription: Subscription) -> None:
        with subscription.lease_lock:
            # A message that arrived a moment ago can wait for the next turn: most of them are handled by then.
            due = self._schedule.leased_until(subscription, uptime() + self._lease * 5 / 6)
            self._schedule.drop(
                [message for message in due if not (message.is_revivable(self._group) or message.is_held(self._group))]
            )
            left = [message for message in due if not message.is_left]
            extend(subscription, self._group, left, self._lease)
            self._schedule.drop([message for message in left if not message.leased_until])


def extend(subscription: Subscription, group: str, deliveries: Sequence[MessageDelivery], lease: float) -> None:
    """Extend leases; those of messages that another process has got end at once.

    Raises:
        TopicError: the topic can't be reached.
    """
    if not deliveries:
        return
    until = uptime() + lease
    extended = subscription.topic.extend(group, [delivery.message for delivery in deliveries], lease)
    if extended == len(deliveries):
        for delivery in deliveries:
            delivery.extend_lease(until)
    elif len(deliveries) > 1:
        middle = len(deliveries) // 2
        extend(subscription, group, deliveries[:middle], lease)
        extend(subscription, group, deliveries[middle:], lease)
    else:
        deliveries[0].extend_lease(0.0)
