"""``balog watch backtest``: the alerts that monitors would have sent over the events of tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from balog.cli.shared import options
from balog.cli.shared.output import exit_if_invalid, print_table, utc
from balog.cli.shared.spark import ENGINES, SparkPlace, check_tables, spark_options, spark_packages
from balog.common.errors import ConfigError, MissingExtraError
from balog.common.text import counted
from balog.event import Event
from balog.ui.files import check_page_path, write_page
from balog.watch.config.config_check import find_monitor_problems
from balog.watch.config.durations import format_duration, parse_duration
from balog.watch.config.monitors import MonitorConfig
from balog.watch.history.backtest import Backtest, EventSelection, Firing, run_backtest, select_events, training_seconds
from balog.watch.history.tracks import Tracks
from balog.watch.source import SourceEvents, unique_events

SHOWN = 50
"""Firings in the table for people."""


class HistoryPlace(NamedTuple):
    """The stored events to read: the tables or files, how long back, to when, and the engine."""

    location: str | None
    length: str
    until: str | None
    engine: str
    spark_place: SparkPlace
    sources: tuple[Path, ...] = ()

    def times(self, end: datetime | None = None) -> tuple[datetime, datetime]:
        """Return the beginning and the end.

        Args:
            end: the end if no option names one; now if omitted.

        Raises:
            ConfigError: an option is wrong, or there are no tables.
        """
        from balog.analytics.reporting.query import moment

        try:
            back = timedelta(seconds=parse_duration(self.length))
        except ConfigError as error:
            raise ConfigError(error.reason, "--backtest") from None
        if not back:
            raise ConfigError("expected a time above 0, such as 90d", "--backtest")
        until = end
        if until is None or self.until is not None:
            until = moment(self.until or "now", datetime.now(timezone.utc), "--until")
        return until - back, until


@click.command("backtest")
@click.argument("path", metavar="MONITORS", type=click.Path(path_type=Path))
@click.option("--tables", "location", metavar="PLACE", help="The tables of `balog load`.")
@click.option(
    "--backtest", "length", default="90d", show_default=True, metavar="TIME", help="How long back firings count."
)
@click.option("--until", metavar="TIME", help="The end: a date, RFC 3339, or 24h, 7d before now. Default: now.")
@options.repeated(
    "--source",
    "sources",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file of events instead of tables. --until is the time of its last event by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
@click.option(
    "--html",
    type=options.FilePath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page with the series, their limits and the alerts; it opens offline.",
)
@options.choice("--engine", of=ENGINES, default="auto", help="auto: DuckDB for up to 5 GB in a folder, else Spark.")
@spark_options
def command(
    path: Path, location: str | None, length: str, until: str | None, sources: tuple[Path, ...], as_json: bool,
    html: Path | None, engine: str, spark_place: SparkPlace,
) -> None:  # fmt: skip
    """Show which alerts the monitors of MONITORS would have sent, when, for how long, and how many a week.

    Monitors learn from the events before that time, too, as far back as they keep a history.

    \b
    balog watch monitors.yaml --tables tables --backtest 90d
    balog watch monitors.yaml --tables tables --backtest 90d --json
    balog watch monitors.yaml --tables tables --backtest 90d --html backtest.html
    balog watch backtest monitors.yaml --source day.jsonl
    """
    file, problems = find_monitor_problems(path)
    exit_if_invalid(path, problems, 2)
    assert file is not None  # noqa: S101
    history = HistoryPlace(location, length, until, engine, spark_place, sources)
    if html is not None:
        if any(find_spec(name) is None for name in ("jinja2", "vl_convert")):
            raise MissingExtraError("balog watch --html", "embedded")
        check_page_path(html)
    result, tracks = backtest(file.monitors, history, has_tracks=html is not None)
    if html is not None and tracks is not None:
        from balog.watch.history.history_page import make_page

        write_page(html, make_page(result, tracks, location or ", ".join(map(str, sources))))
        click.echo(f"balog watch: wrote {html}", err=True)
    if as_json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    else:
        _print(result)


def backtest(
    monitors: list[MonitorConfig], history: HistoryPlace, *, has_tracks: bool
) -> tuple[Backtest, Tracks | None]:
    """Evaluate the events of tables or of files, and return the verdicts, too, if they are asked for.

    Raises:
        ConfigError: ``history`` is invalid.
    """
    if history.sources:
        return _of_files(monitors, history, has_tracks)
    if history.location is None:
        raise ConfigError("give --tables PLACE or --source FILE", "the command line")
    since, until = history.times()
    first = since - timedelta(seconds=training_seconds(monitors))
    selection = select_events(monitors)
    with stored_rows(history.location, selection, first, until, history.engine, history.spark_place) as rows:
        from balog.analytics.querying.stored_events import event_of

        return _evaluate(monitors, map(event_of, rows), since, until, has_tracks)


def _of_files(monitors: list[MonitorConfig], history: HistoryPlace, has_tracks: bool) -> tuple[Backtest, Tracks | None]:
    if history.location is not None or history.engine != "auto":
        raise ConfigError("--tables and --engine exclude --source", "the command line")
    source = SourceEvents(history.sources)
    if source.invalid_lines:
        click.echo(f"balog watch: left out {counted(source.invalid_lines, 'line')} without an event", err=True)
    last = source.events[-1].header.timestamp if source.events else datetime.now(timezone.utc)
    since, until = history.times(last + timedelta(microseconds=1))  # with the last event
    return _evaluate(monitors, unique_events(source.events), since, until, has_tracks)


def _evaluate(
    monitors: list[MonitorConfig], events: Iterable[Event], since: datetime, until: datetime, has_tracks: bool
) -> tuple[Backtest, Tracks | None]:
    tracks = Tracks(since.timestamp()) if has_tracks else None
    on_verdict = None if tracks is None else tracks.add
    return run_backtest(monitors, events, since.timestamp(), until.timestamp(), on_verdict), tracks


def _print(result: Backtest) -> None:
    head = ("monitor", "kind", "series", "alerts", "silenced", "a week", "time", "longest")
    has_weeks = result.until - result.since >= timedelta(days=1)  # less says nothing of a week
    rows = [
        (monitor.name, monitor.kind, f"{monitor.series:,}", f"{monitor.firings:,}", f"{monitor.silenced:,}",
         f"{monitor.per_week:.2f}" if has_weeks else "–",
         _span(monitor.seconds), _span(monitor.longest))
        for monitor in result.monitors
    ]  # fmt: skip
    print_table([head, *rows])
    if result.firings:
        click.echo()
        firings = [
            (utc(row.started), _sent(row), _span(row.seconds) if row.ended else "fires still", row.key, row.reason)
            for row in result.firings[:SHOWN]
        ]
        print_table([("began", "sent", "for", "series", "reason"), *firings])
    left = len(result.firings) - SHOWN
    if left > 0:
        click.echo(f"{counted(left, 'more alert')}; --json has them")
    for monitor in result.monitors:
        if monitor.note:
            click.echo(f"balog watch: {monitor.name}: {monitor.note}", err=True)
        elif monitor.learning:
            click.echo(
                f"balog watch: {monitor.name}: {monitor.learning:,} of {monitor.series:,} series were learning",
                err=True,
            )
        elif not monitor.series:
            click.echo(f"balog watch: {monitor.name}: no event belongs to it; check pipeline, stream, where", err=True)
    if result.refused:
        click.echo(f"balog watch: {result.refused:,} values of too many series were not judged", err=True)
    asked = (result.until - result.since).total_seconds()
    if result.events and result.with_events < asked * 0.9:
        covered = format_duration(result.with_events)
        click.echo(f"balog watch: there are events of {covered} only; a week is counted from these", err=True)
    total = sum(monitor.firings for monitor in result.monitors)
    click.echo(
        f"balog watch: {counted(result.events, 'event')}, {counted(total, 'alert')} from {utc(result.since)} to "
        f"{utc(result.until)}",
        err=True,
    )


def _sent(firing: Firing) -> str:
    """Return when an alert reached people."""
    if firing.sent is None:
        return "silenced"
    return "at once" if firing.sent == firing.started else utc(firing.sent)


def _span(seconds: float) -> str:
    return format_duration(seconds) if seconds else "–"


LARGEST = 5_000_000_000
"""``--engine auto`` uses DuckDB for tables of up to this many bytes, compressed as they are stored."""


@contextmanager
def stored_rows(
    location: str, selection: EventSelection, since: datetime, until: datetime, engine: str, spark_place: SparkPlace
) -> Iterator[Iterator[str]]:
    """Open the events of tables from ``since`` to before ``until``, in the order of their times, for ``event_of``.

    Args:
        selection: which events.
        engine: ``auto`` is DuckDB for tables of up to ``LARGEST`` bytes in a folder, otherwise Spark.

    Raises:
        ConfigError: there are no tables at the location, or the engine cannot read them.
        MissingExtraError: the engine's packages are not installed.
        BalogError: the engine failed.
    """
    if engine != "spark" and find_spec("duckdb") is None and (engine == "duckdb" or find_spec("pyspark") is None):
        raise MissingExtraError("balog watch --tables", "embedded")
    from balog.analytics.querying.stored_events import events_query

    check_tables(location)
    query = events_query(selection.types, since, until, errors=selection.errors)
    if not spark_place.answers(engine, location) and find_spec("duckdb") is not None:
        from balog.analytics.embedded.database import ask
        from balog.analytics.tables.local import StoredTables

        tables = StoredTables(location)
        if engine == "duckdb" or tables.size("events") <= LARGEST:
            with ask(tables, query.replace("unix_micros(", "epoch_us(")) as answer:
                yield answer.rows()
            return
        click.echo(f"balog watch: Spark reads tables of more than {LARGEST / 10**9:g} GB", err=True)
    with _spark_rows(location, query, spark_place) as rows:
        yield rows


@contextmanager
def _spark_rows(location: str, query: str, spark_place: SparkPlace) -> Iterator[Iterator[str]]:
    with spark_packages("balog watch --engine spark"):
        from balog.analytics.progress import progress
        from balog.analytics.querying.spark_statement import ask, documents
        from balog.analytics.tables import open_tables
        from balog.analytics.tables.catalogs.location import session_settings

    with (
        progress(spark_place.waiting) as display,
        spark_place.session("balog watch", session_settings(location)) as spark,
    ):
        display("Reading events")
        yield documents(ask(spark, open_tables(spark, location), query), None)
