"""Rules of selection: a tap syncs the selected streams and properties, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from balog.tap.verify.catalogs import key_properties_of, replication_key_of
from balog.tap.verify.rules.registration import RuleSource, Violation, check
from balog.tap.verify.rules.subjects import require_end, require_output, require_success, streams
from balog.tap.verify.runs import Skip, SyncRun
from balog.tap.verify.trials import Trials

_NO_OPTION = re.compile(
    r"(unrecognized|unexpected|unknown) (argument|option|flag)|no such option|not defined: -", re.IGNORECASE
)


def _is_unknown_option(run: SyncRun) -> bool:
    return run.result.code != 0 and not run.output.lines and any(map(_NO_OPTION.search, run.output.logs.excerpts))


def _records_of(run: SyncRun, name: str) -> int:
    stream = run.output.streams.get(name)
    return stream.records + stream.batches if stream is not None else 0


@check("selection", "error", 10, RuleSource.SYNC_MODE)
def sync_succeeds(trials: Trials) -> Iterator[Violation]:
    """A sync with the discovered catalog ends with exit code 0.

    Sync the selected streams of the catalog and end with exit code 0.
    """
    run = trials.sync
    if run.has_failed:
        yield Violation(run.outcome, place=run.output.logs.place if run.result.code else "")
    if trials.is_older:
        yield Violation(f"no records with --catalog, {run.output.records} records with --properties")


@check("selection", "advice", 2, RuleSource.SDK_TESTS)
def each_stream_gives_records(trials: Trials) -> Iterator[Violation]:
    """Each selected stream writes at least one record.

    Verify with an account that has data in each stream: empty streams cannot be judged by the other rules.
    """
    seen = require_output(trials.sync).output.streams
    require_end(trials.sync)
    for name in trials.entries:
        if name not in seen or not (seen[name].records or seen[name].batches):
            yield Violation("wrote no record", name)


@check("selection", "warning", 2, RuleSource.SYNC_MODE)
def properties_form_works(trials: Trials) -> Iterator[Violation]:
    """A sync with ``--properties`` writes the same streams as one with ``--catalog``.

    Accept --properties with `selected` inside the schemas, or reject it as an unknown option.
    """
    require_success(trials)
    run = trials.by_properties
    if _is_unknown_option(run):
        raise Skip("the tap has no --properties")
    yield from _same_streams(trials, run)


@check("selection", "warning", 2, RuleSource.PRACTICE)
def both_forms_at_once_work(trials: Trials) -> Iterator[Violation]:
    """A sync with both a catalog and properties does not fail.

    Let --catalog take precedence over --properties, or reject the combination with an error message.
    """
    require_success(trials)
    if _is_unknown_option(trials.by_properties):
        raise Skip("the tap has no --properties")
    run = trials.by_both
    if run.result.code and not run.result.stopped and not run.output.records and not run.output.logs.tracebacks:
        return  # rejected with an error message
    yield from _same_streams(trials, run)


def _same_streams(trials: Trials, run: SyncRun) -> Iterator[Violation]:
    if run.has_failed:
        yield Violation(run.outcome)
        return
    if run.result.stopped or trials.sync.result.stopped:
        return
    ones, others = ({n for n, s in each.output.streams.items() if s.records} for each in (trials.sync, run))
    for name in sorted(ones - others):
        yield Violation("wrote no records", name)
    for name in sorted(others - ones):
        yield Violation("wrote records that it does not write with --catalog", name)


@check("selection", "error", 4, RuleSource.SYNC_MODE)
def nothing_selected_gives_nothing(trials: Trials) -> Iterator[Violation]:
    """With a catalog that selects nothing, the tap writes no records and does not crash.

    When no stream is selected, end with exit code 0 and no records, or with an error message.
    """
    run = trials.nothing
    for name, stream in run.output.streams.items():
        if stream.records:
            yield Violation(f"{stream.records} records came", name)
    if run.result.stopped not in ("", "records") or (run.result.code and run.output.logs.tracebacks):
        require_success(trials)
        yield Violation(run.outcome)


@check("selection", "error", 6, RuleSource.SYNC_MODE)
def only_selected_streams_come(trials: Trials) -> Iterator[Violation]:
    """With one selected stream, the tap writes only its records.

    Skip streams whose metadata does not have `selected: true`.
    """
    name, run = trials.alone
    if run.has_failed and trials.sync.has_failed:
        require_success(trials)
    elif run.has_failed:
        yield Violation(f"it cannot be synced alone: {run.outcome}", name)
    elif _records_of(trials.sync, name) and not _records_of(run, name) and not run.result.stopped:
        yield Violation("it writes records, but none when it is selected alone", name)
    for other, stream in run.output.streams.items():
        if other != name and stream.records:
            yield Violation(f"{stream.records} records, although only {name} was selected", other)


@check("selection", "error", 4, RuleSource.SYNC_MODE)
def only_known_streams_come(trials: Trials) -> Iterator[Violation]:
    """All records belong to streams of the catalog.

    Use the stream names of the catalog in messages.
    """
    if trials.catalog is None:
        raise Skip("there is no catalog")
    for name, stream in streams(trials):
        if stream.records and name not in trials.entries:
            yield Violation(f"{stream.records} records of a stream that was not selected", name)


@check("selection", "warning", 4, RuleSource.SYNC_MODE)
def only_selected_properties_come(trials: Trials) -> Iterator[Violation]:
    """Records do not contain deselected properties.

    Omit properties whose metadata has `selected: false`.
    """
    left_out, run = trials.deselected
    if run.has_failed and not run.output.records:
        require_success(trials)
    if run.result.code and not run.result.stopped and not trials.sync.has_failed:
        yield Violation(run.outcome)
    for name, spare in left_out.items():
        stream = run.output.streams.get(name)
        if stream is not None and stream.properties[spare]:
            yield Violation(f"{spare} is in {stream.properties[spare]} of {stream.records} records", name)


@check("selection", "error", 4, RuleSource.SYNC_MODE)
def automatic_properties_come(trials: Trials) -> Iterator[Violation]:
    """Records contain keys even when other properties are deselected.

    Write key properties and the replication key whatever else is selected.
    """
    _, run = trials.deselected
    if not run.output.records:
        raise Skip(f"{run.name} wrote no records: {run.outcome}")
    for name, stream in run.output.streams.items():
        entry = trials.entries.get(name)
        if entry is None or not stream.records:
            continue
        before = trials.sync.output.streams.get(name)
        for key in dict.fromkeys([*key_properties_of(entry), replication_key_of(entry)]):
            if key and not stream.properties[key] and before is not None and before.properties[key]:
                yield Violation(f"{key} is in no record", name)
