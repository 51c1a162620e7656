"""``balog schema validate``: validate files of events or payloads."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click

from balog.cli.shared import options
from balog.cli.shared.output import FirstLines, reporter
from balog.common.errors import ConfigError, EventError
from balog.registry.schema import Form

_report = reporter("balog schema")

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
            validator = make_validator(registry.bundle(schema), options.name_of(draft))
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
