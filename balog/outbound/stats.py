"""How the delivery to a sink stands, in numbers and in lines for people."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Figures"]


class Figures(Struct, kw_only=True):
    """Numbers of one sink since its start.

    ``put + adopted = filtered + delivered + waiting + spooled + dead + dropped``, once nothing is on its way.

    Attributes:
        put: events that came.
        adopted: events that came from the spool of a broker that is gone.
        filtered: events that ``where`` left out, or that the sink sends nothing of.
        delivered: events that the sink took.
        waiting: events in memory.
        spooled: events on disk, in the spool.
        dead: events that the sink refused for good.
        dropped: events that there was no room for, or no time.
        lost: dropped events, and dead ones that are not on disk.
        retries: times that a batch was tried again.
        is_failing: whether the last try failed.
        reason: why the last one failed that did; empty when none has.
        spool: the spool's folder, if there is one.
        dead_letters: the folder of the dead letters that were kept, if any were.
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

    def add(self, other: Figures) -> None:
        """Add those of another sink of the same name."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.is_failing = self.is_failing or other.is_failing
        self.reason = other.reason or self.reason
        self.spool = other.spool or self.spool
        self.dead_letters = other.dead_letters or self.dead_letters

    def go_on(self, later: Figures) -> None:
        """Add those of a sink that came after this one, and adopted what this one had left in the spool."""
        moved = min(self.spooled, later.adopted)
        self.add(later)
        self.spooled -= moved
        self.adopted -= moved

    def troubles(self) -> list[str]:
        """Say what did not arrive, each in a line; nothing when everything did."""
        lines = []
        if self.spooled:
            lines.append(f"{self.spooled} events wait in spool {self.spool}; balog replay {self.spool} sends them")
        if kept := self.dead - max(self.lost - self.dropped, 0):
            lines.append(f"{kept} events were refused for good; they lie with the reason in {self.dead_letters}")
        if self.lost:
            lines.append(f"{self.lost} events were not delivered")
        return lines


_COUNTS = ("put", "adopted", "filtered", "delivered", "waiting", "spooled", "dead", "dropped", "lost", "retries")
