"""A backtest as one page of HTML that opens offline: series, their limits, and the alerts.

The page has no script, makes no request, and forbids both. Jinja escapes every text.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import NamedTuple

from jinja2 import Environment

from balog.ui.charts import Chart
from balog.ui.environment import make_environment, shown_text
from balog.watch.history.backtest import Backtest, Firing
from balog.watch.history.history_charts import SIGNALS, draw_series
from balog.watch.history.tracks import Track, TrackPoint, Tracks

MAX_SERIES_DRAWN = 20
MAX_ALERTS = 500
MAX_MONITORS = 500
"""Rows of the tables; ``--json`` has all."""

_UNITS = {"duration": "seconds", "failures": "share", "quarantine": "rejected"}


class DrawnSeries(NamedTuple):
    """A series in the page."""

    key: str
    monitor: str
    kind: str
    track: Track
    points: list[TrackPoint]
    firings: list[Firing]
    chart: Chart


def make_page(result: Backtest, tracks: Tracks, source: str) -> str:
    """Return the page's HTML. Every number in a table carries its exact value in ``<data value=…>``.

    Args:
        tracks: the verdicts of the backtest.
        source: where the events are, for people.
    """
    firings: defaultdict[str, list[Firing]] = defaultdict(list)
    for firing in result.firings:
        firings[firing.key].append(firing)
    keys = {*tracks.by_key, *firings}
    ranked = sorted(keys, key=lambda key: (-len(firings[key]), -sum(alert.seconds for alert in firings[key]), key))
    kinds = {monitor.name: monitor.kind for monitor in result.monitors}
    drawn = [
        _draw(key, tracks.by_key.get(key) or Track(firings[key][0].monitor), firings[key], kinds, result)
        for key in ranked[:MAX_SERIES_DRAWN]
    ]
    monitors = sorted(result.monitors, key=lambda monitor: (-monitor.firings, -monitor.seconds, monitor.name))
    return _environment().get_template("history.html").render(
        result=result,
        source=source,
        made=datetime.now(timezone.utc),
        monitors=monitors[:MAX_MONITORS],
        most_per_week=max((monitor.per_week for monitor in monitors), default=0.0) or 1.0,
        all_alerts=sum(monitor.firings for monitor in monitors),
        alerts=result.firings[:MAX_ALERTS],
        has_weeks=result.until - result.since >= timedelta(days=1),
        drawn=drawn,
        anchors={series.key: f"series-{number}" for number, series in enumerate(drawn, 1)},
        others=sum(monitor.series for monitor in monitors) - len(drawn),
        others_alerts=sum(len(alerts) for alerts in firings.values()) - sum(len(series.firings) for series in drawn),
        signals=SIGNALS,
        moment_of=lambda seconds: datetime.fromtimestamp(seconds, timezone.utc),
    )  # fmt: skip


def _draw(key: str, track: Track, firings: list[Firing], kinds: dict[str, str], result: Backtest) -> DrawnSeries:
    points = list(track.points())
    kind = kinds[track.monitor]
    alerts = f"{len(firings):,} alert{'s' * (len(firings) != 1)}"
    words = f"Values of {shown_text(key)} over time, with their limits, and {alerts}"
    chart = draw_series(points, firings, result.since, result.until, _UNITS.get(kind, "value"), words)
    return DrawnSeries(key, track.monitor, kind, track, points, firings, chart)


@cache
def _environment() -> Environment:
    return make_environment("balog.watch.history")
