"""Counters of the delivery to one sink."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["SinkStats"]


class SinkStats(Struct, kw_only=True):
    """Counters of one sink since its start.

    ``put + adopted = filtered + delivered + waiting + spooled + dead + dropped``, once no attempt is under way.

    Attributes:
        put: events that arrived.
        adopted: events from the spool of a broker that no longer runs.
        filtered: events that ``where`` excludes, or of which the sink sends nothing.
        delivered: events that the sink took.
        waiting: events in memory.
        spooled: events on disk, in the spool.
        dead: events that the sink refused for good.
        dropped: events for which there was no room, or no time.
        lost: dropped events, and dead ones that are not on disk.
        retries: attempts after the first one, over all batches.
        is_failing: whether the last attempt failed.
        reason: the error of the last failed attempt; "" if none has failed.
        spool: the spool's folder; "" without a spool.
        dead_letters: the folder of the dead letters; "" if none was kept.
    """

    put: int = 0
    adopted: int = 0
    filtered: int = 0
    delivered: int = 0
    waiting: int = 0
    spooled: int = 0
    dead: int = 0
    dropped: int = 0
    lost: int = 0
    retries: int = 0
    is_failing: bool = False
    reason: str = ""
    spool: str = ""
    dead_letters: str = ""

    def add(self, other: SinkStats) -> None:
        """Add the counters of another sink of the same name."""
        for name in _COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.is_failing = self.is_failing or other.is_failing
        self.reason = other.reason or self.reason
        self.spool = other.spool or self.spool
        self.dead_letters = other.dead_letters or self.dead_letters

    def add_successor(self, later: SinkStats) -> None:
        """Add the counters of a later worker for the same sink, which may have adopted events that this one spooled."""
        moved = min(self.spooled, later.adopted)
        self.add(later)
        self.spooled -= moved
        self.adopted -= moved

    def warnings(self) -> list[str]:
        """Return a line for each kind of event that was not delivered; empty if all were."""
        lines = []
        if self.spooled:
            lines.append(f"{self.spooled} events wait in spool {self.spool}; balog replay {self.spool} sends them")
        if kept := self.dead - max(self.lost - self.dropped, 0):
            lines.append(f"{kept} events were refused for good; they lie with the reason in {self.dead_letters}")
        if self.lost:
            lines.append(f"{self.lost} events were not delivered")
        return lines


_COUNTERS = ("put", "adopted", "filtered", "delivered", "waiting", "spooled", "dead", "dropped", "lost", "retries")
