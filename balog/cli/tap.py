"""``balog tap``: verify that any tap follows Singer's practices."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from balog.cli import options
from balog.errors import ConfigError
from balog.verify import Options


@click.group(cls=options.CommandGroup)
def command() -> None:
    """Verify that a tap follows Singer's practices."""


@command.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=300, show_default=True,
              help="Maximum seconds for one run of the tap.")  # fmt: skip
@options.integer("--jobs", least=0, default=0, help="Runs at a time; 0 means one more than there are cores.")
@options.integer("--records", default=100_000, help="Maximum records of one run; the run is ended there.")
@options.integer("--states", least=0, default=3, help="Number of emitted states to resume from.")
@options.repeated("--stream", "streams", metavar="NAME", help="Verify only this stream.")
@options.repeated("--rules", metavar="RULE", help="Check only this rule or group of rules.")
@options.repeated("--skip", metavar="RULE", help="Skip this rule or group of rules.")
@options.pairs("--ordered", metavar="STREAM=KEY", help="Property by which the records of a stream ascend.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), metavar="FILE",
              help="Also write the report as JSON; - is stdout, without the text report.")  # fmt: skip
@click.option(
    "--fail-under", type=click.IntRange(0, 100), default=0, metavar="SCORE", help="Exit with 1 below this score."
)
@click.argument("tap", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND …")
def verify(tap: tuple[str, ...], json_file: Path | None, fail_under: int, **given: Any) -> None:
    """Run a tap as a pipeline would, and report its errors.

    The command runs the tap about 20 times; each run reads from its source. Give the tap as you run it by hand:
    `balog tap verify -- tap-foo --config config.json`. With --catalog it syncs the selected streams, with --state it
    starts from that state.

    Exit codes: 0 no rule of severity error is broken and the score is high enough, 1 otherwise, 2 wrong use.
    """
    from balog.verify import verify as run_verification

    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise ConfigError("there is no such folder", f"--json {json_file}")
    with _ended_by_hangup():
        report = run_verification(
            tap, Options(**given), on_run=lambda name: click.echo(f"balog tap: {name} …", err=True)
        )
    if str(json_file) == "-":
        click.echo(report.encode(), nl=False)
    else:
        from balog.verify.report import as_text

        if json_file is not None:
            json_file.write_bytes(report.encode())
        plain = bool(os.environ.get("NO_COLOR"))
        for line, colour in as_text(report):
            click.echo(click.style(line, fg=colour) if colour and not plain else line)
    sys.exit(0 if report.is_clean and report.score >= fail_under else 1)


@contextmanager
def _ended_by_hangup() -> Iterator[None]:
    """End the tap and remove its temporary files on SIGHUP, too, which would end this process at once."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGHUP, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@command.command()
def rules() -> None:
    """List the rules of `verify`: group, severity, weight, id and title."""
    from balog.verify.verification import select_rules

    for check in select_rules(Options()):
        rule = check.rule
        title = rule.title.replace("``", "")
        click.echo(f"{rule.group:<13} {rule.severity:<8} {rule.weight:>2}  {rule.id}: {title}")
