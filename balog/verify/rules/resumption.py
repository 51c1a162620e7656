"""From a state that was emitted, what is left comes: all of it, and not much more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from balog.verify.catalogs import id_of, replication_key_of
from balog.verify.output_reader import StateLine
from balog.verify.rules.registration import CONFIG_AND_STATE, SYNC_MODE, Violation, check
from balog.verify.rules.selection import needs_a_start
from balog.verify.stream_stats import StreamStats
from balog.verify.trials import Skip, SyncRun, Trials
from balog.verify.values import bookmark_of, is_after

__all__ = ["Gap", "bookmarks_in", "gaps"]


class Gap(NamedTuple):
    """Records of a stream that came neither before a state nor in the run from it.

    Attributes:
        missing: how many.
        new: keys that came in the run from the state and that the first sync did not have: the source changes.
    """

    stream: str
    missing: int
    of: int
    new: int


def gaps(trials: Trials, first: SyncRun, state: StateLine | None, second: SyncRun) -> list[Gap]:
    """Tell what a target would lose that took what ``first`` wrote until ``state``, and then all of ``second``.

    What there is to have is what the first sync wrote. Records are held against it by key; where there is none, by
    content. In a stream with a replication key one that came before the state does not stand for a later one of its
    key.
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
    "Write a STATE only after all records that it speaks of; ask the source from the bookmark on, itself included.",
)  # fmt: skip
def resumes_without_a_gap(trials: Trials) -> Iterator[Violation]:
    """From each STATE that was emitted, what had not come until then comes."""
    judged = 0
    for state, run in trials.resumed:
        where = f"from the STATE in line {state.line}"
        if run.result.stopped not in ("", "records") or (run.result.code and not run.result.stopped):
            yield Violation(f"{where}: {run.outcome}")
            continue
        found = gaps(trials, trials.sync, state, run)
        if found and run.result.stopped:
            continue  # what is missing may have been still to come
        judged += 1
        for gap in found:
            yield Violation(f"{where}: {bookmarks_in(gap)}", gap.stream)
    if not judged:
        raise Skip("the runs were ended before their end: give more --records")


def bookmarks_in(gap: Gap) -> str:
    """Say what is missing, as a clause."""
    changes = f"; {gap.new} others came, so the source may have changed meanwhile" if gap.new else ""
    return f"{gap.missing} records of {gap.of} came neither before it nor after{changes}"


@check(
    "resumes-with-little", "state", "warning", 4, SYNC_MODE,
    "Ask the source for what is new since `state`, not for all.",
)  # fmt: skip
def resumes_with_little(trials: Trials) -> Iterator[Violation]:
    """From the last STATE an incremental stream gives less than all again."""
    _, run = trials.resumed[-1]
    if trials.sync.result.stopped or run.result.stopped or run.result.code:
        raise Skip("a run was not whole")
    judged = 0
    for name, stream in trials.sync.output.streams.items():
        if not stream.replication_key or stream.lowest == stream.highest:
            continue
        judged += 1
        again = run.output.streams.get(name)
        if again is not None and _came_again(stream, again):
            yield Violation(f"all {stream.records} records came again", name)
    if not judged:
        raise Skip("no incremental stream gave records with more than one replication value")


def _came_again(first: StreamStats, second: StreamStats) -> bool:
    """Return whether all rows of one run came in another; by key and range where each run changes their content."""
    if set(first.contents) <= set(second.contents):
        return True
    changes = bool(first.key_properties) and not set(first.contents) & set(second.contents)
    same_range = (first.lowest, first.highest) == (second.lowest, second.highest)
    return changes and same_range and set(first.keys) <= set(second.keys)


@check(
    "state-only-moves-forward", "state", "error", 4, CONFIG_AND_STATE,
    "Keep the bookmark of the given state when nothing newer came.",
)  # fmt: skip
def state_only_moves_forward(trials: Trials) -> Iterator[Violation]:
    """A run from the last STATE does not lose it: its own last STATE says the same or more."""
    state, run = trials.resumed[-1]
    last = run.output.last_state
    if run.result.stopped or run.result.code or last is None:
        raise Skip("no whole run from the last STATE wrote one itself")
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
    "Where a stream has no bookmark, ask the source for what changed since the config's `start_date`.",
)  # fmt: skip
def start_date_is_kept(trials: Trials) -> Iterator[Violation]:
    """With a later ``start_date`` an incremental stream gives what is newer, and nothing that is older."""
    if not trials.sync.is_whole:
        raise Skip("the sync was not whole")
    start, name, run = trials.later_start
    if run.result.stopped == "records":
        raise Skip("the run was ended before its end: give more --records")
    if not run.is_whole:
        yield Violation(f"with start_date {start}: {run.outcome}")
        return
    first, second = trials.sync.output.streams[name], run.output.streams.get(name)
    if second is None or not second.records:
        yield Violation(f"with start_date {start} no records came", name)
    elif is_after(start, second.lowest):
        yield Violation(f"with start_date {start} records came that are older", name)
    elif is_after(first.highest, second.highest):
        yield Violation(f"with start_date {start} the newest records did not come", name)


@check(
    "state-of-another-tap-is-harmless", "failing", "warning", 2, CONFIG_AND_STATE,
    "Ignore what the state says of streams that are not there, or refuse it in words.",
)  # fmt: skip
def state_of_another_tap_is_harmless(trials: Trials) -> Iterator[Violation]:
    """A state that speaks of other streams is ignored, or refused in words."""
    needs_a_start(trials)
    run = trials.foreign_state
    if run.result.stopped == "timeout" or (run.result.code and run.output.logs.tracebacks):
        yield Violation(run.outcome)
    elif run.result.code and not run.output.logs.lines and not run.output.lines:
        yield Violation(f"exit code {run.result.code} in silence")
    elif not run.result.code and run.output.records == 0 < trials.sync.output.records:
        yield Violation("nothing came")


@check(
    "broken-state-is-refused", "failing", "warning", 2, CONFIG_AND_STATE,
    "End with another exit code than 0 and a line that says so: who goes on without a state syncs all again.",
)  # fmt: skip
def broken_state_is_refused(trials: Trials) -> Iterator[Violation]:
    """A state that is no JSON is refused before anything is synced."""
    needs_a_start(trials)
    run = trials.broken_state
    if run.result.stopped == "timeout" and not run.output.records:
        yield Violation(run.outcome)
    elif not run.result.code and not run.result.stopped:
        yield Violation("exit code 0")
    elif run.output.records:
        yield Violation(f"{run.output.records} records came")
