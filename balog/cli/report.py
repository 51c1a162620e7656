"""``balog report``: what ran, what failed, what slowed down, since when, on stdout and as a page of HTML."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from balog.cli.shared import options
from balog.cli.shared.output import reporter
from balog.cli.shared.spark import ENGINES, SparkPlace, spark_options
from balog.common.errors import ConfigError, MissingExtraError
from balog.ui.files import check_page_path, write_page

if TYPE_CHECKING:
    from balog.analytics.reading.tasks import SourceFile
    from balog.analytics.reporting.links import LinkTemplate
    from balog.analytics.reporting.model import Report
    from balog.analytics.reporting.query import ReportQuery

_PACKAGES = ("datasketches", "duckdb", "jinja2", "pyarrow", "rich", "vl_convert")


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--since", default="", metavar="TIME", help="Only events from this time on: 2026-11-20, 2026-11-20T07:00Z, 24h, 7d."
)
@click.option("--until", default="", metavar="TIME", help="Only events before this time.")
@click.option(
    "--compare",
    default="",
    metavar="LENGTH",
    help="Compare with the time this much earlier (7d: a week ago), or none; directly before by default.",
)
@click.option(
    "--where", default="", metavar="EXPR", help="Only events that match the expression, as in a sink's where."
)
@click.option(
    "--html",
    type=options.FilePath(dir_okay=False, path_type=Path),
    default=Path("balog-report.html"),
    show_default=True,
    metavar="FILE",
    help="Where to write the page; it opens offline.",
)
@click.option("--no-html", is_flag=True, help="Write no page.")
@click.option(
    "--run",
    "run_id",
    metavar="ID",
    help="Print this run instead: timeline, streams, errors; no page is written.",
)
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="[LABEL=]URL",
    help="Link runs, failures or streams to logs and dashboards: 'https://…/{run_id}'; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as one JSON document instead of tables.")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="auto",
    show_default=True,
    help="duckdb needs no Java; auto chooses it where it can, for up to 5 GB.",
)
@spark_options
def command(
    sources: tuple[str, ...], since: str, until: str, compare: str, where: str, html: Path, no_html: bool,
    run_id: str | None, links: tuple[str, ...], as_json: bool, engine: str, spark_place: SparkPlace,
) -> None:  # fmt: skip
    """Report what ran, what failed, what slowed down, and since when, with DuckDB or Spark.

    SOURCE is a file of events, a folder such as an archive, a glob, a URL, a topic, or - for stdin; several are
    combined. Or it is the location of tables from `balog load`, whose rollups make the report fast. Invalid lines
    never stop the report.

    \b
    balog report archive
    python program.py 2>&1 | balog report -
    balog report tables --since 24h              the last day against the day before
    balog report tables --since 24h --compare 7d   against the same day a week ago
    balog report tables --run 01JD2…             one run: timeline, streams, errors
    balog report archive --link 'logs=https://logs.example/?q={run_id}&from={since_ms}&to={until_ms}'
    balog report archive --where "context.environment = 'production'"
    """
    _need_packages(engine)
    from balog.analytics.progress import progress
    from balog.analytics.reading.inputs import absolute
    from balog.analytics.reporting.links import parse_link
    from balog.analytics.reporting.query import parse_query
    from balog.analytics.reporting.report import empty_report, make_local_report
    from balog.analytics.tables.catalogs.location import are_tables, session_settings

    query = parse_query(since, until, compare, where)._replace(run=run_id)
    sources = _with_stdin(sources)
    templates = [parse_link(link) for link in links]
    page = None if no_html or run_id is not None else html
    if page is not None:
        check_page_path(page)
    of_tables = are_tables(sources)
    paths = list(sources) if of_tables else [absolute(source) for source in sources]
    is_local = not spark_place.answers(engine)
    listed, topics = ([], 0) if of_tables else _list_inputs(paths, query, engine)
    files = None if of_tables else len(listed)
    report = None
    if is_local and of_tables:
        report = make_local_report(paths[0], query)
        if engine == "duckdb" and report is None:
            raise ConfigError("duckdb reads tables with rollups, without --where; give spark", "--engine")
    elif is_local:
        is_local = _is_for_duckdb(engine, topics, listed)
    of_spark = report is None and (files != 0 or topics > 0) and (not is_local or of_tables)
    first = spark_place.waiting if of_spark else "Reading files" if report is None else "Drawing the page"
    with progress(first, reporter("balog report"), is_slow=of_spark) as display:
        if report is not None:
            pass
        elif files == 0 and not topics:
            report = empty_report(paths, query)
        elif not of_spark:
            from balog.analytics.reporting.report import make_raw_report

            display(f"Reading {files:,} files")
            report = make_raw_report(paths, query, listed)
        else:
            _need_packages("spark")
            from balog.analytics.reporting.spark_report import make_report

            with spark_place.session("balog report", session_settings(sources[0])) as spark:
                display("Reading tables" if of_tables else f"Reading {files:,} files" if files else "Reading topics")
                with display.watching(spark):
                    report = make_report(spark, paths, query, files)
        if page is not None:
            display("Drawing the page")
            save_page(report, page, templates)
    if run_id is not None:
        _print_run(report, run_id, templates, as_json=as_json)
        return
    _print(report, page, as_json=as_json, missing=", ".join(sources) if files == 0 and not topics else "")


def _with_stdin(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sources with a temporary file in place of ``-``, which has what stdin had up to its end."""
    if "-" not in sources:
        return sources
    folder = click.get_current_context().with_resource(TemporaryDirectory(prefix="balog-"))
    path = Path(folder) / "stdin"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        raise ConfigError(
            f"cannot be stored in {folder}: {error.strerror}; write it to a file first", "stdin"
        ) from None
    return tuple(str(path) if source == "-" else source for source in sources)


