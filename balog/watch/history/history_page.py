"""A backtest as one page of HTML that opens offline: series over time, their limits, and the alerts.

The page has no script, makes no request, and forbids both. Jinja escapes every text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment

from balog.ui.charts import Chart, draw_chart, field, layer, number, scaled, times_axis, years
from balog.ui.environment import make_environment, shown_text
from balog.watch.history.backtest import Backtest, Firing
from balog.watch.history.tracks import Track, TrackPoint, Tracks

SIGNALS = {"ok": "within limits", "bad": "not normal", "learning": "learning", "no_data": "no data"}
"""What the page writes for the signals of verdicts."""

_ALERTS = {"alert": "var(--error)", "silenced": "var(--muted)"}
_COLOURS = {
    "ok": "var(--info)",
    "bad": "var(--error)",
    "learning": "var(--none)",
    "no_data": "var(--warning)",
    **_ALERTS,  # the layers of a chart have one scale
}
_SHAPES = {"ok": "circle", "bad": "cross", "learning": "triangle-up", "no_data": "square"}
_SIGNALS = {"color": scaled("signal", _COLOURS, legend=None), "shape": scaled("signal", _SHAPES, legend=None)}
_MARK = {"type": "point", "filled": True, "size": 28, "opacity": 1}
_FEW = 120
"""Values up to which each has a mark; of more, the line shows the normal ones."""


def draw_series(
    points: Sequence[TrackPoint], firings: Sequence[Firing], since: datetime, until: datetime, unit: str, words: str
) -> Chart:
    """Draw one series. Verdicts without a number are on two lines, the normal ones above.

    Args:
        points: in the order of time.
        firings: the alerts of the series.
        since, until: the time that the chart shows.
        unit: the title of the axis of values.
        words: the text alternative.
    """
    x = {
        "scale": {"type": "utc", "domain": [since.isoformat(), until.isoformat()]},
        "title": years(since, until),
        "axis": {"grid": False, **times_axis(since, until)},
    }
    has_numbers = any(point.value is not None for point in points)
    layers = [*_alert_layers(firings, until, x), *(_limit_layers(points, x) if has_numbers else [])]
    layers.append(_marks(points, x, unit) if has_numbers else _two_lines(points, x))
    if has_numbers:
        layers.insert(-1, _line(points, x))
    return draw_chart({"height": 150 if has_numbers else 56, "layer": layers}, words)


def _alert_layers(firings: Sequence[Firing], until: datetime, x: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alerts: their times shaded, and a bar above from a triangle at the begin to a stroke at the end."""
    spans = [
        {
            "from": firing.started.isoformat(),
            "to": (firing.ended or until).isoformat(),
            "alert": "silenced" if firing.sent is None else "alert",
        }
        for firing in firings
    ]
    ends = [span for span, firing in zip(spans, firings) if firing.ended is not None]
    start, end = field("from", "temporal", **x), field("to", "temporal", **x)
    color, above = scaled("alert", _COLOURS, legend=None), {"value": -5}
    span = {"x": start, "x2": {"field": "to"}, "color": color}
    shaded = {**span, "y": {"value": 0}, "y2": {"value": "height"}}
    point = {"type": "point", "filled": True, "opacity": 1, "shape": "triangle-down", "size": 50}
    tick = {"type": "tick", "orient": "vertical", "size": 9, "thickness": 1.5, "opacity": 1}
    return [
        layer(spans, {"type": "rect", "opacity": 0.18}, **shaded),
        layer(spans, {"type": "rule", "strokeWidth": 2}, **span, y=above),
        layer(spans, point, x=start, y=above, color=color),
        layer(ends, tick, x=end, y=above, color=color),
    ]


def _limit_layers(points: Sequence[TrackPoint], x: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the band, and its limits as dotted lines; they are interrupted where a verdict has none."""
    values = [{"at": _moment(point.time), "low": point.low, "high": point.high} for point in points]
    shown = field("at", "temporal", **x)
    drawn = {"color": "var(--good)", "invalid": "break-paths-filter-domains"}
    layers: list[dict[str, Any]] = []
    if any(point.low is not None and point.high is not None for point in points):
        both = [row | ({} if None not in row.values() else {"low": None, "high": None}) for row in values]
        area = {"type": "area", "opacity": 0.14, **drawn}
        layers.append(layer(both, area, x=shown, y=number("low"), y2={"field": "high"}))
    dotted = {"type": "line", "strokeDash": [1, 2], "strokeWidth": 1.25, **drawn}
    bounded = [name for name in ("low", "high") if any(getattr(point, name) is not None for point in points)]
    return layers + [layer(values, dotted, x=shown, y=number(name)) for name in bounded]


def _line(points: Sequence[TrackPoint], x: dict[str, Any]) -> dict[str, Any]:
    values = [{"at": _moment(point.time), "value": point.value} for point in points if point.value is not None]
    line = {"type": "line", "strokeWidth": 1.25, "color": "var(--info)"}
    return layer(values, line, x=field("at", "temporal", **x), y=number("value"))


def _marks(points: Sequence[TrackPoint], x: dict[str, Any], unit: str) -> dict[str, Any]:
    values = [
        {"at": _moment(point.time), "value": point.value, "signal": point.signal}
        for point in points
        if point.value is not None and (point.signal != "ok" or len(points) <= _FEW)
    ]
    largest = max(abs(point.value or 0.0) for point in points)
    axis = {"format": "~s" if largest >= 10 else "~g", "tickCount": 4, "grid": True, "domain": False, "minExtent": 34}
    return layer(values, _MARK, x=field("at", "temporal", **x), y=number("value", title=unit, axis=axis), **_SIGNALS)


def _two_lines(points: Sequence[TrackPoint], x: dict[str, Any]) -> dict[str, Any]:
    values = [
        {"at": _moment(point.time), "line": "not ok" if point.signal == "bad" else "ok", "signal": point.signal}
        for point in points
    ]
    y = field("line", title=None, scale={"domain": ["ok", "not ok"]}, axis={"minExtent": 34})
    return layer(values, _MARK, x=field("at", "temporal", **x), y=y, **_SIGNALS)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


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
