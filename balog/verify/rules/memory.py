"""Memory: a tap streams, it does not collect."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import BEST_PRACTICES, Problem, check
from balog.verify.rules.selection import looked_at
from balog.verify.trials import Skip, Trials

__all__: list[str] = []

_ENOUGH = 16 * 1024 * 1024  # bytes of records below which a tap's own size hides what it keeps
_PART = 0.5  # of the records' bytes; what is kept as Python objects takes several times as much


@check(
    "memory-does-not-grow", "telling", "warning", 4, BEST_PRACTICES,
    "Yield records as they come, page by page; don't collect a stream in a list.",
)  # fmt: skip
def memory_does_not_grow(trials: Trials) -> Iterator[Problem]:
    """Memory does not grow with the records."""
    run = looked_at(trials.sync)
    written = sum(stream.bytes for stream in run.reading.streams.values())
    if written < _ENOUGH:
        raise Skip(f"{written / 1e6:.1f} MB of records are too few to tell; want {_ENOUGH / 1e6:.0f} MB")
    if not run.ending.peak_memory:
        raise Skip("memory can be looked at on Linux alone")
    started = trials.discovery.ending.peak_memory
    if trials.catalog is not None:
        started = max(started, trials.nothing.ending.peak_memory)  # some load what they sync with when they sync
    grown = run.ending.peak_memory - started
    if grown > max(_PART * written, _ENOUGH):
        yield Problem(
            f"it took {grown / 1e6:.0f} MB more than to discover or to sync nothing, "
            f"for {written / 1e6:.0f} MB of records; at most {run.ending.peak_memory / 1e6:.0f} MB"
        )
