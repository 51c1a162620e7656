"""``balog check``: find every error in a config before it runs."""

from __future__ import annotations

import sys
from collections.abc import Sized
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import msgspec

from balog.broker.config import BrokerConfig, RunConfig
from balog.broker.config_check import find_problems, notes, reach
from balog.cli.shared import options
from balog.cli.shared.brokers import SINGLE_SINKS, config_of
from balog.cli.shared.output import exit_if_invalid
from balog.common import config as configs
from balog.common.errors import ConfigError, ConfigProblems
from balog.common.redaction import Redactor, SecretFinding, from_config
from balog.common.text import counted, nearest
from balog.singer.batch.dialects import BatchError
from balog.topics.archives import read_lines

_MAIN_KINDS = ("broker", "run", "forward", "cases", "logger", "serve", "document", "monitors")
KINDS = (*_MAIN_KINDS, *(f"broker-{name}" for name in SINGLE_SINKS))


@click.command("check")
@options.choice("--for", "kind", of=KINDS, default="broker", help="The command or part that reads the config.")
@click.option("--connect", is_flag=True, help="Also connect to each sink; nothing is delivered.")
@click.option("--redaction", is_flag=True, help="Show what redaction would replace in a file of events or lines.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the config instead, for an editor.")
@click.option("--rules", type=options.FilePath(path_type=Path), help="With --redaction: a logger's config.")
@click.argument("path", metavar="CONFIG", type=options.FilePath(path_type=Path), required=False)
def command(path: Path | None, kind: str, connect: bool, redaction: bool, schema: bool, rules: Path | None) -> None:
    """Find every error in a config: each with its line, column and path, and what to do.

    CONFIG is JSON or YAML (.yaml, .yml).

    --for names who reads the config: `balog config push` (document), `balog serve` (serve), `balog test` (cases),
    `balog.configure` (logger), `balog watch` (monitors), or the command of that name. A file with `monitors` at the top
    needs no --for.

    With --redaction, CONFIG is a file of events or other lines instead. The command prints the line, path and rule of
    each secret, never its value.

    Exit codes: 0 the config is valid, 1 a sink cannot be reached (--connect), 2 the config is invalid.
    """
    if schema:
        click.echo(_schema(kind), nl=False)
        return
    if path is None:
        raise click.UsageError("Missing argument 'CONFIG'.")
    if redaction:
        _explain_file(path, rules)
        return
    try:
        _check(path, kind, connect=connect)
    except ConfigError as error:
        if error.source.startswith(f"{path}:"):  # its syntax, with line and column
            exit_if_invalid(path, error.problems if isinstance(error, ConfigProblems) else [error], 2)
        raise


def _check(path: Path, kind: str, *, connect: bool) -> None:
    if kind == "document":
        _check_document(path)
        return
    if kind == "monitors" or (kind == "broker" and _has_monitors(path)):
        _check_monitors(path)
        return
    if kind in ("cases", "logger", "serve"):
        exit_if_invalid(path, _problems(path, kind), 2)
        click.echo(f"{path}: ok")
        return
    config, problems = find_problems(path, _type(kind))
    exit_if_invalid(path, problems, 2)
    sinks = config.sinks if hasattr(config, "sinks") else [config]
    for note in notes(config) if kind != "forward" else ():  # the topic of a forwarder is its spool
        click.echo(f"{path}: note: {note}", err=True)
    click.echo(f"{path}: ok, {counted(len(sinks), 'sink')}")
    failed = False
    for result in reach(sinks) if connect else ():
        click.echo(f"{result.name}: {result.error or result.note or 'is there'}")
        failed = failed or bool(result.error)
    sys.exit(1 if failed else 0)


def _schema(kind: str) -> str:
    """Return the JSON Schema of a config, for editors."""
    name = {"forward": "broker", "serve": "service"}.get(kind, kind)
    return (files("balog.schemas") / "config" / f"{name}.json").read_text(encoding="utf-8")


def _problems(path: Path, kind: str) -> list[ConfigError]:
    if kind == "cases":
        from balog.broker.cases import find_case_problems

        return find_case_problems(path)
    if kind == "logger":
        from balog.log.config.config_check import find_logger_problems

        return find_logger_problems(path)
    from balog.service.validation import find_service_problems

    return find_service_problems(path)[1]


def _check_document(path: Path) -> None:
    """Check a control document; the secrets that it names need not exist here."""
    from balog.service.control.validation import read_document

    plain, problems = configs.read(path, variables=False)
    document, more = read_document(msgspec.json.encode(plain), str(path))
    exit_if_invalid(path, [*problems, *more], 2)
    assert document is not None  # noqa: S101
    parts: dict[str, Sized] = {
        "stream": document.streams,
        "filter": document.filters,
        "table": document.tables,
        "callback": document.callbacks,
    }
    counts = [counted(len(entries), kind) for kind, entries in parts.items()]
    click.echo(f"{path}: ok, {', '.join(counts)}")


def _has_monitors(path: Path) -> bool:
    document = configs.read(path)[0]
    if not isinstance(document, dict) or "sinks" in document:
        return False
    return any(nearest(str(name), ["monitors"], 0.8) for name in document)


def _check_monitors(path: Path) -> None:
    from balog.watch.config.config_check import find_monitor_problems, find_narrow_windows

    file, problems = find_monitor_problems(path)
    exit_if_invalid(path, problems, 2)
    assert file is not None  # noqa: S101
    for note in find_narrow_windows(file.monitors):
        click.echo(f"{path}: note: {note}", err=True)
    click.echo(f"{path}: ok, {counted(len(file.monitors), 'monitor')}")


def _type(kind: str) -> Any:
    if kind == "run":
        return RunConfig
    return BrokerConfig if kind in ("broker", "forward") else config_of(kind.removeprefix("broker-"))


def _explain_file(path: Path, rules: Path | None) -> None:
    """Print each secret in a file of JSON lines or text: its line, its path and its rule, never its value.

    A file in gzip or zstd is decompressed.

    Args:
        rules: a config file of the logger whose ``redact`` is used; without one the built-in rules.

    Raises:
        ConfigError: the file cannot be read, or the rules are wrong.
    """
    redactor = _redactor(rules)
    secrets = lines = 0
    try:
        with path.open("rb") as file:
            for line in read_lines(file):
                lines = line.number
                for finding in _explain_line(redactor, line.data):
                    secrets += 1
                    click.echo(f"{path}:{lines}: {redactor.redact_text(finding.path)}: {finding.rule}")
    except BatchError:
        raise ConfigError(f"is damaged or cut off after line {lines}", str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", str(path)) from None
    click.echo(f"{path}: {counted(secrets, 'secret')} in {counted(lines, 'line')} would be replaced")


def _explain_line(redactor: Redactor, line: bytes) -> list[SecretFinding]:
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        value = line.decode("utf-8", "replace").rstrip("\r\n")
    return redactor.explain(value)


def _redactor(rules: Path | None) -> Redactor:
    declared: Any = True
    if rules is not None:
        config = configs.load(rules, dict[str, Any])
        if "redact" not in config:
            raise ConfigError('has no "redact"; give the config of a logger', str(rules))
        declared = config["redact"]
    try:
        return from_config(declared) or Redactor()
    except ConfigError as error:
        raise ConfigError(error.reason, str(rules), f"$.redact{(error.path or '$')[1:]}") from None
