"""Rules of resuming, from an emitted state or after SIGTERM: a run writes the remaining records, and few others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from balog.singer.bookmarks import bookmark_of, is_after
from balog.tap.verify.catalogs import id_of, replication_key_of
from balog.tap.verify.output_reader import StateLine
from balog.tap.verify.rules.registration import RuleSource, Violation, check
from balog.tap.verify.rules.subjects import require_start, require_success
from balog.tap.verify.runs import Skip, SyncRun
from balog.tap.verify.synced_stream import SyncedStream
from balog.tap.verify.trials import Trials


class Gap(NamedTuple):
    """Records of a stream that are neither before a state nor in the run from it.

    Attributes:
        missing: number of missing records.
        of: number of records of the first sync.
        new: number of keys of the resumed run that the first sync did not have: the source changes.
        first: the number of the first missing record in its stream, from 1.
    """

    stream: str
    missing: int
    of: int
    new: int
    first: int


def gaps(trials: Trials, first: SyncRun, state: StateLine | None, second: SyncRun) -> list[Gap]:
    """Return the records that a target loses if it reads ``first`` until ``state``, and then all of ``second``.

    The reference is the first sync. Records are compared by key, or by content without keys. In a stream with a
    replication key, a record before the state does not replace a later one of its key.
    """
    stream_gaps = []
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
            number = next(number for number, key in enumerate(whole.keys, 1) if key in missing)
            stream_gaps.append(Gap(name, len(missing), whole.records, len(came.difference(whole.keys)), number))
    return stream_gaps


@check("state", "error", 10, RuleSource.CONFIG_AND_STATE)
def resumes_without_a_gap(trials: Trials) -> Iterator[Violation]:
    """A run from any emitted STATE writes all records that were not yet written.

    Write a STATE only after all records that it covers. Query the source from the bookmark on, inclusively.
    """
    judged = 0
    for state, run in trials.resumed:
        where = f"from the STATE in line {state.line}"
        if run.has_failed:
            require_success(trials)
            yield Violation(f"{where}: {run.outcome}")
            continue
        stream_gaps = gaps(trials, trials.sync, state, run)
        if stream_gaps and run.result.stopped:
            continue  # the missing records may follow later
        judged += 1
        for gap in stream_gaps:
            yield Violation(f"{where}: {describe_gap(gap)}", gap.stream, gap.missing, gap.of)
    if not judged:
        raise Skip("the runs were cut short: use a larger --records")


def describe_gap(gap: Gap) -> str:
    """Describe the missing records, as a clause."""
    changes = f"; {gap.new} others came, so the source may have changed" if gap.new else ""
    lost = f"{gap.missing} of {gap.of} records came neither before it nor after"
    return f"{lost}, the first is record {gap.first}{changes}"


@check("state", "warning", 4, RuleSource.SYNC_MODE)
def resumes_with_little(trials: Trials) -> Iterator[Violation]:
    """A run from the last STATE writes less than the whole incremental stream.

    Query the source for records since `state`, not for all.
    """
    _, run = trials.resumed[-1]
    if trials.sync.result.stopped or run.result.stopped or run.result.code:
        raise Skip("a run was not complete")
    judged = 0
    for name, stream in trials.sync.output.streams.items():
        if not stream.replication_key or stream.lowest == stream.highest:
            continue
        judged += 1
        again = run.output.streams.get(name)
        if again is not None and _repeats_all(stream, again):
            yield Violation(f"all {stream.records} records were written again", name)
    if not judged:
        raise Skip("no incremental stream has records with several replication values")


def _repeats_all(first: SyncedStream, second: SyncedStream) -> bool:
    """Return whether a run has all rows of another: by content, or by key and range if the content changes."""
    if set(first.contents) <= set(second.contents):
        return True
    changes = bool(first.key_properties) and not set(first.contents) & set(second.contents)
    same_range = (first.lowest, first.highest) == (second.lowest, second.highest)
    return changes and same_range and set(first.keys) <= set(second.keys)


@check("state", "error", 4, RuleSource.CONFIG_AND_STATE)
def state_only_moves_forward(trials: Trials) -> Iterator[Violation]:
    """A run from the last STATE keeps its bookmarks or advances them.

    Keep the bookmarks of the given state when there are no newer records.
    """
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


@check("state", "warning", 3, RuleSource.CONFIG_AND_STATE)
def start_date_is_kept(trials: Trials) -> Iterator[Violation]:
    """With a later ``start_date``, an incremental stream writes all newer records and no older ones.

    For a stream without a bookmark, query records that changed since the config's `start_date`.
    """
    if not trials.sync.is_whole:
        raise Skip("the sync was not complete")
    start, names, run = trials.later_start
    if run.result.stopped == "records":
        raise Skip("the run was cut short: use a larger --records")
    if not run.is_whole:
        yield Violation(f"with start_date {start}: {run.outcome}")
        return
    for name in names:
        first, second = trials.sync.output.streams[name], run.output.streams.get(name)
        if second is None or not second.records:
            yield Violation(f"with start_date {start}, no records were written", name)
        elif is_after(start, second.lowest):
            older = "older records were written"
            if is_ignored := set(first.keys) <= set(second.keys):
                older = f"all {first.records} records were written: it is ignored"
            yield Violation(f"with start_date {start}, {older}", name, is_grave=is_ignored)
        elif is_after(first.highest, second.highest):
            yield Violation(f"with start_date {start}, the newest records are missing", name)


@check("failures", "warning", 2, RuleSource.CONFIG_AND_STATE)
def state_of_another_tap_is_harmless(trials: Trials) -> Iterator[Violation]:
    """The tap ignores a state of other streams, or rejects it with an error message.

    Ignore unknown streams of the state, or reject them with an error message.
    """
    require_start(trials)
    run = trials.foreign_state
    if run.has_failed:
        require_success(trials)
    if run.result.stopped == "timeout" or (run.result.code and run.output.logs.tracebacks):
        yield Violation(run.outcome)
    elif run.result.code and not run.output.logs.lines and not run.output.lines:
        yield Violation(f"exit code {run.result.code} without output")
    elif not run.result.code and run.output.records == 0 < trials.sync.output.records:
        yield Violation("nothing came")


@check("failures", "warning", 2, RuleSource.CONFIG_AND_STATE)
def broken_state_is_refused(trials: Trials) -> Iterator[Violation]:
    """The tap rejects a state that is not JSON before it syncs anything.

    End with an error message and an exit code other than 0: a run without its state syncs everything again.
    """
    require_start(trials)
    run = trials.broken_state
    if run.result.stopped == "timeout" and not run.output.records:
        yield Violation(run.outcome)
    elif not run.result.code and not run.result.stopped:
        yield Violation("exit code 0")
    elif run.output.records:
        yield Violation(f"{run.output.records} records came")


_ON_ITS_WAY = 192 * 1024  # bytes that the pipe and buffers can hold


@check("interruption", "error", 4, RuleSource.PRACTICE)
def ends_on_sigterm(trials: Trials) -> Iterator[Violation]:
    """The tap ends within seconds after SIGTERM.

    Do not ignore SIGTERM, and do not wait for the source after it: runners kill the tap soon after.
    """
    run = trials.signalled
    if run.result.was_killed:
        yield Violation(f"it still ran after {trials.options.grace:g} s")
    elif run.result.code == 0 and run.result.bytes_after_sigterm > _ON_ITS_WAY:
        yield Violation(f"it continued to its end and wrote {run.result.bytes_after_sigterm / 1e6:.1f} MB more")
    else:
        _ = trials.interrupted  # skips the rule if there was nothing to interrupt


@check("interruption", "warning", 3, RuleSource.PRACTICE)
def interrupted_is_not_done(trials: Trials) -> Iterator[Violation]:
    """An interrupted tap does not end with exit code 0.

    End with exit code 143 (128 + SIGTERM) or by the signal: 0 means that the sync is complete.
    """
    run = trials.interrupted
    if run.result.code == 0:
        yield Violation("exit code 0")


@check("interruption", "error", 4, RuleSource.PRACTICE)
def interrupted_output_is_whole(trials: Trials) -> Iterator[Violation]:
    """An interrupted tap leaves no incomplete line.

    Write each message in one call, and finish the current message on SIGTERM.
    """
    run = trials.interrupted
    if run.result.was_killed:
        raise Skip("it had to be killed")
    if run.output.tail:
        yield Violation("the last line " + ("is torn" if run.output.tail == "torn" else "has no newline"))
    elif run.output.invalid_count > trials.sync.output.invalid_count:
        yield Violation("it has invalid lines, unlike the uninterrupted run")


@check("interruption", "error", 8, RuleSource.CONFIG_AND_STATE)
def interrupted_resumes_without_a_gap(trials: Trials) -> Iterator[Violation]:
    """A run from the last STATE of an interrupted run writes all records that were not yet written.

    Write a STATE only after all records that it covers, also on SIGTERM.
    """
    first, second = trials.interrupted, trials.after_interruption
    if second.has_failed:
        require_success(trials)
        yield Violation(second.outcome)
        return
    stream_gaps = gaps(trials, first, first.output.last_state, second)
    if stream_gaps and second.result.stopped:
        raise Skip("the run was cut short: use a larger --records")
    for gap in stream_gaps:
        yield Violation(describe_gap(gap), gap.stream, gap.missing, gap.of)
