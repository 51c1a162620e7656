"""How a run hears that it is to end: between two records by a number, inside of a source's code by an exception."""

from __future__ import annotations

__all__ = ["Interrupted", "Stop"]


class Interrupted(BaseException):
    """The run was asked to end; no ``except Exception`` of a source may hold it up.

    Args:
        number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stop:
    """Whether the run is to end.

    Attributes:
        number: the signal that came; None as long as none did. The loop looks after each record.
        in_source: the source's own code is running, which may be interrupted by an exception: no record is in hand.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.in_source = False
