"""``balog schema check`` and ``validate``: compare the versions of a type, and validate files of events or payloads."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, get_args

import click

from balog.cli.shared import options
from balog.cli.shared.output import FirstLines, print_table, reporter
from balog.common.errors import ConfigError, EventError
from balog.registry import Registry, Schema
from balog.registry.comparing import CompatibilityReport, Mode, compare_in_child, least_version
from balog.registry.comparing.comparison import document_of
from balog.registry.names import order, parse_file_name
from balog.registry.schema import Form, InvalidSchemaError

_report = reporter("balog schema")

mode_option = options.choice(
    "--mode",
    of=get_args(Mode),
    default="backward",
    help="Compatibility: backward means that the new version accepts old events.",
)


@click.command(
    "check",
    short_help="Check that a version is compatible with older ones.",
    epilog="\b\nExit codes:\n0  compatible\n1  incompatible, or version too low\n2  wrong use",
)
@options.registry
@click.argument("schemas", nargs=-1, required=True, metavar="[OLD] NEW")
@click.option("--type", metavar="NAME", help="Type of NEW.  [default: the name of its folder]")
@options.proto_message
@mode_option
def check(
    registry_place: options.RegistryPlace, schemas: Sequence[str], type: str | None, message: str, mode: Mode
) -> None:
    """Check whether NEW is compatible with OLD, or with all versions in the registry.

    OLD and NEW are files (JSON Schema or .proto), or TYPE/VERSION of a registry. The check covers JSON and protobuf's
    wire format. Each breaking change has its path and the rule. A change that cannot be decided within 10 seconds of
    processor time, or at all, counts as incompatible.

    \b
    balog schema check order/1.0.0.json order/1.1.0.json
    balog schema check order/1.1.0.json --registry schemas --mode full_transitive
    balog schema check order/1.0.0 draft.json --registry schemas
    """
    if len(schemas) > 2:
        raise ConfigError("give NEW, or OLD and NEW")
    with registry_place.open() as registry:
        new = _schema(schemas[-1], registry, type, message)
        is_pair = len(schemas) == 2
        if is_pair:
            history = [_schema(schemas[0], registry, new.type, message)]
        else:
            history = _history(registry, new, registry_place.place)
    names = list(schemas) if is_pair else [f"{schema.type}/{schema.version}" for schema in history] + [schemas[-1]]
    for name, schema in zip(names, (*history, new)):
        try:
            document_of(schema)
        except InvalidSchemaError as error:
            raise InvalidSchemaError(error.reason, name, error.path) from None
    verdict = compare_in_child(history, new, mode, is_pair=is_pair)
    least = least_version(history, verdict) if all(schema.version for schema in history) else None
    too_small = bool(least and new.version) and order(new.version) < order(least)
    _print(verdict)
    _summarize(new, verdict, mode, least, too_small)
    if not verdict.compatible or too_small:
        sys.exit(1)


def _schema(name_or_path: str, registry: Registry, type: str | None, message: str) -> Schema:
    """Read a file, or get TYPE/VERSION of a registry."""
    path = Path(os.path.abspath(name_or_path))
    if not path.is_file():
        name, slash, version = name_or_path.partition("/")
        if path.suffix in (".json", ".proto") or name_or_path.count("/") > 1:
            raise ConfigError("no such file", name_or_path)
        return registry.get(name, version if slash else None)
    return schema_of(path, path.read_bytes(), type, None, message)


def schema_of(path: Path, data: bytes, type: str | None, version: str | None, message: str) -> Schema:
    """Return the schema in a file; its path TYPE/VERSION.json names what is not given, else it is ""."""
    if (parsed := parse_file_name(path.name)) is not None:
        type, version, message = type or path.parent.name, version or parsed.version, message or parsed.message
    return Schema(type or "", version or "", "protobuf" if path.suffix == ".proto" else "json", data, message)


def _history(registry: Registry, new: Schema, location: str | None) -> list[Schema]:
    if not new.type:
        raise ConfigError("--type: name the type; only the path TYPE/VERSION.json names it")
    if location is None and new.type not in registry.types():
        raise ConfigError("--registry: name the registry of its older versions, or give OLD, too")
    versions = registry.versions(new.type)
    below = [version for version in versions if not new.version or order(version) < order(new.version)]
    return [registry.get(new.type, version) for version in below]


def _print(verdict: CompatibilityReport) -> None:
    rows = [("LAYER", "", "PATH", "WHAT")]
    for finding in verdict.findings:
        word = "undecided" if finding.undecided else "breaks" if finding.breaks else "fine"
        rows.append((finding.layer, word, finding.path, finding.reason))
    if len(rows) > 1:
        print_table(rows)


def _summarize(new: Schema, verdict: CompatibilityReport, mode: Mode, least: str | None, too_small: bool) -> None:
    step = f"; the least version is {least}" if least else f"; the least step is {verdict.bump}"
    small = f", and {new.version} is too small a step" if too_small else ""
    _report(f"{'compatible' if verdict.compatible else 'not compatible'} ({mode}){step}{small}")


_MAX_REPORTED = 1000


@click.command("validate", short_help="Validate events or payloads; print each error.")
@options.registry
@click.argument("files", type=click.File("rb"), nargs=-1, required=True)
@click.option("--type", metavar="NAME",
              help="Type of payloads without cls_type. Payloads with a cls_type must have this one.")  # fmt: skip
@click.option("--version", metavar="VERSION",
              help="Version to validate with.  [default: the version of each event, else the latest]")  # fmt: skip
@click.option("--schema", "draft", type=click.File("rb"), help="Validate with this file, which need not be registered.")
@click.option("--message", default="", metavar="NAME", help="Message of the payloads, for a .proto file with several.")
def validate(
    registry_place: options.RegistryPlace, files: Sequence[IO[bytes]], type: str | None, version: str | None,
    draft: IO[bytes] | None, message: str,
) -> None:  # fmt: skip
    """Validate the events or payloads in FILES (- is stdin).

    A file holds JSON lines, an array, or one object; gzip and zstd are decompressed. Each error is a line on stdout:
    file, line, path and reason, without values of the payload. Exits with 1 if there is an error.

    \b
    balog schema validate events.jsonl.gz --registry schemas
    tail -n 1000 payloads.jsonl | balog schema validate --type order --version 1.1.0 --registry schemas -
    balog schema validate --schema draft.json events.jsonl
    """
    from balog.cli.shared.samples import read_samples
    from balog.registry import Schema, make_validator
    from balog.registry.payload_check import PayloadCheck

    show = FirstLines(click.echo, _MAX_REPORTED)
    count = bad = 0
    with registry_place.open() as registry:
        validator = None
        if draft is not None:
            form: Form = "protobuf" if Path(options.name_of(draft)).suffix == ".proto" else "json"
            schema = Schema(type or "", version or "", form, draft.read(), message)
            validator = make_validator(schema, options.name_of(draft))
        if validator is None and type is not None:
            registry.get(type, version)  # reports a wrong name once instead of for each line
        elif version is not None and type is None:
            raise ConfigError("--version needs --type")
        check = validator or PayloadCheck(registry, type, version)
        for file in files:
            name = options.name_of(file)
            try:
                for sample in read_samples(file):
                    count += 1
                    if sample.problem is not None:
                        errors = [(sample.problem.path, sample.problem.reason)]
                    else:
                        prefix = sample.prefix
                        errors = [(prefix + path[1:], reason) for path, reason in check.check(sample.payload)]
                    bad += bool(errors)
                    for path, reason in errors:
                        show(_line(name, sample.place, path, reason))
            except EventError as error:
                bad += 1
                click.echo(_line(name, "", error.path, error.reason))
    if show.hidden:
        _report(f"{show.hidden} more errors are not shown")
    _report(f"{count} read, {count - min(bad, count)} valid, {bad} not" if bad else f"{count} read, all valid")
    if bad:
        sys.exit(1)


def _line(file: str, position: str, path: str, reason: str) -> str:
    return ": ".join(part for part in (file, position, path, reason) if part)
