"""The report's charts, as Vega-Lite specifications."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from balog.analytics.reporting.model import Report
from balog.analytics.reporting.query import later
from balog.ui.charts import Chart, draw_chart, field, layer, number, present, scaled, times_axis, years
from balog.ui.formats import printable

_LEVELS = {level: f"var(--{level.lower()})" for level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "none")}
_OUTCOMES = {"succeeded": "var(--info)", "failed": "var(--error)", "unknown": "var(--warning)"}
_SHAPES = {"succeeded": "circle", "failed": "cross", "unknown": "triangle-up"}
_SHARES = {"p50": ("var(--info)", "circle"), "p95": ("var(--warning)", "diamond"), "p99": ("var(--error)", "square")}
_MOST_CHANNELS = 15
_MOST_TIMERS = 15
_MOST_RUNS = 1000
_SECONDS: dict[str, Any] = {
    "scale": {"type": "log", "nice": True},
    "axis": {"format": "~g", "tickCount": 3, "labelOverlap": "greedy"},
}
_ROW = 24


def draw(report: Report) -> dict[str, Chart]:
    """Draw the charts for which the report has data: ``channels``, ``throughput``, ``timers``, ``runs``."""
    drawings = {"channels": _channels, "throughput": _throughput, "timers": _timers, "runs": _runs}
    charts = {name: drawing(report) for name, drawing in drawings.items()}
    return {name: chart for name, chart in charts.items() if chart is not None}


def _channels(report: Report) -> Chart | None:
    totals: dict[str, int] = {}
    for row in report.channels:
        totals[row.channel or ""] = totals.get(row.channel or "", 0) + row.events
    largest = sorted(totals, key=lambda name: (-totals[name], name))[:_MOST_CHANNELS]
    if not largest:
        return None
    values = [
        {"channel": printable(row.channel), "level": level, "events": row.events, "order": list(_LEVELS).index(level)}
        for row in report.channels
        if (row.channel or "") in set(largest)
        for level in [row.level if row.level is not None and row.level in _LEVELS else "none"]
    ]
    names = [printable(name) for name in largest]
    bars = layer(
        values,
        {"type": "bar", "height": {"band": 0.62}},
        y=field("channel", sort=names, title=None),
        x=number("events", title="events", axis={"format": "~s", "tickMinStep": 1}),
        color=scaled("level", present(_LEVELS, "level", values), title=None),
        order=number("order"),
    )
    which = f"the {len(largest)} busiest of {len(totals)} channels" if len(totals) > len(largest) else "each channel"
    return draw_chart({"height": {"step": _ROW}, **bars}, f"Bars: events of {which}, by level")


def _throughput(report: Report) -> Chart | None:
    if len(report.throughput) < 2:
        return None
    # Steps without events get a bar, too: they show silence.
    first, last = report.throughput[0].at, report.throughput[-1].at
    step = timedelta(seconds=report.step)
    steps = (last - first) / step + 1
    shown = {"events": "var(--info)", "errors": "var(--error)", "records": "var(--good)"}
    panels = [name for name in shown if any(getattr(bar, name) for bar in report.throughput)]
    domain = [first.isoformat(), later(last, step).isoformat()]
    end = later(last, step)
    ticks = {"grid": False, **times_axis(first, end)}

    def panel(name: str) -> dict[str, Any]:
        values = [
            {"at": bar.at.isoformat(), "end": later(bar.at, step).isoformat(), name: getattr(bar, name)}
            for bar in report.throughput
            if getattr(bar, name)
        ]
        title = years(first, end) if name == panels[-1] else None
        x = field("at", "temporal", title=title, scale={"type": "utc", "domain": domain}, axis=ticks)
        axis = {"format": "~s", "tickMinStep": 1, "tickCount": 3, "grid": True, "domain": False, "minExtent": 34}
        x |= {"bandPosition": 0} if name == panels[-1] else {"axis": {**ticks, "labels": False}}
        mark = {"type": "rect", "color": shown[name], "stroke": None, "xOffset": 0.5 if steps < 120 else 0}
        y = number(name, title=name, axis=axis)
        height = 110 if name == "events" else 56
        return {"height": height, **layer(values, mark, x=x, x2={"field": "end"}, y=y, y2={"datum": 0})}

    spec = {"vconcat": [panel(name) for name in panels], "spacing": 8}
    unit = {3600: "hour", 86400: "day", 604800: "week"}.get(int(report.step), "month")
    return draw_chart(spec, f"Bars: {', '.join(panels)} by {unit}")


def _timers(report: Report) -> Chart | None:
    timers = [row for row in report.metrics if row.type == "timer" and row.p50 and row.p50 > 0 and row.p99 is not None]
    timers = sorted(timers, key=lambda row: -(row.p99 or 0))[:_MOST_TIMERS]
    if not timers:
        return None
    points = [
        {"metric": printable(row.metric), "share": share, "seconds": getattr(row, share)}
        for row in timers
        for share in _SHARES
    ]
    ranges = [{"metric": printable(row.metric), "low": row.p50, "high": row.p99} for row in timers]
    y = field("metric", sort=[printable(row.metric) for row in timers], title=None)
    colours = {share: colour for share, (colour, _) in _SHARES.items()}
    shapes = {share: shape for share, (_, shape) in _SHARES.items()}
    rule = {"type": "rule", "strokeWidth": 3, "opacity": 0.3, "color": "var(--info)"}
    low = number("low", title="seconds, on a log scale", **_SECONDS)
    rules = layer(ranges, rule, y=y, x=low, x2={"field": "high"})
    point = {"type": "point", "filled": True, "size": 75, "opacity": 1}
    by_share = {"color": scaled("share", colours, title=None), "shape": scaled("share", shapes)}
    dots = layer(points, point, y=y, x=number("seconds", **_SECONDS), **by_share)
    return draw_chart({"height": {"step": _ROW + 8}, "layer": [rules, dots]}, "Dots: p50, p95 and p99 of each timer")


def _runs(report: Report) -> Chart | None:
    latest = report.runs[:_MOST_RUNS]
    if not latest:
        return None
    values = [
        {
            "started": run.started.isoformat(),
            "seconds": max(run.duration, 0.001),
            "outcome": run.outcome if run.outcome in _OUTCOMES else "unknown",
        }
        for run in latest
    ]
    first, last = (choose(run.started for run in latest) for choose in (min, max))
    started = {"title": f"started, {years(first, last)}", "scale": {"type": "utc", "nice": True}}
    dots = layer(
        values,
        {"type": "point", "filled": True, "size": 55, "opacity": 0.8},
        x=field("started", "temporal", **started, axis=times_axis(first, last)),
        y=number("seconds", title="duration in seconds, on a log scale", **_SECONDS),
        color=scaled("outcome", present(_OUTCOMES, "outcome", values), title=None),
        shape=scaled("outcome", present(_SHAPES, "outcome", values)),
    )
    which = f"the latest {len(latest)} of {len(report.runs)} runs" if len(report.runs) > len(latest) else "each run"
    return draw_chart({"height": 210, **dots}, f"Dots: when {which} started and how long it took, by outcome")
