"""Compares a new version of a type with earlier ones, in both layers: JSON and protobuf's wire format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from balog.registry.comparing.difference_text import Difference, differences
from balog.registry.comparing.document import Answer, SchemaDocument, covers, path_of
from balog.registry.comparing.open_content import assume_open_content
from balog.registry.comparing.verdict import Bump, CompatibilityFinding, CompatibilityReport, Mode
from balog.registry.json_schema import decode_schema
from balog.registry.names import major, order
from balog.registry.schema import Schema

Side = Literal["old", "new"]


def compare(old: Schema, new: Schema, mode: Mode = "backward", *, open: bool = True) -> CompatibilityReport:
    """Compare a new version with an old one.

    Args:
        mode: which side must be able to read which events. The transitive modes are the same as the simple ones here.
        open: assume that writers write no member that only the other schema declares, so an optional property can be
            added to an open content model (see ``open_content``). False compares strictly.

    Raises:
        InvalidSchemaError: one of the documents is not a schema.
        MissingExtraError: packages for the form are not installed.
    """
    before, after = document_of(old), document_of(new)
    findings = [*_compare_documents(before, after, mode, open), *_wire(old, new, mode)]
    compatible = not any(finding.breaks for finding in findings)
    return CompatibilityReport(compatible=compatible, bump=_bump(old, new, before, after, findings), findings=findings)


def compare_history(history: Sequence[Schema], new: Schema, mode: Mode = "backward") -> CompatibilityReport:
    """Compare a new version with all earlier ones.

    The transitive modes compare with each earlier version of the latest major; the other modes with the latest version.
    """
    before = sorted(
        (schema for schema in history if not new.version or order(schema.version) < order(new.version)),
        key=lambda schema: order(schema.version),
    )
    if not before:
        return CompatibilityReport(compatible=True, bump="none")
    last = before[-1]
    verdict = compare(last, new, mode)
    if not mode.endswith("_transitive"):
        return verdict
    findings = list(verdict.findings)
    for earlier in reversed(before[:-1]):
        if major(earlier.version) == major(last.version):
            findings += [
                msgspec.structs.replace(finding, reason=f"{finding.reason} (since {earlier.version})")
                for finding in compare(earlier, new, mode).findings
                if finding.breaks and not _has(findings, finding)
            ]
    compatible = not any(finding.breaks for finding in findings)
    return CompatibilityReport(compatible=compatible, bump=verdict.bump if compatible else "major", findings=findings)


def least_version(history: Sequence[Schema], verdict: CompatibilityReport) -> str:
    """Return the least version number for a schema with this report, after the versions of ``history``.

    According to semver.org: a breaking change is major, an addition minor, and a change of annotations a patch. In 0.x,
    a minor version may break (4), as most resolvers have it. A prerelease may change until its release (9).
    """
    if not history:
        return "0.0.0"
    last = order(max((schema.version for schema in history), key=order))
    if verdict.bump == "none":
        return str(last)
    numbers = [last.major, last.minor, last.patch]
    index = {"major": 0, "minor": 1, "patch": 2}[verdict.bump]
    index = min(index + 1, 2) if last.major == 0 else index
    if last.prerelease and not any(numbers[index + 1 :]):
        return f"{last}.0"
    return ".".join(map(str, [*numbers[:index], numbers[index] + 1, *[0] * (2 - index)]))


def _compare_documents(old: SchemaDocument, new: SchemaDocument, mode: Mode, open: bool) -> list[CompatibilityFinding]:
    """Return the findings of the JSON layer, breaking ones first."""
    changes = differences(old, new)
    breaks: dict[Difference, CompatibilityFinding] = {}
    general: list[CompatibilityFinding] = []
    directions: list[tuple[SchemaDocument, SchemaDocument, Side]] = [(old, new, "new"), (new, old, "old")]
    for writer, reader, refused_by in directions:
        if not mode.startswith(("full", "backward" if refused_by == "new" else "forward")):
            continue
        explanations, rest = _breaks(writer, reader, changes, refused_by, open)
        general += rest
        for change, finding in explanations.items():
            had = breaks.get(change)
            breaks[change] = finding if had is None or (had.undecided and not finding.undecided) else had
    reported = [
        breaks.get(change)
        or CompatibilityFinding(layer="json", path=path_of(change.path), reason=change.reason, breaks=False)
        for change in changes
    ]
    return sorted(general + reported, key=lambda finding: not finding.breaks)


def _breaks(
    writer: SchemaDocument, reader: SchemaDocument, changes: list[Difference], refused_by: Side, open: bool
) -> tuple[dict[Difference, CompatibilityFinding], list[CompatibilityFinding]]:
    """Return a finding for each change that breaks the reader, or one finding if no change explains the break."""
    held = assume_open_content(writer, reader) if open else writer
    answer = covers(reader, held)
    if answer == "yes" or (answer == "unknown" and held is not writer and covers(reader, writer) == "yes"):
        return {}, []
    narrowing = [change for change in changes if (change.narrows if refused_by == "new" else change.widens)]
    findings = {change: _explain(change, reader, held, answer) for change in narrowing}
    explanations = {change: finding for change, finding in findings.items() if finding is not None}
    if explanations:
        return explanations, []
    reason = f"the {refused_by} version rejects a payload that the other version accepts"
    if answer != "no":
        reason = f"it could not be proved that the {refused_by} version accepts every payload of the other version"
    return {}, [CompatibilityFinding(layer="json", path="$", reason=reason, undecided=answer != "no")]


def _explain(
    change: Difference, reader: SchemaDocument, writer: SchemaDocument, answer: Answer
) -> CompatibilityFinding | None:
    """Return the finding of a change; None if the values of its place are covered."""
    if not change.presence:
        reads, writes = reader.at(change.path), writer.at(change.path)
        here = covers(reader, writer, reads, writes or [True]) if reads else "yes"
        if here == "yes":
            return None
        answer = "no" if "no" in (here, answer) else "unknown"
    return CompatibilityFinding(layer="json", path=path_of(change.path), reason=change.reason, undecided=answer != "no")


def _wire(old: Schema, new: Schema, mode: Mode) -> list[CompatibilityFinding]:
    if old.form != new.form:
        return [CompatibilityFinding(layer="wire", path="$", reason=f"the form {old.form} became {new.form}")]
    if new.form != "protobuf":
        return []
    from balog.registry.comparing.wire import compare_wire

    return compare_wire(old, new, mode)


def _bump(
    old: Schema, new: Schema, before: SchemaDocument, after: SchemaDocument, findings: list[CompatibilityFinding]
) -> Bump:
    if any(finding.breaks for finding in findings):
        return "major"
    if old.source == new.source or (old.form == new.form == "json" and before.root == after.root):
        return "none"
    same = covers(before, after) == "yes" and covers(after, before) == "yes"
    if same and not any(finding.layer != "json" for finding in findings):
        return "patch"
    return "minor"


def _has(findings: list[CompatibilityFinding], finding: CompatibilityFinding) -> bool:
    return any((other.layer, other.path, other.breaks) == (finding.layer, finding.path, True) for other in findings)


def document_of(schema: Schema) -> SchemaDocument:
    """Return a version as JSON Schema; for protobuf, the schema of its JSON form.

    A schema that names its own version (``"version": {"const": "1.2.0"}``) does not differ from others by that.
    """
    where = f"{schema.type}/{schema.version}"
    if schema.form == "protobuf":
        from balog.registry.protobuf import compile_proto

        return SchemaDocument(compile_proto(schema.source, schema.message).json_schema())
    document = decode_schema(schema.source, where)
    properties = document.get("properties")
    declared = properties.get("version") if isinstance(properties, dict) else None
    if isinstance(declared, dict) and schema.version in (declared.get("const"), *declared.get("enum", [])):
        document = {**document, "properties": {**document["properties"], "version": {"type": "string"}}}
    return SchemaDocument(document)
