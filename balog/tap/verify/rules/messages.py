"""Rules of messages and records: stdout has only complete Singer messages, and records match their schema and keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from balog.tap.verify.catalogs import key_properties_of, method_of
from balog.tap.verify.output_reader import InvalidLine, OutputReader
from balog.tap.verify.rules.registration import RuleSource, Violation, check, check_each
from balog.tap.verify.rules.subjects import first_of, first_output, require_output, share, streams, streams_with
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


_MANY = 10  # records

_with_schema = streams_with(lambda stream: stream.schemas and stream.records, "no stream with a SCHEMA wrote records")
_validated = streams_with(lambda stream: stream.can_validate, "no stream has a valid SCHEMA", _with_schema)
_keyed = streams_with(
    lambda stream: stream.key_properties and stream.records, "no stream with key properties wrote records"
)
_keyed_incremental = streams_with(
    lambda stream: stream.replication_key, "no incremental stream with key properties wrote records", _keyed
)


@check_each(streams, "records", "error", 6, RuleSource.SPEC)
def schema_messages_are_json_schema(stream: SyncedStream) -> Iterator[str]:
    """Each SCHEMA has a valid JSON Schema.

    Write schemas that a JSON Schema validator accepts.
    """
    if stream.schema_fault:
        yield stream.schema_fault


@check_each(_validated, "records", "error", 10, RuleSource.SPEC)
def records_match_schema(stream: SyncedStream) -> Iterator[Violation]:
    """Each record is valid against its stream's schema.

    Make the records match the schema (coerce types, allow null), or correct the schema.
    """
    for violation in share(stream, stream.invalid, after=" are invalid"):
        yield violation._replace(detail=f"{violation.detail}: {_most(stream.faults)}")


@check_each(_validated, "records", "warning", 4, RuleSource.BEST_PRACTICES)
def formats_hold(stream: SyncedStream) -> Iterator[Violation]:
    """Values have the formats of the schema: ``date-time`` as in RFC 3339, and so on.

    Write times as in RFC 3339 with an offset, 2026-11-20T07:00:00Z, or remove the format from the schema.
    """
    if stream.format_faults:
        count = sum(stream.format_faults.values())
        yield Violation(
            f"{_most(stream.format_faults)}{_first(stream.ill_formatted.line)}", records=count, of=stream.records
        )


@check_each(_with_schema, "records", "warning", 3, RuleSource.SDK_TESTS)
def properties_are_declared(stream: SyncedStream) -> Iterator[Violation]:
    """Records have no top-level property that the schema does not declare.

    Declare the property in the schema, or omit it from the records: most targets drop it.
    """
    declared = stream.schema.get("properties")
    if not isinstance(declared, dict) or "patternProperties" in stream.schema:
        return
    others = [key for key in stream.properties if key not in declared]
    if others:
        count = max(stream.properties[key] for key in others)
        text = f"{len(others)} are undeclared: {', '.join(others[:5])}{_first(stream.undeclared_at)}"
        is_forbidden = stream.schema.get("additionalProperties") is False
        yield Violation(text, records=count if is_forbidden else 0, of=stream.records)


@check_each(_with_schema, "records", "advice", 1, RuleSource.SDK_TESTS)
def properties_are_used(stream: SyncedStream) -> Iterator[str]:
    """Each property of the schema occurs in a record.

    Check whether the source still has the property: a column that is always empty has no use.
    """
    declared = stream.schema.get("properties")
    unused = [key for key in declared if not stream.properties[key]] if isinstance(declared, dict) else []
    if unused:
        yield f"{len(unused)} are in no record: {', '.join(unused[:5])}"


def _first(line: int) -> str:
    return f", the first in line {line}" if line else ""


def _most(faults: Counter[str]) -> str:
    return first_of([f"{fault} ({count})" for fault, count in faults.most_common()], 3, "; ")


@check_each(_keyed, "records", "error", 8, RuleSource.SPEC)
def keys_are_there(stream: SyncedStream) -> Iterator[Violation]:
    """Each record has its key properties, and none is null.

    Write all key properties in each record. A property that can be null is not a key.
    """
    for key, tally in stream.keyless.items():
        yield from share(stream, tally, f"{key} is missing or null in ")


@check("records", "error", 6, RuleSource.SDK_TESTS)
def keys_are_unique(trials: Trials) -> Iterator[Violation]:
    """In a full table, no key occurs twice.

    Declare the complete key of a record, and look for a page that is read twice.
    """
    keyed = [
        (name, stream)
        for name, stream in _keyed(trials)
        if not stream.replication_key
        and method_of(trials.entries.get(name, {})) != "LOG_BASED"  # a row, then its changes
    ]
    if not keyed:
        raise Skip("no full table with key properties wrote records")
    yield from _repeated_keys(keyed, 1)


@check("records", "warning", 2, RuleSource.SDK_TESTS)
def records_come_once(trials: Trials) -> Iterator[Violation]:
    """In an incremental stream, no key occurs twice in a run; an error where many do.

    Where windows or pages overlap, omit records that were already written.
    """
    yield from _repeated_keys(_keyed_incremental(trials), _MANY)


def _repeated_keys(keyed: Iterable[tuple[str, SyncedStream]], many: int) -> Iterator[Violation]:
    """Yield the streams with repeated keys. Fewer than ``many`` weigh nothing by their share."""
    for name, stream in keyed:
        count = len(stream.keys) - len(set(stream.keys))
        if count:
            text = (
                f"{count} of {stream.records} records repeat a key, the first is record {_first_repeated(stream.keys)}"
            )
            yield Violation(text, name, records=count if count >= many else 0, of=stream.records)


def _first_repeated(keys: Iterable[int]) -> int:
    """Return the number of the first record, from 1, whose key an earlier one has."""
    seen: set[int] = set()
    for number, key in enumerate(keys, 1):
        if key in seen:
            return number
        seen.add(key)
    return 0
