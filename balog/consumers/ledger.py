"""The ledger remembers which consumer is through with which event, so that none runs twice for one that succeeded.

Deliveries are at least once: queues hand a message out twice, publishers send one twice, an engine dies between a
handler's return and its ack. An engine asks the ledger before it calls and writes to it, durably, before it acks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

__all__ = ["DEFAULT_WINDOW", "Ledger", "LedgerEntry", "Memory", "memory_of"]

DEFAULT_WINDOW = 4 * 86400.0
"""Seconds that an entry is remembered at least: the longest that SQS keeps a message by default."""


Memory = Literal["none", "process", "lasting"]
"""How long a ledger remembers: not at all, as long as this process lives, or for its window whatever happens."""


class LedgerEntry(NamedTuple):
    """What a consumer did with an event: it succeeded (``gave_up`` is empty), or what ``gave_up`` says.

    An engine writes there what :mod:`balog.consumers.attempts` describes: a success after a replay, calls that failed,
    or the reason of a consumer that gave up. To a ledger it is any text.
    """

    event: str
    consumer: str
    gave_up: str = ""


class Ledger(Protocol):
    """Where entries are kept, by group. Methods may be called from any thread; TopicError when it is out of reach.

    One that forgets its entries at the end of the process says so in an attribute ``memory``, see :func:`memory_of`.
    """

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Give what is known of events: by event id, by consumer, why it gave up or an empty text; no other ids."""

    def record(self, group: str, entries: Sequence[LedgerEntry], *, durable: bool = True) -> None:
        """Write entries, which every process sees once this returns; a later one replaces an earlier of the same pair.

        Args:
            durable: False where the ack that follows is record enough, but for a second copy of the event: a power cut
                may then undo the last entries, a kill may not.
        """

    def close(self) -> None:
        """Give files and connections back; a later use opens them again."""


def memory_of(ledger: Ledger) -> Memory:
    """Return how long a ledger remembers; ``lasting`` unless its attribute ``memory`` says something else."""
    found: Memory = getattr(ledger, "memory", "lasting")
    return found
