"""One of several watchers leads: wait to become the leader, and notice when another one takes over."""

from __future__ import annotations

import select
from collections.abc import Callable

from balog.common.backoff import Backoff, BackoffSequence
from balog.common.errors import TopicError
from balog.common.signals import StepThread, StopSignals
from balog.watch.state.redis import RedisWatchStore


def wait_to_lead(lease: RedisWatchStore, say: Callable[[str], None]) -> bool:
    """Wait until this instance leads. Return False if SIGTERM or SIGINT came first.

    Args:
        say: called with one line for the operator.

    Raises:
        TopicError: the server refuses this instance for good.
    """
    delays = BackoffSequence(Backoff(1.0, lease.lease))
    said = ""
    with StopSignals() as signals:
        while not signals.came():
            wait, line = lease.lease / 3, "another instance leads; this one waits to take over"
            try:
                if lease.claim():
                    say("this instance leads")
                    return True
                delays.reset()
            except TopicError as error:
                if not error.retryable:
                    raise
                wait, line = delays.next(), str(error)
            if line != said:
                said = line
                say(line)
            select.select([signals.wake], (), (), wait)
    return False


class LeaseRenewal(StepThread):
    """Renews a lease when a third of its time is over. Use it as a context around the leader's work.

    Args:
        lease: held by this instance.
        say: called with one line for the operator when the lease's server is out of reach.

    Attributes:
        is_lost: whether another instance leads.
        on_lost: called when that is noticed.
    """

    def __init__(self, lease: RedisWatchStore, say: Callable[[str], None]) -> None:
        super().__init__("balog watch lease", say, lease.lease / 3)
        self.is_lost = False
        self.on_lost: Callable[[], object] = lambda: None
        self._lease = lease

    def step(self) -> None:
        """Renew the lease."""
        if not self.is_lost and not self._lease.renew():
            self.is_lost = True
            self.on_lost()
