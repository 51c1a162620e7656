"""``balog watch suggest``: monitors for the pipelines of tables, with the alerts to expect."""

from __future__ import annotations

import sys
from itertools import islice

import click

from balog.cli import options
from balog.cli.output import reporter
from balog.cli.spark import SparkPlace, spark_options
from balog.cli.watch_backtest import HistoryPlace
from balog.cli.watch_tables import ENGINES, stored_events
from balog.counts import counted
from balog.errors import BalogError
from balog.watch.backtest import EventSelection
from balog.watch.suggest import MAX_EVENTS, TYPES, suggest, write_monitors

_report = reporter("balog watch suggest")


@click.command("suggest")
@click.option("--tables", "location", metavar="PLACE", help="The tables of `balog load`.")
@click.option(
    "--backtest", "length", default="90d", show_default=True, metavar="TIME", help="How long back to look at events."
)
@click.option("--until", metavar="TIME", help="The end: a date, RFC 3339, or 24h, 7d before now. Default: now.")
@click.option(
    "--per-week",
    type=click.FloatRange(min=0),
    default=0.5,
    show_default=True,
    help="The alerts a week that each monitor may send.",
)
@options.choice("--engine", of=ENGINES, default="auto", help="auto: DuckDB for up to 5 GB in a folder, else Spark.")
@spark_options
def command(
    location: str | None, length: str, until: str | None, per_week: float, engine: str, spark_place: SparkPlace
) -> None:
    """Print a file of monitors for the pipelines of tables, with the alerts a week to expect of each.

    For each monitor, limits of several widths are tested on the history. The tightest ones that keep to --per-week are
    chosen.

    \b
    balog watch suggest --tables tables > monitors.yaml
    balog check monitors.yaml
    """
    place = HistoryPlace(location, length, until, engine, spark_place)
    since, end = place.times()
    selection = EventSelection(TYPES, errors=True)
    with stored_events(place.tables(), selection, since, end, engine, spark_place) as rows:
        events = list(islice(rows, MAX_EVENTS + 1))
    if len(events) > MAX_EVENTS:
        raise BalogError(f"there are more than {MAX_EVENTS:,} events; give a shorter --backtest")
    times = since.timestamp(), end.timestamp()
    found = suggest(events, *times, per_week)
    sys.stdout.write(write_monitors(found, *times))
    _report(f"{counted(len(found), 'monitor')} from {counted(len(events), 'event')}")
