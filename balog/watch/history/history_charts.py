"""Charts of a backtest: the values of a series over time, their limits, and the alerts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from balog.ui.charts import Chart, draw_chart, field, number, scaled, times_axis, years
from balog.watch.history.backtest import Firing
from balog.watch.history.tracks import TrackPoint

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
    colour = {"color": scaled("alert", _COLOURS, legend=None)}
    start, end = field("from", "temporal", **x), field("to", "temporal", **x)
    above = {"value": -5}
    point = {"type": "point", "filled": True, "opacity": 1}
    return [
        {
            "data": {"values": spans},
            "mark": {"type": "rect", "opacity": 0.18},
            "encoding": {"x": start, "x2": {"field": "to"}, "y": {"value": 0}, "y2": {"value": "height"}, **colour},
        },
        {
            "data": {"values": spans},
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": start, "x2": {"field": "to"}, "y": above, **colour},
        },
        {
            "data": {"values": spans},
            "mark": {**point, "shape": "triangle-down", "size": 50},
            "encoding": {"x": start, "y": above, **colour},
        },
        {
            "data": {"values": ends},
            "mark": {"type": "tick", "orient": "vertical", "size": 9, "thickness": 1.5, "opacity": 1},
            "encoding": {"x": end, "y": above, **colour},
        },
    ]


def _limit_layers(points: Sequence[TrackPoint], x: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the band, and its limits as dotted lines; they are interrupted where a verdict has none."""
    values = [{"at": _moment(point.time), "low": point.low, "high": point.high} for point in points]
    shown = field("at", "temporal", **x)
    broken = {"invalid": "break-paths-filter-domains"}
    layers: list[dict[str, Any]] = []
    if any(point.low is not None and point.high is not None for point in points):
        both = [row | ({} if None not in row.values() else {"low": None, "high": None}) for row in values]
        layers.append(
            {
                "data": {"values": both},
                "mark": {
                    "type": "area",
                    "color": "var(--good)",
                    "opacity": 0.14,
                    "invalid": "break-paths-filter-domains",
                },
                "encoding": {"x": shown, "y": number("low"), "y2": {"field": "high"}},
            }
        )
    dots = {"strokeDash": [1, 2], "strokeWidth": 1.25, **broken}
    layers += [
        {
            "data": {"values": values},
            "mark": {"type": "line", "color": "var(--good)", **dots},
            "encoding": {"x": shown, "y": number(name)},
        }
        for name in ("low", "high")
        if any(getattr(point, name) is not None for point in points)
    ]
    return layers


def _line(points: Sequence[TrackPoint], x: dict[str, Any]) -> dict[str, Any]:
    values = [{"at": _moment(point.time), "value": point.value} for point in points if point.value is not None]
    return {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 1.25, "color": "var(--info)"},
        "encoding": {"x": field("at", "temporal", **x), "y": number("value")},
    }


def _marks(points: Sequence[TrackPoint], x: dict[str, Any], unit: str) -> dict[str, Any]:
    values = [
        {"at": _moment(point.time), "value": point.value, "signal": point.signal}
        for point in points
        if point.value is not None and (point.signal != "ok" or len(points) <= _FEW)
    ]
    largest = max(abs(point.value or 0.0) for point in points)
    axis = {"format": "~s" if largest >= 10 else "~g", "tickCount": 4, "grid": True, "domain": False, "minExtent": 34}
    return {
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 28, "opacity": 1},
        "encoding": {
            "x": field("at", "temporal", **x),
            "y": number("value", title=unit, axis=axis),
            **_signals(),
        },
    }


def _two_lines(points: Sequence[TrackPoint], x: dict[str, Any]) -> dict[str, Any]:
    values = [
        {"at": _moment(point.time), "line": "not ok" if point.signal == "bad" else "ok", "signal": point.signal}
        for point in points
    ]
    scale = {"domain": ["ok", "not ok"]}
    return {
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 28, "opacity": 1},
        "encoding": {
            "x": field("at", "temporal", **x),
            "y": field("line", title=None, scale=scale, axis={"minExtent": 34}),
            **_signals(),
        },
    }


def _signals() -> dict[str, Any]:
    return {"color": scaled("signal", _COLOURS, legend=None), "shape": scaled("signal", _SHAPES, legend=None)}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
