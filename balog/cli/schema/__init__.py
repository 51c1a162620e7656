"""``balog schema``: infer, register, validate and compare the types of events."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click
import msgspec

from balog.cli.schema.comparison import check, mode_option, schema_of, validate
from balog.cli.shared import options
from balog.cli.shared.output import print_table, reporter
from balog.common.errors import ConfigError, EventError
from balog.registry import IncompatibleError, Registry, Schema
from balog.registry.comparing import CompatibilityReport, Mode

_report = reporter("balog schema")


@click.group(
    "schema",
    cls=options.CommandGroup,
    epilog="\b\nExit codes:\n0  done, valid, compatible\n1  invalid or incompatible\n2  wrong use or an invalid schema",
)
def command() -> None:
    """Manage the types of events: their schemas, version by version.

    \b
    balog schema infer events.jsonl > order/1.0.0.json            draft a schema; then edit it
    balog schema register order/1.0.0.json --registry schemas     add a compatible version, forever
    balog schema validate events.jsonl --registry schemas         find errors, line by line
    balog schema list --registry schemas
    """


for _command in (check, validate):
    command.add_command(_command)


@command.command("list", short_help="List the types and their versions.")
@options.registry
def list_types(registry_place: options.RegistryPlace) -> None:
    """List the types: the latest version of each, its form (json or protobuf), and all versions."""
    with registry_place.open() as registry:
        rows = [("TYPE", "LATEST", "FORM", "VERSIONS")]
        for type in registry.types():
            versions = registry.versions(type)
            newest = registry.get(type)
            rows.append((type, newest.version, newest.form, ", ".join(reversed(versions))))
    print_table(rows)


@command.command("show", short_help="Print the schema of a version.")
@options.registry
@click.argument("type")
@click.argument("version", required=False)
def show(registry_place: options.RegistryPlace, type: str, version: str | None) -> None:
    """Print the schema of VERSION of TYPE (default: the latest), as it was registered."""
    if version is None and "/" in type:
        type, _, version = type.partition("/")
    with registry_place.open() as registry:
        source = registry.get(type, version).source
    click.echo(source, nl=not source.endswith(b"\n"))


@command.command("register", short_help="Register a new version, if it is compatible.")
@options.registry
@click.argument("file", type=click.File("rb"))
@click.option("--type", metavar="NAME", help="Type.  [default: the name of the file's folder]")
@click.option(
    "--version", metavar="VERSION|auto", help="Version; auto: the lowest that is allowed.  [default: the file's name]"
)
@options.proto_message
@mode_option
@click.option("--dry-run", is_flag=True, help="Print what would be done; register nothing.")
def register(
    registry_place: options.RegistryPlace, file: IO[bytes], type: str | None, version: str | None, message: str,
    mode: Mode, dry_run: bool,
) -> None:  # fmt: skip
    """Register FILE as a version of a type. A registered version never changes.

    FILE is a JSON Schema or a .proto file. Its path TYPE/VERSION.json names type and version. Within a major version,
    it must be compatible in the mode, and its version must be high enough for the change.

    \b
    balog schema register order/1.1.0.json --registry s3://config/schemas
    balog schema register order.proto --type order --version auto --registry schemas
    """
    if registry_place.place is None:
        raise ConfigError("--registry: name the folder or URL of the registry, or set BALOG_REGISTRY")
    with registry_place.open(may_be_new=True) as registry:
        schema = _from_file(file, type, version, message)
        if schema.version == "auto":
            schema = _with_least_version(registry, schema, mode)
        try:
            verdict = _judge(registry, schema, mode) if dry_run else registry.register(schema, mode)
        except IncompatibleError as error:
            _report(str(error))
            _explain(error.verdict)
            sys.exit(1)
    _explain(verdict)
    _report(f"{schema.type} {schema.version} {'could be' if dry_run else 'is'} registered")
    click.echo(f"{schema.type}/{schema.version}")


@command.command("infer", short_help="Draft a schema from samples.")
@click.argument("files", type=click.File("rb"), nargs=-1, required=True)
@click.option("--type", metavar="NAME", help="Type to draft, if the samples have several.")
def infer(files: Sequence[IO[bytes]], type: str | None) -> None:
    """Draft the schema of a type from FILES: events or payloads, as lines or arrays.

    Edit the draft before you register it: it describes the samples, not all events that may come.
    """
    from balog.cli.shared.samples import read_samples
    from balog.registry.inference import Inference

    drafts: dict[str, Inference] = {}
    for file in files:
        prefix = ""
        try:
            for sample in read_samples(file):
                prefix = f"{sample.place}: " if sample.place else ""
                if sample.problem is not None:
                    raise sample.problem
                cls_type = msgspec.json.decode(sample.payload).get("cls_type")
                name = cls_type if isinstance(cls_type, str) else type
                if name is not None and type in (None, name):
                    drafts.setdefault(name, Inference()).add(sample.payload)
        except EventError as error:
            raise ConfigError(f"{prefix}{error}", options.name_of(file)) from None
    if len(drafts) != 1:
        there = ", ".join(sorted(drafts)[:10]) or "none with a cls_type"
        raise ConfigError(f"--type: name the type to draft; the samples have {there}")
    ((name, inference),) = drafts.items()
    click.echo(msgspec.json.format(msgspec.json.encode(inference.schema(name)), indent=2))


def _from_file(file: IO[bytes], type: str | None, version: str | None, message: str) -> Schema:
    path = Path(os.path.abspath(options.name_of(file)))
    schema = schema_of(path, file.read(), type, version, message)
    if not schema.version:
        raise ConfigError(f"--version: name the version; the file name {path.name!r} has none, as 1.0.0.json has")
    if not schema.type:
        raise ConfigError("--type: name the type; only the path TYPE/VERSION.json names it")
    return schema


def _with_least_version(registry: Registry, schema: Schema, mode: Mode) -> Schema:
    """Return the schema with the lowest allowed version, or the registered version if it is unchanged."""
    from balog.registry.comparing import compare_history, least_version

    registry.check(msgspec.structs.replace(schema, version="1.0.0"))
    versions = registry.versions(schema.type) if schema.type in registry.types() else []
    if not versions:
        return msgspec.structs.replace(schema, version="1.0.0")
    history = [registry.get(schema.type, version) for version in versions]
    verdict = compare_history(history, msgspec.structs.replace(schema, version=""), mode)
    if verdict.bump == "none":
        return history[-1]
    return msgspec.structs.replace(schema, version=least_version(history, verdict))


def _judge(registry: Registry, schema: Schema, mode: Mode) -> CompatibilityReport:
    registry.check(schema)
    return registry.check_compatibility(schema, mode)


def _explain(verdict: CompatibilityReport) -> None:
    for finding in verdict.findings:
        word = "undecided" if finding.undecided else "breaks" if finding.breaks else "fine"
        _report(f"{finding.layer} {word}: {finding.path}: {finding.reason}")
