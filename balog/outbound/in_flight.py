"""A batch under way from a lane to its sink."""

from __future__ import annotations

import time
from typing import NamedTuple

from balog.errors import EventError
from balog.event import decode
from balog.outbound.attempt import Outcome
from balog.outbound.dead_letters import DeadLetter
from balog.outbound.segment import Segment
from balog.sinks.base import Delivery

__all__ = ["Entry", "Hand", "Mark", "dead_letters", "read", "with_unreadable"]

Entry = tuple[int, bytes]
"""An event's number, 0 when it comes from disk, and its bytes."""


class Mark(NamedTuple):
    """Where a hand lies on disk: a segment's next events, so many, which end at ``end``."""

    segment: Segment
    end: int
    events: int


class Hand:
    """A batch under way.

    Attributes:
        entries: what the sink has not taken of it, nor refused for good.
        bytes: its share of the memory's bound; 0 when it came from disk.
        mark: where it lies on disk, if it does.
        since: when the try began that is under way, by the monotonic clock.
    """

    def __init__(self, entries: list[Entry], size: int = 0, mark: Mark | None = None) -> None:
        self.entries = entries
        self.bytes = size
        self.mark = mark
        self.since = time.monotonic()


def read(entries: list[Entry]) -> tuple[list[Delivery], dict[int, str]]:
    """Decode a batch; what can't be decoded is told by its index, with the reason."""
    batch, unreadable = [], {}
    for index, (_, body) in enumerate(entries):
        try:
            batch.append(Delivery(decode(body), body))
        except EventError as error:
            unreadable[index] = f"no event: {error}"
    return batch, unreadable


def with_unreadable(outcome: Outcome, count: int, unreadable: dict[int, str]) -> Outcome:
    """Give an outcome for a whole batch, of which some were no events and so not tried."""
    tried = [index for index in range(count) if index not in unreadable]
    dead = {tried[index]: reason for index, reason in outcome.dead.items()} | unreadable
    return outcome._replace(dead=dead, left=[tried[index] for index in outcome.left])


def dead_letters(sink: str, hand: Hand, outcome: Outcome) -> list[DeadLetter]:
    """Make the letters of what an attempt showed to be refused for good."""
    letters = []
    for index, reason in sorted(outcome.dead.items()):
        body = hand.entries[index][1]
        letters.append(DeadLetter.new(sink, reason, body, _is_event(body)))
    return letters


def _is_event(body: bytes) -> bool:
    try:
        decode(body)
    except EventError:
        return False
    return True
