"""``balog tap``: make new taps, and verify that any tap follows Singer's practices."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from balog.cli.shared import options
from balog.common.errors import ConfigError
from balog.common.signals import SignalHandlers
from balog.common.text import counted
from balog.tap.verify import Options, VerifyReport

if TYPE_CHECKING:
    from balog.tap.verify.baseline import Baseline, BaselineComparison

FORMATS = ("text", "github", "sarif")


@click.group(cls=options.CommandGroup)
def command() -> None:
    """Make new taps; verify that a tap follows Singer's practices."""


@command.command()
@click.argument("name")
@click.option("--openapi", metavar="FILE|URL", help="OpenAPI document of the source, version 3, JSON or YAML.")
@click.option("--into", type=options.FilePath(file_okay=False, path_type=Path), default=".", metavar="FOLDER",
              help="Folder for the new project's folder; the current one by default.")  # fmt: skip
def new(name: str, openapi: str | None, into: Path) -> None:
    """Make the project of a new tap: package, tests, CI, README.

    NAME is the tap's name, such as tap-petstore, and that of the folder. With a document, the project has a
    stream for each list, and the sign-in. Nothing is overwritten.
    """
    from balog.tap.projects import describe, example, project_files, project_name, write_project

    project_name(name)
    api = describe(openapi) if openapi else example("your source")
    for line in api.skipped:
        click.echo(f"balog tap: {line}", err=True)
    if not api.streams:
        reason = "no GET of it returns a list that could be a stream"
        raise ConfigError(f"{reason}; without the document you get a project with a sample stream", str(openapi))
    folder = into / name
    write_project(folder, project_files(name, api))
    click.echo(f"{folder}: {counted(len(api.streams), 'stream')}")


@command.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=300, show_default=True,
              help="Maximum seconds for one run of the tap.")  # fmt: skip
@options.integer("--jobs", least=0, default=0, help="Runs at a time; 0 means one more than there are cores.")
@options.integer("--records", default=100_000, help="Maximum records of one run; the run is ended there.")
@options.repeated("--rules", metavar="RULE", help="Check only this rule or group of rules.")
@options.repeated("--skip", metavar="RULE", help="Skip this rule or group of rules.")
@click.option("--json", "json_file", type=options.FilePath(dir_okay=False, allow_dash=True, path_type=Path),
              metavar="FILE", help="Also write the report as JSON; - is stdout, without the text report.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True,
              help="Form on stdout: text, annotations of GitHub Actions, SARIF 2.1.0.")  # fmt: skip
@click.option("--baseline", type=options.FilePath(dir_okay=False, path_type=Path), metavar="FILE",
              help="Known findings: only findings that the file does not have fail.")  # fmt: skip
@click.option("--write-baseline", type=options.FilePath(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the findings as a baseline, and end with 0.")  # fmt: skip
@click.option(
    "--fail-under", type=click.IntRange(0, 100), default=0, metavar="SCORE", help="Exit with 1 below this score."
)
@click.argument("tap", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND …")
def verify(
    tap: tuple[str, ...], json_file: Path | None, form: str, baseline: Path | None, write_baseline: Path | None,
    fail_under: int, **given: Any,
) -> None:  # fmt: skip
    """Run a tap as a pipeline would, and report its errors.

    The command runs the tap about 20 times; each run reads from its source. Give the tap as you run it by hand:
    `balog tap verify -- tap-foo --config config.json`. With --catalog it syncs the selected streams, with --state it
    starts from that state.

    Exit codes: 0 no rule of severity error is broken (with --baseline: no finding is new) and the score is high enough,
    1 otherwise, 2 wrong use.
    """
    from balog.tap.verify import verify as run_verification
    from balog.tap.verify.baseline import baseline_of, compare, read_baseline

    for option, file in (("--json", json_file), ("--write-baseline", write_baseline)):
        if file is not None and not file.absolute().parent.is_dir():
            raise ConfigError("there is no such folder", f"{option} {file}")
    if str(json_file) == "-" and form != "text":
        raise ConfigError("both are for stdout; write the JSON to a file", f"--json - --format {form}")
    known = read_baseline(baseline) if baseline is not None else None
    # SIGHUP would end this process at once, and leave the tap and the temporary files.
    with SignalHandlers({signal.SIGHUP: lambda number, frame: sys.exit(128 + number)}):
        report = run_verification(
            tap, Options(**given), on_run=lambda name: click.echo(f"balog tap: {name} …", err=True)
        )
    comparison = compare(report.findings, report.failed, known) if known is not None else None
    if str(json_file) == "-":
        click.echo(report.encode(), nl=False)
    else:
        if json_file is not None:
            json_file.write_bytes(report.encode())
        _print_report(report, form, known, comparison)
    if write_baseline is not None:
        write_baseline.write_bytes(baseline_of(report.tap, report.failed).encode())
        sys.exit(0)
    is_good = report.is_clean if comparison is None else not comparison.new
    sys.exit(0 if is_good and report.score >= fail_under else 1)


def _print_report(
    report: VerifyReport, form: str, known: Baseline | None, comparison: BaselineComparison | None
) -> None:
    from balog.tap.verify import report_formats
    from balog.tap.verify.report import as_text

    prints = {finding.fingerprint for finding in known.findings} if known is not None else set()
    if form == "github":
        for line in report_formats.as_github(report, prints):
            click.echo(line)
    elif form == "text":
        plain = bool(os.environ.get("NO_COLOR"))
        for line, colour in as_text(report, comparison):
            click.echo(click.style(line, fg=colour) if colour and not plain else line)
    else:
        click.echo(report_formats.as_sarif(report, prints), nl=False)


@command.command()
def rules() -> None:
    """List the rules of `verify`: group, severity, weight, id and title."""
    from balog.tap.verify.verification import select_rules

    for check in select_rules(Options()):
        rule = check.rule
        title = rule.title.replace("``", "")
        click.echo(f"{rule.group:<13} {rule.severity:<8} {rule.weight:>2}  {rule.id}: {title}")
