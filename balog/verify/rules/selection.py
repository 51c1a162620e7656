"""A tap syncs what was selected, in either form, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from balog.verify.catalogs import key_properties_of, replication_key_of
from balog.verify.rules.registration import PRACTICE, SDK_TESTS, SYNC_MODE, Violation, check
from balog.verify.trials import Skip, SyncRun, Trials

__all__ = ["needs_a_start", "require_output"]

_NO_OPTION = re.compile(
    r"(unrecognized|unexpected|unknown) (argument|option|flag)|no such option|not defined: -", re.IGNORECASE
)


def require_output(run: SyncRun) -> SyncRun:
    """Return a run of which something came; skips the rule where nothing did."""
    if not run.output.lines:
        raise Skip(f"{run.name} wrote nothing: {run.outcome}")
    return run


def needs_a_start(trials: Trials) -> None:
    """Skip the rule where the tap fails before it writes anything: that it ends with what is wrong shows nothing."""
    run = trials.sync
    if not run.output.lines and not run.is_whole:
        raise Skip(f"it fails with what is right, too: {run.outcome}")


def _is_unknown_option(run: SyncRun) -> bool:
    return run.result.code != 0 and not run.output.lines and any(map(_NO_OPTION.search, run.output.logs.heard))


def _records_of(run: SyncRun, name: str) -> int:
    stream = run.output.streams.get(name)
    return stream.records + stream.batches if stream is not None else 0


@check(
    "sync-succeeds", "selection", "error", 10, SYNC_MODE,
    "Sync what the catalog selects, and end with exit code 0.",
)  # fmt: skip
def sync_succeeds(trials: Trials) -> Iterator[Violation]:
    """A sync with the catalog that was discovered ends with exit code 0."""
    run = trials.sync
    if run.result.stopped not in ("", "records") or (run.result.code and not run.result.stopped):
        yield Violation(run.outcome)
    if trials.is_older:
        yield Violation(f"by --catalog nothing came, by --properties {run.output.records} records did")


@check(
    "each-stream-gives-records", "selection", "advice", 2, SDK_TESTS,
    "Verify with an account that has data in each stream: the other rules say nothing of an empty one.",
)  # fmt: skip
def each_stream_gives_records(trials: Trials) -> Iterator[Violation]:
    """Each selected stream gives a record."""
    seen = require_output(trials.sync).output.streams
    if trials.sync.result.stopped:
        raise Skip("the run was ended before all streams had their turn")
    for name in trials.entries:
        if name not in seen or not (seen[name].records or seen[name].batches):
            yield Violation("gave none", name)


@check(
    "properties-form-works", "selection", "warning", 2, SYNC_MODE,
    "Take --properties with `selected` inside of the schemas, or refuse it as an unknown option.",
)  # fmt: skip
def properties_form_works(trials: Trials) -> Iterator[Violation]:
    """A sync by ``--properties`` gives the same streams as one by ``--catalog``."""
    run = trials.by_properties
    if _is_unknown_option(run):
        raise Skip("the tap has no --properties")
    yield from _same_streams(trials, run)


@check(
    "both-forms-at-once-work", "selection", "warning", 2, PRACTICE,
    "Let --catalog win when --properties is given too, or refuse both in words.",
)  # fmt: skip
def both_forms_at_once_work(trials: Trials) -> Iterator[Violation]:
    """A sync that is given both a catalog and properties does not break."""
    run = trials.by_both
    if _is_unknown_option(run):
        raise Skip("the tap has no --properties")
    if run.result.code and not run.result.stopped and not run.output.records and not run.output.logs.tracebacks:
        return  # refused in words
    yield from _same_streams(trials, run)


def _same_streams(trials: Trials, run: SyncRun) -> Iterator[Violation]:
    if (run.result.code and not run.result.stopped) or run.result.stopped not in ("", "records"):
        yield Violation(run.outcome)
        return
    if run.result.stopped or trials.sync.result.stopped:
        return
    ones, others = ({n for n, s in each.output.streams.items() if s.records} for each in (trials.sync, run))
    for name in sorted(ones - others):
        yield Violation("gave no records", name)
    for name in sorted(others - ones):
        yield Violation("gave records that it does not give by --catalog", name)


@check(
    "nothing-selected-gives-nothing", "selection", "error", 4, SYNC_MODE,
    "When no stream is selected, end with exit code 0 and without a record, or refuse in words.",
)  # fmt: skip
def nothing_selected_gives_nothing(trials: Trials) -> Iterator[Violation]:
    """A catalog that selects nothing gives no records, and does not break the tap."""
    run = trials.nothing
    for name, stream in run.output.streams.items():
        if stream.records:
            yield Violation(f"{stream.records} records came", name)
    if run.result.stopped not in ("", "records") or (run.result.code and run.output.logs.tracebacks):
        yield Violation(run.outcome)


@check(
    "only-selected-streams-come", "selection", "error", 6, SYNC_MODE,
    "Skip streams whose metadata does not say `selected: true`.",
)  # fmt: skip
def only_selected_streams_come(trials: Trials) -> Iterator[Violation]:
    """When one stream is selected, its records come and no others."""
    name, run = trials.alone
    if run.result.stopped not in ("", "records") or (run.result.code and not run.result.stopped):
        yield Violation(f"it cannot be synced alone: {run.outcome}", name)
    elif _records_of(trials.sync, name) and not _records_of(run, name) and not run.result.stopped:
        yield Violation("it gives records, and none when it is selected alone", name)
    for other, stream in run.output.streams.items():
        if other != name and stream.records:
            yield Violation(f"{stream.records} records came, and {name} alone was selected", other)


@check(
    "only-known-streams-come", "selection", "error", 4, SYNC_MODE,
    "Write messages under the names that the catalog has.",
)  # fmt: skip
def only_known_streams_come(trials: Trials) -> Iterator[Violation]:
    """Records are of streams that the catalog has."""
    if trials.catalog is None:
        raise Skip("there is no catalog")
    for name, stream in require_output(trials.sync).output.streams.items():
        if stream.records and name not in trials.entries:
            yield Violation(f"{stream.records} records came of a stream that was not selected", name)


@check(
    "only-selected-properties-come", "selection", "warning", 4, SYNC_MODE,
    "Leave properties out whose metadata says `selected: false`.",
)  # fmt: skip
def only_selected_properties_come(trials: Trials) -> Iterator[Violation]:
    """A property that is not selected is in no record."""
    left_out, run = trials.fewer
    if run.result.code and not run.result.stopped:
        yield Violation(run.outcome)
    for name, spare in left_out.items():
        stream = run.output.streams.get(name)
        if stream is not None and stream.properties[spare]:
            yield Violation(f"{spare} is in {stream.properties[spare]} of {stream.records} records", name)


@check(
    "automatic-properties-come", "selection", "error", 4, SYNC_MODE,
    "Write key properties and the replication key whatever else is selected.",
)  # fmt: skip
def automatic_properties_come(trials: Trials) -> Iterator[Violation]:
    """Keys come also when other properties are left out."""
    _, run = trials.fewer
    if not run.output.records:
        raise Skip(f"{run.name} gave no records: {run.outcome}")
    for name, stream in run.output.streams.items():
        entry = trials.entries.get(name)
        if entry is None or not stream.records:
            continue
        before = trials.sync.output.streams.get(name)
        for key in dict.fromkeys([*key_properties_of(entry), replication_key_of(entry)]):
            if key and not stream.properties[key] and before is not None and before.properties[key]:
                yield Violation(f"{key} is in no record", name)
