"""``balog schema …``: the types of events, what they were and what they may become."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, get_args

import click
import msgspec

from balog.cli.groups import CommandGroup
from balog.cli.output import print_table, reporter
from balog.cli.registries import name_of, open_named, registry_options
from balog.cli.schema_validating import validate
from balog.errors import ConfigError, EventError
from balog.registry import IncompatibleError, Registry, Schema
from balog.registry.comparing import CompatibilityReport, Mode
from balog.registry.names import parse_file_name
from balog.registry.schema import Form

__all__ = ["command"]

_report = reporter("balog schema")


class _Commands(CommandGroup):
    """The commands that compare are imported when they are asked for."""

    _COMPARING = ("check", "diff")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._COMPARING})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._COMPARING:
            found: click.Command = getattr(importlib.import_module("balog.cli.schema_checking"), cmd_name)
            return found
        return super().get_command(ctx, cmd_name)


@click.group(
    "schema",
    cls=_Commands,
    epilog="\b\nExit codes:\n0  done, valid, compatible\n1  not\n2  wrong use, or a schema that is none",
)
def command() -> None:
    """Keep the types of events: their schemas, version by version.

    \b
    balog schema infer events.jsonl > order/1.0.0.json            a draft, to be read and mended
    balog schema register order/1.0.0.json --registry schemas     kept for ever, if it may follow
    balog schema validate events.jsonl --registry schemas         what is wrong, line by line
    balog schema list --registry schemas
    balog schema docs --registry schemas -o types.html            one page of all types
    """


command.add_command(validate)


@command.command("list", short_help="List the types and their versions.")
@registry_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_types(place: str | None, options: str | None, as_json: bool) -> None:
    """List the types, and of each its latest version, how it is written, and all of its versions."""
    with open_named(place, options) as registry:
        rows = [("TYPE", "LATEST", "FORM", "VERSIONS")]
        for type in registry.types():
            versions = registry.versions(type)
            newest = registry.get(type)
            if as_json:
                row = {"type": type, "latest": newest.version, "form": newest.form, "versions": versions}
                click.echo(msgspec.json.encode(row))
            rows.append((type, newest.version, newest.form, ", ".join(reversed(versions))))
    if not as_json:
        print_table(rows)


@command.command("show", short_help="Print a version's schema as it was registered.")
@registry_options
@click.argument("type")
@click.argument("version", required=False)
def show(place: str | None, options: str | None, type: str, version: str | None) -> None:
    """Print the schema of TYPE, of its latest version or of VERSION, as it was registered."""
    if version is None and "/" in type:
        type, _, version = type.partition("/")
    with open_named(place, options) as registry:
        source = registry.original(type, version).source
    click.echo(source, nl=not source.endswith(b"\n"))


@command.command("register", short_help="Keep a new version, if it may follow those that there are.")
@registry_options
@click.argument("file", type=click.File("rb"))
@click.option("--type", metavar="NAME", help="The type.  [default: the file's folder]")
@click.option("--version", metavar="VERSION|auto", help="Its version; auto: the least.  [default: the file's name]")
@click.option("--message", default="", metavar="NAME", help="Of a .proto file with several: the message.")
@click.option(
    "--mode",
    type=click.Choice(get_args(Mode)),
    default="backward",
    show_default=True,
    help="Who must still understand whom: backward, the new version the old events.",
)
@click.option("--dry-run", is_flag=True, help="Tell what would be done.")
def register(
    place: str | None,
    options: str | None,
    file: IO[bytes],
    type: str | None,
    version: str | None,
    message: str,
    mode: Mode,
    dry_run: bool,
) -> None:
    """Keep FILE as a version of a type, for ever.

    FILE is a JSON Schema, or a .proto file. Where it lies at TYPE/VERSION.json, neither has to be told. Within a major
    version it must be compatible in the mode and at least so much higher as the change asks for.

    \b
    balog schema register order/1.1.0.json --registry s3://config/schemas
    balog schema register order.proto --type order --version auto --registry schemas
    """
    if place is None:
        raise ConfigError("--registry: name the folder or the URL that shall keep it, or set BALOG_REGISTRY")
    with open_named(place, options) as registry:
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


@command.command("infer", short_help="Draft a schema from samples, or from a Singer SCHEMA message.")
@click.argument("files", type=click.File("rb"), nargs=-1, required=True)
@click.option("--type", metavar="NAME", help="The type, or stream, where the samples are of several.")
@click.option("--limit", type=click.IntRange(min=1), default=100_000, show_default=True, help="So many at most.")
def infer(files: Sequence[IO[bytes]], type: str | None, limit: int) -> None:
    """Draft the schema of a type from FILES: events or payloads, lines or arrays, or Singer messages.

    A person reads the draft before it is registered: it knows what came, not what may come.
    """
    from balog.registry.inference import from_singer, is_singer_schema
    from balog.registry.samples import read_samples

    drafts = _Drafts(type)
    singer: dict[str, Any] = {}
    looked = 0
    for file in files:
        place = ""
        try:
            for sample in islice(read_samples(file), limit - looked):
                looked, place = looked + 1, f"{sample.place}: " if sample.place else ""
                if sample.problem is not None:
                    raise sample.problem
                if is_singer_schema(sample.payload):
                    stream, draft = from_singer(sample.payload)
                    singer[stream] = draft
                elif not singer:
                    drafts.add(sample.payload)
        except EventError as error:
            raise ConfigError(f"{place}{error}", name_of(file)) from None
    found = singer if singer else drafts.schemas()
    name = type if type is not None else next(iter(found), None)
    if name is None or name not in found or (type is None and len(found) > 1):
        there = ", ".join(sorted(found)[:10]) or "none that says its cls_type"
        raise ConfigError(f"--type: say which one to draft; there are {there}")
    click.echo(msgspec.json.format(msgspec.json.encode(found[name]), indent=2))


@command.command("docs", short_help="Write one HTML page of all types.")
@registry_options
@click.option("-o", "--output", type=click.Path(dir_okay=False), default="-", help="The file.  [default: stdout]")
@click.option("--title", default="Types of events", show_default=True, help="The page's title.")
def docs(place: str | None, options: str | None, output: str, title: str) -> None:
    """Write one self-contained HTML page of all types: fields, constraints, examples, versions and what changed."""
    from balog.registry.page import render

    with open_named(place, options) as registry:
        page = render(registry, title)
    if output == "-":
        click.echo(page, nl=False)
    else:
        Path(output).write_text(page, encoding="utf-8")
        _report(f"{output} is written")


class _Drafts:
    """Samples sorted by their type; those without one are of the type that was asked for."""

    def __init__(self, type: str | None) -> None:
        self._type = type
        self._found: dict[str, Any] = {}

    def add(self, payload: bytes) -> None:
        from balog.registry.inference import Inference

        said = msgspec.json.decode(payload).get("cls_type")
        name = said if isinstance(said, str) else self._type
        if name is None or (self._type is not None and name != self._type):
            return
        if name not in self._found:
            self._found[name] = Inference()
        self._found[name].add(payload)

    def schemas(self) -> dict[str, Any]:
        return {name: inference.schema(name) for name, inference in self._found.items()}


def _from_file(file: IO[bytes], type: str | None, version: str | None, message: str) -> Schema:
    path = Path(os.path.abspath(name_of(file)))
    said = parse_file_name(path.name)
    form: Form = "protobuf" if path.suffix == ".proto" else "json"
    if version is None:
        if said is None:
            raise ConfigError(f"--version: say which; the file's name {path.name!r} is none such as 1.0.0.json")
        version, message = said.version, message or said.message
    if type is None:
        if said is None:
            raise ConfigError("--type: say which; only a file at TYPE/VERSION.json says it by itself")
        type = path.parent.name
    return Schema(type, version, form, file.read(), message)


def _with_least_version(registry: Registry, schema: Schema, mode: Mode) -> Schema:
    """Give the schema with the least version that it may have; one that is there already as it is there."""
    from balog.registry.comparing import compare_history, least_version

    registry.check(msgspec.structs.replace(schema, version="1.0.0"))
    there = registry.versions(schema.type) if schema.type in registry.types() else []
    if not there:
        return msgspec.structs.replace(schema, version="1.0.0")
    history = [registry.get(schema.type, version) for version in there]
    new = registry.bundle(msgspec.structs.replace(schema, version=""))
    verdict = compare_history(history, new, mode)
    if verdict.bump == "none":
        return history[-1]
    return msgspec.structs.replace(schema, version=least_version(history, verdict))


def _judge(registry: Registry, schema: Schema, mode: Mode) -> CompatibilityReport:
    registry.check(schema)
    return msgspec.structs.replace(registry.check_compatibility(schema, mode), defects=registry.defects(schema))


def _explain(verdict: CompatibilityReport) -> None:
    for defect in verdict.defects:
        _report(f"defect: {defect}")
    for found in verdict.findings:
        word = "undecided" if found.undecided else "breaks" if found.breaks else "fine"
        _report(f"{found.layer} {word}: {found.path}: {found.reason}" + (f" ({found.ddl})" if found.ddl else ""))
        if found.example is not None:
            _report(f"  such as {msgspec.json.encode(found.example).decode()}")
