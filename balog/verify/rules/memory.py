"""The rule of memory: a tap streams its records."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.rules.registration import BEST_PRACTICES, Violation, check
from balog.verify.rules.selection import require_output
from balog.verify.trials import Skip, Trials

__all__: list[str] = []

_ENOUGH = 16 * 1024 * 1024  # bytes of records; with fewer, the tap's own size hides growth
_PART = 0.5  # of the records' bytes; records kept as Python objects take several times as much


@check(
    "memory-does-not-grow", "telling", "warning", 4, BEST_PRACTICES,
    "Yield records page by page; do not collect a stream in a list.",
)  # fmt: skip
def memory_does_not_grow(trials: Trials) -> Iterator[Violation]:
    """Memory use does not grow with the number of records."""
    run = require_output(trials.sync)
    written = sum(stream.bytes for stream in run.output.streams.values())
    if written < _ENOUGH:
        raise Skip(f"{written / 1e6:.1f} MB of records are too few to judge; want {_ENOUGH / 1e6:.0f} MB")
    if not run.result.peak_memory:
        raise Skip("memory is measured only on Linux")
    started = trials.discovery.result.peak_memory
    if trials.catalog is not None:
        started = max(
            started, trials.nothing.result.peak_memory
        )  # some taps load their libraries at the start of a sync
    grown = run.result.peak_memory - started
    if grown > max(_PART * written, _ENOUGH):
        yield Violation(
            f"it took {grown / 1e6:.0f} MB more than discovery or a sync of nothing, "
            f"for {written / 1e6:.0f} MB of records; at most {run.result.peak_memory / 1e6:.0f} MB"
        )
