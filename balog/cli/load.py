"""``balog load``: load events from any source into tables, each once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

import click

from balog.cli.shared.output import reporter
from balog.cli.shared.spark import SparkPlace, check_tables, spark_options, spark_packages
from balog.common.errors import ConfigError
from balog.common.signals import StopSignals
from balog.common.text import counted

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from balog.analytics.progress import ProgressDisplay
    from balog.analytics.tables.loader import LoadOptions, LoadSummary
    from balog.analytics.tables.parquet import ParquetStore


@click.command()
@click.argument("sources", metavar="[SOURCE]...", nargs=-1)
@click.option("--tables", "location", metavar="PLACE", help="The tables' location: a folder, or hive:…, delta:….")
@click.option(
    "--document", metavar="FILE", help="Load a table of an event service's document: its sources, its location."
)
@click.option("--table", metavar="NAME", help="The name of the table, with --document.")
@click.option("--topics", "url", metavar="URL", help="The backend of the table's topics, with --document.")
@click.option("--follow", is_flag=True, help="Keep loading new events until SIGTERM or Ctrl-C.")
@click.option("--plan", is_flag=True, help="Show what would be read, changed and removed; write nothing.")
@click.option("--compact", is_flag=True, help="Afterwards, rewrite the small files of each day as few large ones.")
@click.option("--keep", metavar="LENGTH", help="Afterwards, remove whole days that are older: 90d, 12w.")
@spark_options
def command(
    sources: tuple[str, ...], location: str | None, document: str | None, table: str | None, url: str | None,
    follow: bool, plan: bool, compact: bool, keep: str | None, spark_place: SparkPlace,
) -> None:  # fmt: skip
    """Load the events of each SOURCE into the tables of PLACE, each event once.

    SOURCE is a file, folder, glob, URL of a store, or topic, as for `balog report`. Files that were loaded before are
    skipped; duplicate events, in one source or in several, are loaded once. The tables are events, quarantine, one for
    each payload type, and the rollups. They are created, and get new columns, automatically.

    \b
    balog load s3://dumps/events --tables tables           load new files
    balog load s3://dumps/events --tables tables --plan    preview what would be read, and which columns would change
    balog load --tables tables --compact --keep 90d        maintenance, for a nightly job
    balog load --document document.json --table history --topics local:topics --follow
    """
    if document is not None:
        sources, location = _from_document(document, table, url, sources, location)
    elif table is not None or url is not None:
        raise ConfigError("selects a table of a document; give --document FILE", "--table" if table else "--topics")
    if location is None:
        raise ConfigError("give --tables PLACE", "the command line")
    with spark_packages("balog load"):
        import balog.analytics.tables.loader  # noqa: F401
        from balog.analytics.progress import progress
        from balog.analytics.reading.streaming.planner import check_streaming
        from balog.analytics.sessions import cause
        from balog.analytics.tables import open_store
        from balog.analytics.tables.catalogs.location import check_location, session_settings
    if not sources and not compact and keep is None:
        raise ConfigError("nothing to do; give a SOURCE, --compact or --keep", "the command line")
    if follow and (plan or not sources):
        raise ConfigError("needs a SOURCE, and no --plan", "--follow")
    if sources:
        check_location(location)
    else:
        check_tables(location)
    if follow and spark_place.remote is None:  # a server has a Spark of its own
        check_streaming()
    job = _read_job(sources, follow, compact, keep)
    with progress(spark_place.waiting, None if follow else reporter("balog load"), is_slow=True) as display:
        settings = session_settings(location)

        def explain(error: PySparkException) -> str:
            return f"Spark: {cause(error):.300}; what was committed is safe, run it again"

        with spark_place.session("balog load", settings, explain) as spark:
            store = open_store(spark, location)
            if plan:
                if job.paths:
                    _plan(spark, store, job, display)
                if job.oldest is not None:
                    _print_lines("would remove", store.expire(job.oldest, dry_run=True), job.oldest, display)
                return
            with store.writing(), display.watching(spark):
                _load(spark, store, job, display)
                _maintain(store, job, display)


@dataclass(frozen=True)
class _Job:
    """What the command line asks for; ``oldest`` is the first day to keep."""

    paths: list[str]
    options: LoadOptions
    follow: bool
    compact: bool
    oldest: date | None


def _read_job(sources: tuple[str, ...], follow: bool, compact: bool, keep: str | None) -> _Job:
    """Read the options, and list the files: a path that can't be read fails before Spark starts."""
    from balog.analytics.reading.inputs import absolute, read_inputs
    from balog.analytics.reporting.query import length
    from balog.analytics.tables.loader import LoadOptions

    oldest = (datetime.now(timezone.utc) - length(keep, "--keep")).date() if keep is not None else None
    options = LoadOptions()
    paths = [absolute(source) for source in sources]
    if paths:
        files = read_inputs({**options.reader, "paths": json.dumps(paths)}).files()
        if not follow:
            options = replace(options, found=tuple(files))
    return _Job(paths, options, follow, compact, oldest)


