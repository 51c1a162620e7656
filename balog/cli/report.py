"""``balog report``: tables on stdout and one page of HTML, out of an archive of events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from balog.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from balog.analytics.reporting.report import Report

__all__ = ["command"]


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("balog-report.html"),
    show_default=True,
    metavar="FILE",
    help="Where to write the page; it opens offline.",
)
@click.option("--no-html", is_flag=True, help="Write no page.")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as one JSON document in place of the tables.")
def command(paths: tuple[str, ...], html: Path, no_html: bool, as_json: bool) -> None:
    """Count the events below PATH with Spark.

    PATH is a file of events (.jsonl, .jsonl.gz, .jsonl.zst), a folder of them, such as an archive, or a glob; several
    are read as one. Told are events and errors by channel and level, sums and percentiles by metric, what became of
    each run, and how many lines were not events. Bad lines never stop the report.
    """
    try:
        import rich  # noqa: F401

        from balog.analytics import session
        from balog.analytics.reading.files import find
        from balog.analytics.reporting.printing import print_tables, progress
        from balog.analytics.reporting.report import empty_report, encode, make_report
    except ImportError:
        raise MissingExtraError("balog report", "spark") from None
    absolute = [path if path.startswith("file:") else str(Path(path).absolute()) for path in paths]
    files = find(absolute)
    page = None if no_html else html
    if page is not None and not page.absolute().parent.is_dir():
        raise ConfigError("its folder does not exist; make it, or give another --html", str(page))
    with progress("Starting Spark") as say:
        if files:
            spark = session("balog report")
            try:
                say(f"Reading {len(files)} files")
                report = make_report(spark, absolute)
            finally:
                spark.stop()
        else:
            report = empty_report(absolute)
        if page is not None:
            say("Drawing the page")
            write_page(report, page)
    if as_json:
        sys.stdout.write(encode(report) + "\n")
    else:
        print_tables(report)
    if not report.events:
        why = "" if files else f": no .jsonl or .jsonl.gz file below {', '.join(paths)}"
        click.echo(f"balog report: there is no event{why}", err=True)
    if page is not None:
        click.echo(f"balog report: wrote {page}", err=True)


def write_page(report: Report, path: Path) -> None:
    """Write the report's page; a failed disk leaves no half of it."""
    from balog.analytics.reporting.page import make_page

    text = make_page(report)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ConfigError(f"cannot be written: {error.strerror}; give another --html", str(path)) from None
