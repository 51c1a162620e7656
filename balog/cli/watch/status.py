"""``balog watch status``: which alerts are active now, and which silences."""

from __future__ import annotations

from datetime import datetime, timezone

import click

from balog.cli.shared import options
from balog.cli.shared.output import escaped, print_table, reporter, utc
from balog.common.text import counted
from balog.watch.state.active_state import active_series, active_silences, read_state

_report = reporter("balog watch status")


@click.command("status", epilog="\b\nExit codes:\n0  read\n1  the state is damaged or out of reach\n2  wrong use")
@click.option("--state", "store", metavar="FILE|URL", default="watch.sqlite", show_default=True, help="The watcher's.")
@options.group("Consumer group of watchers that share a state in Redis.", "watch")
def command(store: str, group: str) -> None:
    """List the series that are not well and the silences, as the watcher has stored them. It may run meanwhile.

    \b
    balog watch status --state watch.sqlite
    balog watch status --state redis://localhost:6379/0
    """
    state = read_state(store, group)
    series, silences = active_series(state), active_silences(state)
    if series:
        rows = [
            (row.shown or "", row.severity, _time(row.since), escaped(row.key), escaped(row.reason)) for row in series
        ]
        print_table([("state", "severity", "since", "series", "reason"), *rows])
    if silences:
        print_table([("silence", "until"), *((escaped(match), _time(until)) for match, until in silences)])
    clock = f"; the clock is at {_time(state.clock)}" if state.clock else ""
    _report(f"{len(series)} of {len(state.series)} series not well, {counted(len(silences), 'silence')}{clock}")


def _time(seconds: float) -> str:
    return utc(datetime.fromtimestamp(seconds, timezone.utc))
