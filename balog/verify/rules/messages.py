"""Stdout is Singer messages, whole, in an order that a target can follow."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.catalogs import key_properties_of
from balog.verify.output_reader import InvalidLine
from balog.verify.rules.registration import PRACTICE, SDK_TARGETS, SPEC, SYNC_MODE, TARGETS, Violation, check
from balog.verify.rules.selection import require_output
from balog.verify.trials import Skip, SyncRun, Trials

__all__: list[str] = []


def _syncs(trials: Trials) -> Iterator[SyncRun]:
    """Yield the first sync, and whatever other runs rules have asked for already."""
    yield trials.sync
    yield from (run for run in trials.made if isinstance(run, SyncRun) and run is not trials.sync)


@check(
    "only-messages-on-stdout", "output", "error", 10, SPEC,
    "Write one JSON object a line to stdout, and all else to stderr; look for print() in the tap and its libraries.",
)  # fmt: skip
def only_messages_on_stdout(trials: Trials) -> Iterator[Violation]:
    """Each line of stdout is a Singer message."""
    run = require_output(trials.sync)
    if run.output.invalid_count:
        yield Violation(
            f"{run.output.invalid_count} of {run.output.lines} lines are none: {_lines(run.output.invalid)}"
        )


@check(
    "message-types-are-known", "output", "warning", 2, SDK_TARGETS,
    "Write RECORD, SCHEMA, STATE, ACTIVATE_VERSION, BATCH; others are permitted, but targets end there.",
)  # fmt: skip
def message_types_are_known(trials: Trials) -> Iterator[Violation]:
    """Messages are of types that targets know."""
    output = require_output(trials.sync).output
    if output.unknown_count:
        yield Violation(f"{output.unknown_count} of {output.lines} lines are not: {_lines(output.unknown)}")


@check(
    "messages-are-whole", "output", "error", 8, SPEC,
    "Give RECORD `stream` and `record`, SCHEMA `stream`, `schema` and `key_properties`, STATE `value`.",
)  # fmt: skip
def messages_are_whole(trials: Trials) -> Iterator[Violation]:
    """Each message has what its type needs, of the right kinds."""
    broken = require_output(trials.sync).output.broken
    if broken:
        yield Violation(_lines(broken))


@check(
    "lines-end", "output", "error", 4, SPEC,
    "Write each message with its newline in one piece, and flush before the end.",
)  # fmt: skip
def lines_end(trials: Trials) -> Iterator[Violation]:
    """The last line of each run ends with a newline: nothing is torn."""
    for run in _syncs(trials):
        if run.output.unended == "torn":
            yield Violation(f"{run.name}: the last line is torn")
        elif run.output.unended:
            yield Violation(f"{run.name}: the last line has no newline")
    require_output(trials.sync)


@check(
    "nothing-is-left-running", "output", "warning", 2, PRACTICE,
    "Wait for what the tap starts, and end it: a pipeline waits for the end of the output, and a machine fills up.",
)  # fmt: skip
def nothing_is_left_running(trials: Trials) -> Iterator[Violation]:
    """When the tap ends, nothing that it started goes on, or holds its output."""
    for run in (trials.sync, *(run for run in trials.made if run is not trials.sync)):
        if run.result.left_running:
            yield Violation(f"{run.name}: a second after its end something that it had started was still there")
    require_output(trials.sync)


@check(
    "schema-before-record", "output", "error", 8, TARGETS,
    "Write a stream's SCHEMA before its first RECORD.",
)  # fmt: skip
def schema_before_record(trials: Trials) -> Iterator[Violation]:
    """A stream's SCHEMA comes before its first RECORD."""
    for name, stream in require_output(trials.sync).output.streams.items():
        if stream.before_schema:
            yield Violation(f"{stream.before_schema} records came before it", name)


@check(
    "schema-has-the-catalog-keys", "output", "warning", 2, SYNC_MODE,
    "Write the key properties that discovery says.",
)  # fmt: skip
def schema_has_the_catalog_keys(trials: Trials) -> Iterator[Violation]:
    """A stream's SCHEMA has the key properties of the catalog, and they are in it."""
    for name, stream in require_output(trials.sync).output.streams.items():
        if not stream.schemas:
            continue
        properties = stream.schema.get("properties")
        for key in stream.key_properties:
            if isinstance(properties, dict) and key not in properties:
                yield Violation(f"the key {key} is no property of the SCHEMA", name)
        entry = trials.entries.get(name)
        declared = key_properties_of(entry) if entry is not None else []
        if declared and sorted(declared) != sorted(stream.key_properties):
            yield Violation(
                f"the catalog says {', '.join(declared)}, SCHEMA {', '.join(stream.key_properties) or 'none'}", name
            )


@check(
    "bookmark-properties-exist", "output", "warning", 2, SPEC,
    "Name properties of the schema in `bookmark_properties`.",
)  # fmt: skip
def bookmark_properties_exist(trials: Trials) -> Iterator[Violation]:
    """The ``bookmark_properties`` of a SCHEMA are in it."""
    for name, stream in require_output(trials.sync).output.streams.items():
        properties = stream.schema.get("properties")
        for key in stream.bookmark_properties or ():
            if isinstance(properties, dict) and key not in properties:
                yield Violation(f"{key} is no property of the SCHEMA", name)


@check(
    "versions-are-activated", "output", "error", 4, "Singer, singer-python's ACTIVATE_VERSION",
    "End a full table with ACTIVATE_VERSION of the version that its records have.",
)  # fmt: skip
def versions_are_activated(trials: Trials) -> Iterator[Violation]:
    """Records with a version are followed by ACTIVATE_VERSION of that version, and a stream has one version."""
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
            yield Violation("no ACTIVATE_VERSION of its records' version came", name)
        if stream.records and versions and activated - versions:
            yield Violation("an ACTIVATE_VERSION is of a version that no record has", name)


def _lines(invalid: list[InvalidLine]) -> str:
    text = "; ".join(f"line {each.line} is {each.reason}" for each in invalid[:3])
    return f"{text}; …" if len(invalid) > 3 else text
