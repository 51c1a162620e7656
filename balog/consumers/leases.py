"""Leases of all that is in hand are extended, however long a handler takes or a message waits for its turn."""

from __future__ import annotations

import logging
import threading
import time

from balog.consumers.delivery import Lane
from balog.consumers.scheduling import Schedule
from balog.errors import TopicError

__all__ = ["LeaseKeeper"]

log = logging.getLogger("balog.consumers")


class LeaseKeeper:
    """A thread that extends leases when a third of them is over.

    Args:
        lease: seconds from each extension.
    """

    def __init__(self, schedule: Schedule, group: str, lease: float) -> None:
        self._schedule = schedule
        self._group = group
        self._lease = lease
        self._end = threading.Event()
        self.thread = threading.Thread(target=self._run, name="balog-leases", daemon=True)

    def end(self) -> None:
        """Let leases run out."""
        self._end.set()

    def _run(self) -> None:
        while not self._end.wait(self._lease / 3):
            for lane in self._schedule.lanes:
                try:
                    self._extend(lane)
                except TopicError as error:
                    log.warning("leases could not be extended: %s", error)
                except Exception:
                    log.exception("leases in %s could not be extended", lane.name)

    def _extend(self, lane: Lane) -> None:
        with lane.io:
            # What came a moment ago can wait for the next time: most of it will be handled by then.
            held = self._schedule.in_hand(lane, older_than=time.monotonic() - self._lease / 6)
            if held:
                extended_at = time.monotonic()
                lane.topic.extend(self._group, [delivery.message for delivery in held], self._lease)
                for delivery in held:
                    delivery.leased_at = extended_at
