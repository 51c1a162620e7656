"""What is asked of a verification."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Options"]


class Options(Struct, frozen=True, kw_only=True):
    """How far a verification goes.

    Attributes:
        timeout: seconds that one run of the tap may take.
        records: how many records of one run are looked at; the run is ended there.
        states: how many of the states that a run emitted are resumed from.
        grace: seconds that the tap has to end after SIGTERM.
        streams: names of those to look at; all when empty.
        rules: ids of those to judge by; all when empty. Only runs that these need are made.
        skip: ids of those to leave out.
        ordered: by stream the property in whose ascending order its records come.
    """

    timeout: float = 300
    records: int = 100_000
    states: int = 3
    grace: float = 10
    streams: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    ordered: dict[str, str] = {}
