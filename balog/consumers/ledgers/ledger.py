"""The ledger records which consumer handled which event, so that no handler runs again for an event that succeeded.

Delivery is at least once: a queue delivers a message twice, a publisher sends one twice, an engine dies between a
handler's return and the ack. An engine reads the ledger before it calls a handler, and writes to it before it acks.

The entries count the calls of a consumer at an event, too. A failed call is an attempt; a delivery is not. A failure is
recorded before its message is released, so that the next delivery knows it in whichever process that happens.

A handler that ends its process leaves no failure behind. Its event comes again with deliveries that no recorded call
explains, and so do the events that were only prefetched. The engine records each call of such an event before the call
begins, and corrects the entry when the call ends. An entry that was not corrected stands for a call that never ended,
and counts as an attempt. A consumer that has such an entry for an event is called for it while no other one like it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from balog.topics.base import Generation

DEFAULT_WINDOW = 4 * 86400.0
"""Seconds that an entry is kept at least: SQS's default retention."""


class LedgerEntry(NamedTuple):
    """A consumer's result for an event: it succeeded (``gave_up`` is empty), or ``gave_up`` describes the result.

    The engine writes ``TOPIC/CONSUMER`` as ``consumer``, since an event may be in several topics.
    :class:`Known` defines the text: a success after a replay, calls that failed, or the reason of a consumer that gave
    up. A ledger stores any text.
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


_NUMBER = r"(\d{1,18})"
_SUCCESS = re.compile(rf"done in {_NUMBER}")
_CALLS = re.compile(rf"called, {_NUMBER} failed, {_NUMBER} unended, delivery {_NUMBER}, in {_NUMBER}\.{_NUMBER}")
_GAVE_UP = re.compile(rf"gave up in {_NUMBER}\.{_NUMBER}: (.*)", re.DOTALL)


class Calls(NamedTuple):
    """Calls of a consumer at an event that did not succeed.

    Attributes:
        failed: calls that raised an error or took too long.
        unended: calls during which the process ended.
        explained: the number of the last delivery whose end these calls explain; 0 for none.
    """

    failed: int = 0
    unended: int = 0
    explained: int = 0

    @property
    def spent(self) -> int:
        """Attempts that are used up."""
        return self.failed + self.unended


class Known(NamedTuple):
    """An entry of the ledger: a success, calls without one, or the reason of a consumer that gave up."""

    generation: Generation
    calls: Calls | None = None
    gave_up: str | None = None

    @property
    def is_success(self) -> bool:
        """Whether the consumer succeeded."""
        return self.calls is None and self.gave_up is None

    def holds_for(self, generation: Generation) -> bool:
        """Return whether the entry says something of a message of this generation.

        A replay begins anew for all consumers, a redrive only for those that have not succeeded.
        """
        if self.is_success:
            return self.generation.replay >= generation.replay
        return self.generation >= generation

    @property
    def text(self) -> str:
        """The text of the entry, which ``read`` reads."""
        replay, redrive = self.generation
        if self.calls is not None:
            failed, unended, explained = self.calls
            return f"called, {failed} failed, {unended} unended, delivery {explained}, in {replay}.{redrive}"
        if self.gave_up is not None:
            return f"gave up in {replay}.{redrive}: {self.gave_up}"
        return f"done in {replay}" if replay else ""


def read(text: str) -> Known:
    """Return what an entry's text says. A text of another form is the reason of a consumer that gave up."""
    if not text:
        return Known(Generation())
    if match := _SUCCESS.fullmatch(text):
        return Known(Generation(int(match[1])))
    if match := _CALLS.fullmatch(text):
        failed, unended, explained, replay, redrive = map(int, match.groups())
        return Known(Generation(replay, redrive), Calls(failed, unended, explained))
    if match := _GAVE_UP.fullmatch(text):
        return Known(Generation(int(match[1]), int(match[2])), gave_up=match[3])
    return Known(Generation(), gave_up=text)