def _load(spark: SparkSession, store: ParquetStore, job: _Job, display: ProgressDisplay) -> None:
    from balog.analytics.tables.follower import follow
    from balog.analytics.tables.loader import load

    if job.follow:
        with StopSignals() as stop:
            summary = follow(
                spark, store, job.paths, job.options, lambda: stop.number is not None, display, compact=job.compact
            )
            _print_summary(summary, display)
    elif job.paths:
        _print_summary(load(spark, store, job.paths, job.options, display), display)


def _maintain(store: ParquetStore, job: _Job, display: ProgressDisplay) -> None:
    if job.oldest is not None:
        display("Removing old days")
        _print_lines("removed", store.expire(job.oldest), job.oldest, display)
    if job.compact:
        display("Compacting")
        _print_lines("compacted", store.compact(), None, display)


def _from_document(
    path: str, name: str | None, url: str | None, sources: tuple[str, ...], location: str | None
) -> tuple[tuple[str, ...], str]:
    """Return the sources and the location of a table of an event service's document."""
    from balog.cli.shared.engines import existing_topics
    from balog.common import config as configs
    from balog.service.document import ControlDocument, LoadedTable

    if sources or location is not None:
        raise ConfigError("the document has the sources and the location; leave SOURCE and --tables out", "--document")
    if url is None:
        raise ConfigError("its sources are topics; give their backend, --topics URL", "--document")
    tables = {
        table.name: table
        for table in configs.load(path, ControlDocument, variables=False).tables
        if isinstance(table, LoadedTable)
    }
    if name is None or name not in tables:
        wrong = "give --table NAME" if name is None else f"no table {name!r:.110} that is loaded"
        raise ConfigError(f"{wrong}; there are {', '.join(tables) or 'none'}", path, "$.tables")
    return tuple(existing_topics("balog load", tables[name].sources, url)), tables[name].to


def _plan(spark: SparkSession, store: ParquetStore, job: _Job, display: ProgressDisplay) -> None:
    from balog.analytics.tables.loader import preview

    with display.watching(spark):
        planned = preview(spark, store, job.paths, job.options, display)
    display.stop()
    files = counted(planned.files, "file", shown=f"{planned.files:,}")
    batches = "1 batch" if planned.batches == 1 else f"{planned.batches:,} batches"
    click.echo(f"would read {files}, {planned.bytes / 1e6:,.1f} MB, in {batches}")
    click.echo(f"with {planned.events:,} events, some of which may be there already, and {planned.bad:,} bad lines")
    if planned.known:
        click.echo(f"loaded before and not changed since: {planned.known:,} files")
    for line in planned.lines or ["no table would change its columns"]:
        click.echo(line)


def _print_summary(summary: LoadSummary, display: ProgressDisplay) -> None:
    display.stop()
    tables = sorted((name, rows) for name, rows in summary.rows.items() if rows)
    width = max((len(name) for name, _ in tables), default=0)
    for name, rows in tables:
        click.echo(f"{name:{width}}  {rows:>14,} rows")
    for line in summary.lines:
        click.echo(line)
    notes = [
        (summary.duplicates, "event", "were", "loaded before or duplicated"),
        (summary.too_old, "event", "are", "older than what is kept, and left out"),
        (summary.rows["quarantine"], "line", "are", "invalid; see the table quarantine"),
        (summary.known, "file", "were", "loaded before and not changed since"),
    ]
    for count, noun, verb, words in notes:
        if count:
            click.echo(f"{counted(count, noun, verb, f'{count:,}')} {words}")
    events = summary.rows["events"]
    rate = f", {events / summary.seconds:,.0f} events/s" if events > summary.seconds > 0 else ""
    click.echo(f"{counted(summary.files, 'file', shown=f'{summary.files:,}')} read in {summary.seconds:,.1f} s{rate}")


def _print_lines(action: str, lines: list[str], oldest: date | None, display: ProgressDisplay) -> None:
    display.stop()
    reason = "no day has several small files" if oldest is None else f"no day is before {oldest}"
    for line in lines or [f"nothing: {reason}"]:
        click.echo(f"{action} {line}")
