"""The ledger remembers which consumer is through with which event, so that none runs twice for one that succeeded.

Deliveries are at least once: queues hand a message out twice, publishers send one twice, an engine dies between a
handler's return and its ack. An engine asks the ledger before it calls and writes to it, durably, before it acks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

__all__ = ["DEFAULT_WINDOW", "Entry", "Ledger"]

DEFAULT_WINDOW = 4 * 86400.0
"""Seconds that an entry is remembered at least: the longest that SQS keeps a message by default."""


class Entry(NamedTuple):
    """A consumer is through with an event: it succeeded (``gave_up`` empty), or gave it up for that reason."""

    event: str
    consumer: str
    gave_up: str = ""


class Ledger(Protocol):
    """Where entries are kept, by group. Methods may be called from any thread; TopicError when it is out of reach."""

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Give what is known of events: by event id, by consumer, why it gave up or an empty text; no other ids."""

    def record(self, group: str, entries: Sequence[Entry], *, durable: bool = True) -> None:
        """Write entries, which every process sees once this returns; a later one replaces an earlier of the same pair.

        Args:
            durable: False where the ack that follows is record enough, but for a second copy of the event: a power cut
                may then undo the last entries, a kill may not.
        """

    def close(self) -> None:
        """Give files and connections back; a later use opens them again."""
