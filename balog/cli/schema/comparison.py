"""``balog schema check``: compare the versions of a type."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click

from balog.cli.shared import options
from balog.cli.shared.output import print_table, reporter
from balog.common.errors import ConfigError
from balog.registry import Registry, Schema
from balog.registry.comparing import CompatibilityReport, Mode, compare_in_child, least_version
from balog.registry.comparing.comparison import document_of
from balog.registry.names import order, parse_file_name
from balog.registry.schema import InvalidSchemaError

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
    return registry.bundle(schema_of(path, path.read_bytes(), type, None, message))


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
