"""The batch in flight from a worker to its sink."""

from __future__ import annotations

from typing import NamedTuple

from balog.errors import EventError
from balog.event import decode
from balog.outbound.attempt import AttemptOutcome
from balog.outbound.dead_letters import SinkDeadLetter
from balog.outbound.event_queue import Entry
from balog.outbound.segment import Segment
from balog.sinks.base import Delivery


class SpoolRange(NamedTuple):
    """The place of a batch on disk: the next ``events`` events of a segment, up to the offset ``end``."""

    segment: Segment
    end: int
    events: int


class InFlightBatch:
    """The events that a worker is delivering.

    Attributes:
        entries: the events that the sink has neither taken nor refused for good.
        bytes: the batch's share of the queue's memory; 0 if it came from disk.
        on_disk: its place on disk; None while it is only in memory.
    """

    def __init__(self, entries: list[Entry], size: int = 0, on_disk: SpoolRange | None = None) -> None:
        self.entries = entries
        self.bytes = size
        self.on_disk = on_disk


def decode_entries(entries: list[Entry]) -> tuple[list[Delivery], dict[int, str]]:
    """Decode a batch.

    Returns:
        The events, and for entries that are not events the reason by index.
    """
    batch, undecodable = [], {}
    for index, (_, body) in enumerate(entries):
        try:
            batch.append(Delivery(decode(body), body))
        except EventError as error:
            undecodable[index] = f"no event: {error}"
    return batch, undecodable


def with_undecodable(outcome: AttemptOutcome, count: int, undecodable: dict[int, str]) -> AttemptOutcome:
    """Return the outcome for a whole batch of ``count`` entries, of which only the decodable ones were tried."""
    tried = [index for index in range(count) if index not in undecodable]
    dead = {tried[index]: reason for index, reason in outcome.dead.items()} | undecodable
    return outcome._replace(dead=dead, left=[tried[index] for index in outcome.left])


def dead_letters(sink: str, batch: InFlightBatch, outcome: AttemptOutcome) -> list[SinkDeadLetter]:
    """Return the dead letters for the events that the sink refused for good."""
    found = []
    for index, reason in sorted(outcome.dead.items()):
        body = batch.entries[index][1]
        found.append(SinkDeadLetter.new(sink, reason, body, _is_event(body)))
    return found


def _is_event(body: bytes) -> bool:
    try:
        decode(body)
    except EventError:
        return False
    return True
