"""The options of a verification."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct, frozen=True, kw_only=True):
    """Limits and selection of a verification.

    Attributes:
        jobs: maximum number of runs at a time; 0 means one more than there are cores.
        timeout: maximum seconds of one run.
        records: maximum records of one run; the run is ended there.
        states: the number of emitted states to resume from.
        grace: seconds between SIGTERM and SIGKILL.
        rules: ids of the rules to judge; empty means all. Only runs that these rules need are made.
        skip: ids of the rules to skip.
    """

    jobs: int = 0
    timeout: float = 300
    records: int = 100_000
    states: int = 3
    grace: float = 10
    rules: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
