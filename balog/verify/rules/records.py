"""Rules of records: they match the schema before them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from balog.distribution import install_command
from balog.verify.rules.registration import BEST_PRACTICES, SDK_TESTS, SPEC, Violation, check
from balog.verify.rules.selection import require_output
from balog.verify.synced_stream import SyncedStream
from balog.verify.trials import Skip, Trials

__all__: list[str] = []


def _with_schema(trials: Trials) -> Iterator[tuple[str, SyncedStream]]:
    streams = require_output(trials.sync).output.streams
    found = [(name, stream) for name, stream in streams.items() if stream.schemas and stream.records]
    if not found:
        raise Skip("no stream with a SCHEMA wrote records")
    yield from found


def _validated(trials: Trials) -> Iterator[tuple[str, SyncedStream]]:
    found = [(name, stream) for name, stream in _with_schema(trials) if stream.can_validate]
    if not found:
        try:
            import jsonschema_rs  # noqa: F401
        except ImportError:
            raise Skip(f"validation needs: {install_command('schema')}") from None
        raise Skip("no stream has a valid SCHEMA")
    yield from found


@check(
    "schema-messages-are-json-schema", "records", "error", 6, SPEC,
    "Write schemas that a JSON Schema validator accepts.",
)  # fmt: skip
def schema_messages_are_json_schema(trials: Trials) -> Iterator[Violation]:
    """Each SCHEMA has a valid JSON Schema."""
    for name, stream in require_output(trials.sync).output.streams.items():
        if stream.schema_fault:
            yield Violation(stream.schema_fault, name)


@check(
    "records-match-schema", "records", "error", 10, SPEC,
    "Make the records match the schema (coerce types, allow null), or correct the schema.",
)  # fmt: skip
def records_match_schema(trials: Trials) -> Iterator[Violation]:
    """Each record is valid against its stream's schema."""
    for name, stream in _validated(trials):
        if stream.invalid:
            text = f"{stream.invalid} of {stream.records} records are invalid, the first in line {stream.first_invalid}"
            yield Violation(f"{text}: {_most(stream.faults)}", name)


@check(
    "formats-hold", "records", "warning", 4, BEST_PRACTICES,
    "Write times as in RFC 3339 with an offset, 2026-11-20T07:00:00Z, or remove the format from the schema.",
)  # fmt: skip
def formats_hold(trials: Trials) -> Iterator[Violation]:
    """Values have the formats of the schema: ``date-time`` as in RFC 3339, and so on."""
    for name, stream in _validated(trials):
        if stream.format_faults:
            yield Violation(_most(stream.format_faults), name)


@check(
    "properties-are-declared", "records", "warning", 3, SDK_TESTS,
    "Declare the property in the schema, or omit it from the records: most targets drop it.",
)  # fmt: skip
def properties_are_declared(trials: Trials) -> Iterator[Violation]:
    """Records have no top-level property that the schema does not declare."""
    for name, stream in _with_schema(trials):
        declared = stream.schema.get("properties")
        if not isinstance(declared, dict) or "patternProperties" in stream.schema:
            continue
        others = [key for key in stream.properties if key not in declared]
        if others:
            yield Violation(f"{len(others)} are undeclared: {', '.join(others[:5])}", name)


@check(
    "properties-are-used", "records", "advice", 1, SDK_TESTS,
    "Check whether the source still has the property: a column that is always empty has no use.",
)  # fmt: skip
def properties_are_used(trials: Trials) -> Iterator[Violation]:
    """Each property of the schema occurs in a record."""
    for name, stream in _with_schema(trials):
        declared = stream.schema.get("properties")
        unused = [key for key in declared if not stream.properties[key]] if isinstance(declared, dict) else []
        if unused:
            yield Violation(f"{len(unused)} are in no record: {', '.join(unused[:5])}", name)


def _most(faults: Counter[str]) -> str:
    text = "; ".join(f"{fault} ({count})" for fault, count in faults.most_common(3))
    return f"{text}; …" if len(faults) > 3 else text
