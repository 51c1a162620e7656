"""Rules of resuming: a run from an emitted state writes the remaining records, and few others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from balog.verify.catalogs import id_of, replication_key_of
from balog.verify.output_reader import StateLine
from balog.verify.rules.registration import CONFIG_AND_STATE, SYNC_MODE, Violation, check
from balog.verify.rules.selection import needs_a_start
from balog.verify.synced_stream import SyncedStream
from balog.verify.trials import Skip, SyncRun, Trials
from balog.verify.values import bookmark_of, is_after

__all__ = ["Gap", "describe_gap", "gaps"]


class Gap(NamedTuple):
    """Records of a stream that are neither before a state nor in the run from it.

    Attributes:
        missing: number of missing records.
        of: number of records of the first sync.
        new: number of keys of the resumed run that the first sync did not have: the source changes.
    """

    stream: str
    missing: int
    of: int
    new: int


def gaps(trials: Trials, first: SyncRun, state: StateLine | None, second: SyncRun) -> list[Gap]:
    """Return the records that a target loses if it reads ``first`` until ``state``, and then all of ``second``.

    The reference is the first sync. Records are compared by key, or by content without keys. In a stream with a
    replication key, a record before the state does not replace a later one of its key.
    """
    found = []
    for name, whole in trials.sync.output.streams.items():
        if not whole.records or name not in trials.entries:
            continue
        until = state.records.get(name, 0) if state is not None else 0
        taken, rest = first.output.streams.get(name), second.output.streams.get(name)
        came = set(rest.keys) if rest is not None else set()
        before = set(taken.keys[:until]) if taken is not None else set()
        if first is trials.sync and whole.replication_key:
            missing = {key for key in whole.keys[until:] if key not in came}
        else:
            missing = {key for key in whole.keys if key not in came and key not in before}
        if missing:
            found.append(Gap(name, len(missing), whole.records, len(came.difference(whole.keys))))
    return found


@check(
    "resumes-without-a-gap", "state", "error", 10, CONFIG_AND_STATE,
    "Write a STATE only after all records that it covers. Query the source from the bookmark on, inclusively.",
)  # fmt: skip
def resumes_without_a_gap(trials: Trials) -> Iterator[Violation]:
    """A run from any emitted STATE writes all records that were not yet written."""
    judged = 0
    for state, run in trials.resumed:
        where = f"from the STATE in line {state.line}"
        if run.result.stopped not in ("", "records") or (run.result.code and not run.result.stopped):
            yield Violation(f"{where}: {run.outcome}")
            continue
        found = gaps(trials, trials.sync, state, run)
        if found and run.result.stopped:
            continue  # the missing records may follow later
        judged += 1
        for gap in found:
            yield Violation(f"{where}: {describe_gap(gap)}", gap.stream)
    if not judged:
        raise Skip("the runs were cut short: use a larger --records")


def describe_gap(gap: Gap) -> str:
    """Describe the missing records, as a clause."""
    changes = f"; {gap.new} others came, so the source may have changed" if gap.new else ""
    return f"{gap.missing} of {gap.of} records came neither before it nor after{changes}"


@check(
    "resumes-with-little", "state", "warning", 4, SYNC_MODE,
    "Query the source for records since `state`, not for all.",
)  # fmt: skip
def resumes_with_little(trials: Trials) -> Iterator[Violation]:
    """A run from the last STATE writes less than the whole incremental stream."""
    _, run = trials.resumed[-1]
    if trials.sync.result.stopped or run.result.stopped or run.result.code:
        raise Skip("a run was not complete")
    judged = 0
    for name, stream in trials.sync.output.streams.items():
        if not stream.replication_key or stream.lowest == stream.highest:
            continue
        judged += 1
        again = run.output.streams.get(name)
        if again is not None and _came_again(stream, again):
            yield Violation(f"all {stream.records} records were written again", name)
    if not judged:
        raise Skip("no incremental stream has records with several replication values")


def _came_again(first: SyncedStream, second: SyncedStream) -> bool:
    """Return whether a run has all rows of another: by content, or by key and range if the content changes."""
    if set(first.contents) <= set(second.contents):
        return True
    changes = bool(first.key_properties) and not set(first.contents) & set(second.contents)
    same_range = (first.lowest, first.highest) == (second.lowest, second.highest)
    return changes and same_range and set(first.keys) <= set(second.keys)


@check(
    "state-only-moves-forward", "state", "error", 4, CONFIG_AND_STATE,
    "Keep the bookmarks of the given state when there are no newer records.",
)  # fmt: skip
def state_only_moves_forward(trials: Trials) -> Iterator[Violation]:
    """A run from the last STATE keeps its bookmarks or advances them."""
    state, run = trials.resumed[-1]
    last = run.output.last_state
    if run.result.stopped or run.result.code or last is None:
        raise Skip("no complete run from the last STATE wrote a STATE")
    for name, entry in trials.entries.items():
        stream = trials.sync.output.streams.get(name)
        key = stream.replication_key if stream is not None else replication_key_of(entry)
        before, after = (bookmark_of(value, id_of(entry), key) for value in (state.value, last.value))
        if before is not None and after is None:
            yield Violation("its bookmark is gone", name)
        elif is_after(before, after):
            yield Violation("its bookmark went back", name)


@check(
    "start-date-is-kept", "state", "warning", 3, CONFIG_AND_STATE,
    "For a stream without a bookmark, query records that changed since the config's `start_date`.",
)  # fmt: skip
def start_date_is_kept(trials: Trials) -> Iterator[Violation]:
    """With a later ``start_date``, an incremental stream writes all newer records and no older ones."""
    if not trials.sync.is_whole:
        raise Skip("the sync was not complete")
    start, name, run = trials.later_start
    if run.result.stopped == "records":
        raise Skip("the run was cut short: use a larger --records")
    if not run.is_whole:
        yield Violation(f"with start_date {start}: {run.outcome}")
        return
    first, second = trials.sync.output.streams[name], run.output.streams.get(name)
    if second is None or not second.records:
        yield Violation(f"with start_date {start}, no records were written", name)
    elif is_after(start, second.lowest):
        yield Violation(f"with start_date {start}, older records were written", name)
    elif is_after(first.highest, second.highest):
        yield Violation(f"with start_date {start}, the newest records are missing", name)


@check(
    "state-of-another-tap-is-harmless", "failing", "warning", 2, CONFIG_AND_STATE,
    "Ignore unknown streams of the state, or reject them with an error message.",
)  # fmt: skip
def state_of_another_tap_is_harmless(trials: Trials) -> Iterator[Violation]:
    """The tap ignores a state of other streams, or rejects it with an error message."""
    needs_a_start(trials)
    run = trials.foreign_state
    if run.result.stopped == "timeout" or (run.result.code and run.output.logs.tracebacks):
        yield Violation(run.outcome)
    elif run.result.code and not run.output.logs.lines and not run.output.lines:
        yield Violation(f"exit code {run.result.code} without output")
    elif not run.result.code and run.output.records == 0 < trials.sync.output.records:
        yield Violation("nothing came")


@check(
    "broken-state-is-refused", "failing", "warning", 2, CONFIG_AND_STATE,
    "End with an error message and an exit code other than 0: a run without its state syncs everything again.",
)  # fmt: skip
def broken_state_is_refused(trials: Trials) -> Iterator[Violation]:
    """The tap rejects a state that is not JSON before it syncs anything."""
    needs_a_start(trials)
    run = trials.broken_state
    if run.result.stopped == "timeout" and not run.output.records:
        yield Violation(run.outcome)
    elif not run.result.code and not run.result.stopped:
        yield Violation("exit code 0")
    elif run.output.records:
        yield Violation(f"{run.output.records} records came")
