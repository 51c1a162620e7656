"""Rules of state: present at the end, an object, advancing, and never ahead of the records."""

from __future__ import annotations

from collections.abc import Iterator

from balog.singer.bookmarks import is_after, is_naive, mentions, seconds_between
from balog.tap.verify.catalogs import id_of
from balog.tap.verify.output_reader import OutputReader
from balog.tap.verify.rules.registration import RuleSource, Violation, check, check_each
from balog.tap.verify.rules.subjects import first_output, incremental, require_end, require_output, share
from balog.tap.verify.runs import Skip
from balog.tap.verify.synced_stream import SyncedStream
from balog.tap.verify.trials import Trials


def advance_of(stream: SyncedStream) -> float | None:
    """Return the seconds by which a run advanced a stream's bookmark; None if it is not a time."""
    began = stream.started_from if stream.started_from is not None else stream.lowest
    return seconds_between(began, stream.bookmark)


@check("state", "error", 6, RuleSource.CONFIG_AND_STATE)
def state_is_written(trials: Trials) -> Iterator[Violation]:
    """A sync of an incremental stream ends with a STATE.

    Write a STATE at the end of a sync.
    """
    run = require_end(require_output(trials.sync))
    pairs = [(name, stream) for name, stream in run.output.streams.items() if stream.replication_key and stream.records]
    if not pairs and run.output.records:
        raise Skip("no stream is incremental")
    last = run.output.last_state
    if last is None:
        if run.output.records:
            yield Violation("no STATE was written")
        return
    for name, stream in pairs:
        late = stream.records - last.records.get(name, 0)
        if late:
            yield Violation(f"{late} of {stream.records} records follow the last STATE", name, late, stream.records)


@check_each(first_output, "state", "error", 4, RuleSource.CONFIG_AND_STATE)
def state_is_an_object(output: OutputReader) -> Iterator[str]:
    """The value of each STATE is an object.

    Write a JSON object as `value`: runners merge states by key.
    """
    if not output.state_count:
        raise Skip("no STATE was written")
    if output.bad_states:
        yield f"line {output.bad_states} is the first whose value is not an object"


@check("state", "error", 6, RuleSource.CONFIG_AND_STATE)
def bookmark_advances(trials: Trials) -> Iterator[Violation]:
    """A stream's bookmark advances when newer records arrive.

    Before the final STATE, set the bookmark to the largest replication value that was written.
    """
    if require_end(trials.sync).output.last_state is None:
        raise Skip("no STATE was written")
    for name, stream in incremental(trials):
        if stream.highest is None:
            continue
        if stream.bookmark is None:
            last, entry = trials.sync.output.last_state, trials.entries.get(name)
            is_elsewhere = last is not None and any(
                mentions(last.value, word) for word in {name, id_of(entry) if entry else name}
            )
            if not is_elsewhere:
                yield Violation("the last STATE has no bookmark for it", name)
        elif stream.bookmark == stream.started_from and is_after(stream.highest, stream.started_from):
            yield Violation("the bookmark did not advance, although newer records were written", name)
        elif stream.started_from is not None and is_after(stream.started_from, stream.bookmark):
            yield Violation("the bookmark went back", name)
        elif is_after(stream.latest, stream.bookmark) and is_after(stream.highest, stream.bookmark):
            yield Violation("the last STATE has an older bookmark than a STATE before it", name)


@check("state", "advice", 2, RuleSource.PRACTICE)
def bookmark_reaches_the_records(trials: Trials) -> Iterator[Violation]:
    """At the end, the bookmark is not older than the records.

    Bookmark the largest value that was written. To read late records again, start the query before the bookmark.
    """
    require_end(trials.sync)
    for name, stream in incremental(trials):
        if is_after(stream.highest, stream.bookmark):
            behind = seconds_between(stream.bookmark, stream.highest)
            yield Violation(
                "the bookmark is older than the records" + (f" by {behind:g} s" if behind is not None else ""), name
            )


