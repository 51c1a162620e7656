"""Rules of messages: stdout has only complete Singer messages, in a valid order."""

from __future__ import annotations

from collections.abc import Iterator

from balog.tap.verify.catalogs import key_properties_of
from balog.tap.verify.output_reader import InvalidLine, OutputReader
from balog.tap.verify.rules.registration import RuleSource, Violation, check, check_each
from balog.tap.verify.rules.subjects import first_of, first_output, require_output, streams
from balog.tap.verify.runs import Skip, SyncRun
from balog.tap.verify.synced_stream import SyncedStream
from balog.tap.verify.trials import Trials


def _syncs(trials: Trials) -> Iterator[SyncRun]:
    """Yield the first sync and all others that were not interrupted."""
    yield trials.sync
    for run in trials.made:
        if isinstance(run, SyncRun) and run is not trials.sync and run.result.stopped != "interrupt":
            yield run


@check_each(first_output, "output", "error", 10, RuleSource.SPEC)
def only_messages_on_stdout(output: OutputReader) -> Iterator[str]:
    """Each line of stdout is a Singer message.

    Write one JSON object per line to stdout, all else to stderr. Look for print() in the tap and its libraries.
    """
    if output.invalid_count:
        yield f"{output.invalid_count} of {output.lines} lines are not: {_lines(output.invalid)}"


@check_each(first_output, "output", "warning", 2, RuleSource.SDK_TARGETS)
def message_types_are_known(output: OutputReader) -> Iterator[str]:
    """Messages have types that targets support.

    Write RECORD, SCHEMA, STATE, ACTIVATE_VERSION and BATCH. Other types are permitted, but targets fail on them.
    """
    if output.unknown_count:
        yield f"{output.unknown_count} of {output.lines} lines are not: {_lines(output.unknown)}"


@check_each(first_output, "output", "error", 8, RuleSource.SPEC)
def messages_are_whole(output: OutputReader) -> Iterator[str]:
    """Each message has the fields of its type, with the right types.

    Write `stream` and `record` in RECORD; `stream`, `schema` and `key_properties` in SCHEMA; `value` in STATE.
    """
    if output.broken:
        yield _lines(output.broken)


@check("output", "error", 4, RuleSource.SPEC, is_last=True)
def lines_end(trials: Trials) -> Iterator[Violation]:
    """The last line of each run ends with a newline and is complete.

    Write each message and its newline in one call, and flush before the process ends.
    """
    for run in _syncs(trials):
        if run.output.tail == "torn":
            yield Violation(f"{run.name}: the last line is torn")
        elif run.output.tail:
            yield Violation(f"{run.name}: the last line has no newline")
    require_output(trials.sync)


@check("output", "warning", 2, RuleSource.PRACTICE, is_last=True)
def nothing_is_left_running(trials: Trials) -> Iterator[Violation]:
    """When the tap ends, none of its child processes keeps running or keeps its output open.

    End child processes and wait for them: a pipeline waits until the output is closed.
    """
    for run in (trials.sync, *(run for run in trials.made if run is not trials.sync)):
        if run.result.left_running:
            yield Violation(f"{run.name}: a second after its end, a child process still ran")
    require_output(trials.sync)


@check_each(streams, "output", "error", 8, RuleSource.TARGETS)
def schema_before_record(stream: SyncedStream) -> Iterator[Violation]:
    """A stream's SCHEMA precedes its first RECORD.

    Write a stream's SCHEMA before its first RECORD.
    """
    if stream.before_schema:
        text = f"{stream.before_schema} of {stream.records} records precede it"
        yield Violation(text, records=stream.before_schema, of=stream.records)


@check("output", "warning", 2, RuleSource.SYNC_MODE)
def schema_has_the_catalog_keys(trials: Trials) -> Iterator[Violation]:
    """A stream's SCHEMA has the catalog's key properties, and declares them.

    Write the key properties of the catalog.
    """
    for name, stream in streams(trials):
        if not stream.schemas:
            continue
        properties = stream.schema.get("properties")
        for key in stream.key_properties:
            if isinstance(properties, dict) and key not in properties:
                yield Violation(f"the key {key} is not a property of the SCHEMA", name)
        entry = trials.entries.get(name)
        declared = key_properties_of(entry) if entry is not None else []
        if declared and sorted(declared) != sorted(stream.key_properties):
            yield Violation(
                f"the catalog has {', '.join(declared)}, SCHEMA has {', '.join(stream.key_properties) or 'none'}", name
            )


@check_each(streams, "output", "warning", 2, RuleSource.SPEC)
def bookmark_properties_exist(stream: SyncedStream) -> Iterator[str]:
    """The ``bookmark_properties`` of a SCHEMA are properties of its schema.

    In `bookmark_properties`, name properties of the schema.
    """
    properties = stream.schema.get("properties")
    for key in stream.bookmark_properties or ():
        if isinstance(properties, dict) and key not in properties:
            yield f"{key} is not a property of the SCHEMA"


@check("output", "error", 4, "Singer, singer-python's ACTIVATE_VERSION")
def versions_are_activated(trials: Trials) -> Iterator[Violation]:
    """Records with a version are followed by ACTIVATE_VERSION of that version, and each stream has one version.

    After a full table, write ACTIVATE_VERSION with the version of its records.
    """
    streams = require_output(trials.sync).output.streams
    if not any(stream.versions.keys() - {"none"} or stream.activated for stream in streams.values()):
        raise Skip("no stream has versions")
    for name, stream in streams.items():
        versions = stream.versions.keys() - {"none"}
        if versions and "none" in stream.versions:
            yield Violation(f"{stream.versions['none']} of {stream.records} records have no version", name)
        if len(versions) > 1:
            yield Violation(f"records of {len(versions)} versions in one run", name)
        activated = {version for version, _ in stream.activated}
        if versions and not trials.sync.result.stopped and not versions & activated:
            yield Violation("no ACTIVATE_VERSION has its records' version", name)
        if stream.records and versions and activated - versions:
            yield Violation("an ACTIVATE_VERSION has a version that no record has", name)


def _lines(invalid: list[InvalidLine]) -> str:
    return first_of([f"line {each.line} is {each.reason}" for each in invalid], 3, "; ")