def _need_packages(engine: str) -> None:
    """Check that the packages of an engine are installed; ``auto`` starts with those of DuckDB.

    Raises:
        MissingExtraError: they are not.
    """
    on_spark = engine == "spark"
    if any(find_spec(name) is None for name in (*_PACKAGES, *(("pyspark", "pandas") if on_spark else ()))):
        raise MissingExtraError("balog report", "spark" if on_spark else "embedded")


def _print(report: Report, page: Path | None, *, as_json: bool, missing: str) -> None:
    """Print the report, and where its page is; ``missing`` are the sources if they hold no file."""
    from balog.analytics.reporting.model import encode
    from balog.analytics.reporting.terminal import print_tables

    if as_json:
        sys.stdout.write(encode(report) + "\n")
    else:
        print_tables(report)
    if not report.events:
        why = f": no file of events below {missing}" if missing else ""
        click.echo(f"balog report: no events found{why}", err=True)
    if page is not None:
        click.echo(f"balog report: wrote {page}", err=True)


def _print_run(report: Report, run_id: str, links: Sequence[LinkTemplate], *, as_json: bool) -> None:
    from balog.analytics.reporting.model import encode
    from balog.analytics.reporting.terminal import find_run, print_run

    single = find_run(report, run_id, links)
    if as_json:
        sys.stdout.write(encode(single) + "\n")
    else:
        print_run(single)


def _list_inputs(paths: list[str], query: ReportQuery, engine: str) -> tuple[list[SourceFile], int]:
    """Return the files that are to be read, and how many topics.

    Raises:
        ConfigError: DuckDB is to read topics.
        TopicError: a topic is missing, or its server can't be reached.
    """
    from balog.analytics.reading.inputs import read_inputs
    from balog.analytics.reading.topics import bounds
    from balog.analytics.reporting.report import wanted_files

    inputs = read_inputs({"paths": json.dumps(paths)})
    if inputs.topics and engine == "duckdb":
        raise ConfigError("topics are read by Spark; give spark", "--engine")
    for topic in inputs.topics:
        bounds(topic)  # a missing one need not wait for Spark
    return wanted_files(inputs, query), len(inputs.topics)


def _is_for_duckdb(engine: str, topics: int, files: list[SourceFile]) -> bool:
    """Return whether DuckDB reads the files; it reads no topics."""
    from balog.analytics.reporting.report import MOST_LOCAL
    from balog.analytics.rollups.raw_files import size_of

    if engine == "auto" and not topics and size_of(files) > MOST_LOCAL:
        click.echo("balog report: Spark reads files of more than 5 GB; --engine duckdb reads them here", err=True)
        return False
    return not topics


def save_page(report: Report, path: Path, links: Sequence[LinkTemplate] = ()) -> None:
    """Write the report's page; ``links`` are templates of links to other systems."""
    from balog.analytics.reporting.page import make_page

    write_page(path, make_page(report, links))
