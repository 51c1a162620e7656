"""``balog tap``: verify that any tap follows Singer's practices."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from balog.cli.groups import CommandGroup
from balog.cli.settings import as_pairs
from balog.errors import ConfigError
from balog.verify import Options

__all__ = ["command"]


@click.group(cls=CommandGroup)
def command() -> None:
    """Verify that a tap follows Singer's practices."""


@command.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=300, show_default=True,
              help="Maximum seconds of one run.")  # fmt: skip
@click.option("--records", type=click.IntRange(min=1), default=100_000, show_default=True,
              help="Maximum records of one run; the run is ended there.")  # fmt: skip
@click.option("--states", type=click.IntRange(min=0), default=3, show_default=True,
              help="Number of emitted states to resume from.")  # fmt: skip
@click.option("--stream", "streams", multiple=True, metavar="NAME", help="Only this stream. Repeatable.")
@click.option("--rules", multiple=True, metavar="RULE", help="Only this rule, or group of rules. Repeatable.")
@click.option("--skip", multiple=True, metavar="RULE", help="Skip this rule, or group of rules. Repeatable.")
@click.option("--ordered", multiple=True, metavar="STREAM=KEY", callback=as_pairs,
              help="Records of this stream are in ascending order of this property. Repeatable.")  # fmt: skip
@click.option("--json", "json_file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), metavar="FILE",
              help="Also write the report as JSON; - means stdout, with nothing else there.")  # fmt: skip
@click.option("--fail-under", type=click.IntRange(0, 100), default=0, metavar="SCORE", help="Fail below this score.")
@click.argument("tap", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND …")
def verify(
    timeout: float,
    records: int,
    states: int,
    streams: tuple[str, ...],
    rules: tuple[str, ...],
    skip: tuple[str, ...],
    ordered: dict[str, str],
    json_file: Path | None,
    fail_under: int,
    tap: tuple[str, ...],
) -> None:
    """Run a tap as a pipeline would, and report violations.

    Runs the tap some 20 times and judges it against Singer's practices. Write the tap's command after --:
    `balog tap verify -- tap-foo --config config.json`. With --catalog, the tap syncs the catalog's selection. With
    --state, the first sync starts there. Each run queries the source.

    Exits with 0 if no rule of severity error is broken and the score is high enough, else 1; with 2 for wrong use.
    """
    from balog.verify import verify as verified

    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise ConfigError("there is no such folder", f"--json {json_file}")
    options = Options(
        timeout=timeout,
        records=records,
        states=states,
        streams=streams,
        rules=rules,
        skip=skip,
        ordered=ordered,
    )
    with _ended_by_hangup():
        report = verified(tap, options, on_run=lambda name: click.echo(f"balog tap: {name} …", err=True))
    if str(json_file) == "-":
        click.echo(report.encode(), nl=False)
    else:
        from balog.verify.text import as_text

        if json_file is not None:
            json_file.write_bytes(report.encode())
        plain = bool(os.environ.get("NO_COLOR"))
        for line, colour in as_text(report):
            click.echo(click.style(line, fg=colour) if colour and not plain else line)
    sys.exit(0 if report.is_clean and report.score >= fail_under else 1)


@contextmanager
def _ended_by_hangup() -> Iterator[None]:
    """End the tap and remove its files on SIGHUP, which would otherwise end this process at once."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGHUP, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@command.command()
def rules() -> None:
    """List the rules of tap verify.

    Each line has the group, severity, weight, id and title of a rule.
    """
    from balog.verify.verification import select_rules

    for check in select_rules(Options()):
        rule = check.rule
        title = rule.title.replace("``", "")
        click.echo(f"{rule.group:<10} {rule.severity:<8} {rule.weight:>2}  {rule.id}: {title}")
