"""What rules judge: entries of the catalog, and streams of the first sync. Without them, a rule is skipped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from balog.tap.verify.catalogs import Document, entries, name_of
from balog.tap.verify.output_reader import OutputReader
from balog.tap.verify.rules.registration import Violation
from balog.tap.verify.runs import Skip, SyncRun
from balog.tap.verify.synced_stream import RecordTally, SyncedStream
from balog.tap.verify.trials import Trials

Streams = Callable[[Trials], Collection[tuple[str, SyncedStream]]]
"""Returns streams of the first sync by name."""


def catalog_of(trials: Trials) -> Document:
    """Return the discovered catalog, or skip the rule without one."""
    document = trials.discovered.document
    if document is None:
        raise Skip("no catalog was discovered")
    return document


def catalog_entries(trials: Trials) -> list[tuple[str, Document]]:
    """Return the discovered entries by stream name, or skip the rule without a catalog."""
    return [(name_of(entry), entry) for entry in entries(catalog_of(trials))]


def require_output(run: SyncRun) -> SyncRun:
    """Return a run with output, or skip the rule."""
    if not run.output.lines:
        raise Skip(f"{run.name} wrote nothing: {run.outcome}")
    return run


def require_start(trials: Trials) -> None:
    """Skip the rule if the tap fails with valid input, too."""
    run = trials.sync
    if not run.output.lines and not run.is_whole:
        raise Skip(f"it also fails with valid input: {run.outcome}")


def require_end(run: SyncRun) -> SyncRun:
    """Return a run that neither the verification ended nor an error, or skip the rule."""
    if run.result.stopped:
        raise Skip("the run was cut short")
    if run.result.code:
        raise Skip(f"{run.name} failed")
    return run


def require_success(trials: Trials) -> None:
    """Skip the rule if the first sync failed: then other runs fail for the same reason, which is reported once."""
    if trials.sync.has_failed:
        raise Skip(f"{trials.sync.name} failed")


def require_whole(run: SyncRun) -> SyncRun:
    """Return a complete and successful run, or skip the rule."""
    if not run.is_whole:
        raise Skip("no sync was complete")
    return run


def first_output(trials: Trials) -> list[tuple[str, OutputReader]]:
    """Return the output of the first sync, with "" for the name of a stream."""
    return [("", require_output(trials.sync).output)]


def streams(trials: Trials) -> Collection[tuple[str, SyncedStream]]:
    """Return the streams of the first sync by name."""
    return require_output(trials.sync).output.streams.items()


def streams_with(has: Callable[[SyncedStream], object], otherwise: str, among: Streams = streams) -> Streams:
    """Return a function that returns the streams with a property, or skips the rule without any.

    Args:
        has: returns whether a stream has the property.
        otherwise: the reason to skip the rule.
        among: returns the streams to choose from.
    """

    def chosen(trials: Trials) -> list[tuple[str, SyncedStream]]:
        named_streams = [(name, stream) for name, stream in among(trials) if has(stream)]
        if not named_streams:
            raise Skip(otherwise)
        return named_streams

    return chosen


def share(stream: SyncedStream, tally: RecordTally, before: str = "", after: str = "") -> Iterator[Violation]:
    """Yield a violation if some records of a stream were counted: their number, between the texts before and after."""
    if tally.count:
        text = f"{before}{tally.count} of {stream.records} records{after}, the first in line {tally.line}"
        yield Violation(text, records=tally.count, of=stream.records)


def first_of(texts: list[str], most: int = 5, separator: str = ", ") -> str:
    """Return the first texts on one line, with … at its end if there are more."""
    return separator.join(texts[:most] + ["…"] * (len(texts) > most))


incremental = streams_with(
    lambda stream: stream.replication_key and stream.records, "no incremental stream wrote records"
)
