"""Memory: a tap streams, it does not collect."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import BEST_PRACTICES, Violation, check
from balog.verify.rules.selection import require_output
from balog.verify.trials import Skip, Trials

__all__: list[str] = []

_ENOUGH = 16 * 1024 * 1024  # bytes of records below which a tap's own size hides what it keeps
_PART = 0.5  # of the records' bytes; what is kept as Python objects takes several times as much


@check(
    "memory-does-not-grow", "telling", "warning", 4, BEST_PRACTICES,
    "Yield records as they come, page by page; don't collect a stream in a list.",
)  # fmt: skip
def memory_does_not_grow(trials: Trials) -> Iterator[Violation]:
    """Memory does not grow with the records."""
    run = require_output(trials.sync)
    written = sum(stream.bytes for stream in run.output.streams.values())
    if written < _ENOUGH:
        raise Skip(f"{written / 1e6:.1f} MB of records are too few to tell; want {_ENOUGH / 1e6:.0f} MB")
    if not run.result.peak_memory:
        raise Skip("memory can be looked at on Linux alone")
    started = trials.discovery.result.peak_memory
    if trials.catalog is not None:
        started = max(started, trials.nothing.result.peak_memory)  # some load what they sync with when they sync
    grown = run.result.peak_memory - started
    if grown > max(_PART * written, _ENOUGH):
        yield Violation(
            f"it took {grown / 1e6:.0f} MB more than to discover or to sync nothing, "
            f"for {written / 1e6:.0f} MB of records; at most {run.result.peak_memory / 1e6:.0f} MB"
        )
