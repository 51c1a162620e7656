"""The ledger records which consumer handled which event, so that no handler runs again for an event that succeeded.

Delivery is at least once: a queue delivers a message twice, a publisher sends one twice, an engine dies between a
handler's return and the ack. An engine reads the ledger before it calls a handler, and writes to it before it acks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

DEFAULT_WINDOW = 4 * 86400.0
"""Seconds that an entry is kept at least: SQS's default retention."""


class LedgerEntry(NamedTuple):
    """A consumer's result for an event: it succeeded (``gave_up`` is empty), or ``gave_up`` describes the result.

    The engine writes ``TOPIC/CONSUMER`` as ``consumer``, since an event may be in several topics.
    :mod:`balog.consumers.queueing.attempts` defines the text: a success after a replay, calls that failed, or the
    reason of a consumer that gave up. A ledger stores any text.
    """

    event: str
    consumer: str
    gave_up: str = ""


class Ledger(Protocol):
    """A store of entries by group. Any thread may call its methods.

    Raises:
        TopicError: from every method: the ledger can't be reached.
    """

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the entries of events, by event id and consumer: ``LedgerEntry.gave_up``; no other ids."""

    def record(self, group: str, entries: Sequence[LedgerEntry], *, durable: bool = True) -> None:
        """Write entries, visible to every process when this returns; a later entry replaces an earlier one of its pair.

        Args:
            durable: False where the ack that follows is record enough, except for a second copy of the event: a power
                failure may then undo the last entries, a kill may not.
        """

    def close(self) -> None:
        """Close files and connections; a later call opens them again."""


def remembers(ledger: Ledger) -> bool:
    """Return whether a ledger keeps entries: all do, unless they have an attribute ``remembers`` that is False."""
    return bool(getattr(ledger, "remembers", True))
