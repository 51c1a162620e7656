"""``balog watch suggest``: monitors for the pipelines of tables, with the alerts to expect."""

from __future__ import annotations

import sys
from itertools import islice

import click

from balog.cli.shared.output import reporter
from balog.cli.shared.spark import SparkPlace
from balog.cli.watch.backtest import HistoryPlace, stored_rows
from balog.common.errors import BalogError
from balog.common.text import counted
from balog.watch.history.backtest import EventSelection
from balog.watch.history.suggest import MAX_EVENTS, TYPES, suggest, write_monitors

_report = reporter("balog watch suggest")


@click.command("suggest")
@click.option("--tables", "location", required=True, metavar="PLACE", help="The tables of `balog load`.")
@click.option(
    "--backtest", "length", default="90d", show_default=True, metavar="TIME", help="How long back to look at events."
)
@click.option(
    "--per-week",
    type=click.FloatRange(min=0),
    default=0.5,
    show_default=True,
    help="The alerts a week that each monitor may send.",
)
def command(location: str, length: str, per_week: float) -> None:
    """Print a file of monitors for the pipelines of tables, with the alerts a week to expect of each.

    For each monitor, limits of several widths are tested on the history. The tightest ones that keep to --per-week are
    chosen.

    \b
    balog watch suggest --tables tables > monitors.yaml
    balog check monitors.yaml
    """
    spark_place = SparkPlace(None, None)
    since, end = HistoryPlace(location, length, None, "auto", spark_place).times()
    selection = EventSelection(TYPES, errors=True)
    with stored_rows(location, selection, since, end, "auto", spark_place) as rows:
        from balog.analytics.querying.stored_events import event_of

        events = list(map(event_of, islice(rows, MAX_EVENTS + 1)))
    if len(events) > MAX_EVENTS:
        raise BalogError(f"there are more than {MAX_EVENTS:,} events; give a shorter --backtest")
    times = since.timestamp(), end.timestamp()
    monitors = suggest(events, *times, per_week)
    sys.stdout.write(write_monitors(monitors, *times))
    _report(f"{counted(len(monitors), 'monitor')} from {counted(len(events), 'event')}")