@check_each(incremental, "state", "error", 10, RuleSource.CONFIG_AND_STATE)
def bookmark_is_not_ahead(stream: SyncedStream) -> Iterator[Violation]:
    """No record after a STATE is older than its bookmark: a run from that STATE would lose the record.

    Write a bookmark in the middle of a stream only if its records are in ascending order; else at its end.
    """
    if lost := stream.lost.count:
        detail = f"{lost} records follow a STATE whose bookmark is later than they are"
        yield Violation(f"{detail}, the first in line {stream.lost.line}", records=lost, of=stream.records)


@check_each(incremental, "state", "advice", 2, RuleSource.PRACTICE)
def bookmark_is_of_a_record(stream: SyncedStream) -> Iterator[str]:
    """No bookmark is later than all records before it.

    Bookmark a value of the records, not the time of the run: late records can be older than that time.
    """
    if stream.ahead:
        yield f"{stream.ahead} STATEs have a bookmark later than all records before them"


@check_each(incremental, "state", "warning", 3, RuleSource.CONFIG_AND_STATE)
def replication_values_are_there(stream: SyncedStream) -> Iterator[Violation]:
    """Each record has a replication key that is not null.

    Write the replication key in each record: records without one are not synced again.
    """
    return share(stream, stream.valueless, f"{stream.replication_key} is missing or null in ")


@check_each(incremental, "state", "warning", 3, RuleSource.BEST_PRACTICES)
def times_have_an_offset(stream: SyncedStream) -> Iterator[Violation]:
    """Replication values and bookmarks that are times have an offset.

    Write times as in RFC 3339 with an offset, 2026-11-20T07:00:00Z: else each reader assumes its own time zone.
    """
    declared = stream.schema.get("properties", {}).get(stream.replication_key)
    if stream.naive.count and isinstance(declared, dict) and declared.get("format") == "date-time":
        return  # formats-hold reports them
    yield from share(stream, stream.naive, f"{stream.replication_key} has none in ")
    if not stream.naive.count and is_naive(stream.bookmark):
        yield Violation(f"the bookmark {stream.bookmark} has none")


@check_each(incremental, "state", "advice", 1, RuleSource.SPEC)
def bookmark_properties_are_declared(stream: SyncedStream) -> Iterator[str]:
    """The SCHEMA of an incremental stream has ``bookmark_properties``.

    Write `bookmark_properties` in the SCHEMA of an incremental stream.
    """
    if stream.schemas and not stream.bookmark_properties:
        yield "it has none"


@check("state", "advice", 2, RuleSource.CONFIG_AND_STATE)
def state_comes_on_the_way(trials: Trials) -> Iterator[Violation]:
    """A long sync writes STATE before its end, so that an interrupted one can resume.

    Write a STATE at intervals in streams with ordered records, and after each stream.
    """
    output = require_output(trials.sync).output
    if output.records < 1000 and len(incremental(trials)) < 2:
        raise Skip("it is short and has fewer than two incremental streams")
    if output.state_count < 2:
        yield Violation(f"{output.state_count} STATE for {output.records} records")


@check("state", "warning", 2, RuleSource.CURRENTLY_SYNCING)
def currently_syncing_is_cleared(trials: Trials) -> Iterator[Violation]:
    """The last STATE of a complete sync has no ``currently_syncing``.

    Remove `currently_syncing` from the final state: the next run would begin with that stream.
    """
    run = require_output(trials.sync)
    if not run.is_whole or run.output.last_state is None or run.output.bad_states:
        raise Skip("no sync ended with a STATE that is an object")
    if run.output.last_state.value.get("currently_syncing"):
        yield Violation("it has one")


@check_each(first_output, "state", "advice", 1, RuleSource.CURRENTLY_SYNCING)
def currently_syncing_is_written(output: OutputReader) -> Iterator[str]:
    """STATEs between several streams name the current one in ``currently_syncing``.

    Write `currently_syncing` into the state while a stream is synced.
    """
    if output.state_count < 2 or len(output.streams) < 2:
        raise Skip("there are no STATEs between several streams")
    if not output.syncing_states:
        yield f"none of {output.state_count} has it"
