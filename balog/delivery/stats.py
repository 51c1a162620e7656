"""Counters of the delivery to one sink."""

from __future__ import annotations

from typing import Annotated, ClassVar

from balog.common.stats import Stats, counter, gauge
from balog.common.text import counted


class SinkStats(Stats, kw_only=True):
    """Counters of one sink since its start.

    ``put + adopted = filtered + delivered + waiting + spooled + dead + dropped``, once no attempt is under way.

    Attributes:
        reason: the error of the last failed attempt; "" if none has failed.
        spool: the spool's folder; "" without a spool.
        dead_letters: the folder of the dead letters; "" if none was kept.
    """

    component: ClassVar[str] = "sink"
    put: Annotated[int, counter("Events that arrived.")] = 0
    adopted: Annotated[int, counter("Events from the spool of a process that no longer runs.")] = 0
    filtered: Annotated[int, counter("Events that where excludes, or of which the sink sends nothing.")] = 0
    delivered: Annotated[int, counter("Events that the sink accepted.")] = 0
    waiting: Annotated[int, gauge("Events in memory.")] = 0
    spooled: Annotated[int, gauge("Events on disk, in the spool.")] = 0
    dead: Annotated[int, counter("Events that the sink refused for good.")] = 0
    dropped: Annotated[int, counter("Events for which there was no room, or no time.")] = 0
    lost: Annotated[int, counter("Dropped events, and refused ones that are not on disk.")] = 0
    retries: Annotated[int, counter("Attempts after the first one, over all batches.")] = 0
    is_failing: Annotated[bool, gauge("Whether the last attempt failed.")] = False
    reason: str = ""
    spool: str = ""
    dead_letters: str = ""

    def add(self, other: SinkStats) -> None:
        """Add the counters of another sink of the same name."""
        super().add(other)
        self.reason = other.reason or self.reason
        self.spool = other.spool or self.spool
        self.dead_letters = other.dead_letters or self.dead_letters

    def warnings(self, *, are_kept: bool = False) -> list[str]:
        """Return a line for each kind of event that was not delivered; empty if all were.

        Args:
            are_kept: whether the owner of events that were lost here has them, and sends them at its next start.
        """
        lines = []
        if self.spooled:
            waiting = counted(self.spooled, "event", "wait")
            lines.append(f"{waiting} in spool {self.spool}; balog replay {self.spool} sends them")
        if kept := self.dead - max(self.lost - self.dropped, 0):
            lines.append(f"{counted(kept, 'event', 'were')} refused for good, with the reason in {self.dead_letters}")
        if are_kept:
            if self.dropped:
                lines.append(f"{counted(self.dropped, 'event', 'are')} not delivered yet; the next start sends them")
            if refused := self.lost - self.dropped:
                lines.append(f"{counted(refused, 'event', 'were')} refused for good, and not sent again")
        elif self.lost:
            lines.append(f"{counted(self.lost, 'event', 'were')} not delivered")
        return lines
