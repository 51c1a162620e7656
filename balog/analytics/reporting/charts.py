"""The page's charts: Vega-Lite specifications, rendered to SVG.

Static SVG opens immediately, prints, needs no script (so the page can forbid all scripts, whatever text an event has)
and is smaller than Vega's own code. Colours are the page's CSS variables, so one drawing serves light and dark. Each
chart is drawn wide and narrow, because text in a drawing does not flow.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from balog.analytics.reporting.formats import count, minute, printable
from balog.analytics.reporting.model import Report, RunStats
from balog.analytics.reporting.periods import later

_LEVELS = {
    "DEBUG": "var(--debug)",
    "INFO": "var(--info)",
    "WARNING": "var(--warning)",
    "ERROR": "var(--error)",
    "CRITICAL": "var(--critical)",
    "none": "var(--none)",
}
_OUTCOMES = {"succeeded": "var(--info)", "failed": "var(--error)", "unknown": "var(--warning)"}
_SHAPES = {"succeeded": "circle", "failed": "cross", "unknown": "triangle-up"}
_MOST_CHANNELS = 15
_MOST_TIMERS = 15
_MOST_RUNS = 1000
_FEW_TIMES = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0, 86400.0, 864000.0)
_TIMES = (
    *(1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0, 7200.0, 14400.0, 36000.0, 86400.0),
    *(172800.0, 432000.0, 864000.0),
)
_WIDE, _NARROW = 960, 215
_ROW = 24


class Chart(NamedTuple):
    """A chart as SVG, wide and narrow; ``words`` is its text alternative."""

    words: str
    wide: str
    narrow: str


def draw(report: Report) -> dict[str, Chart]:
    """Draw the charts for which the report has data: ``channels``, ``throughput``, ``timers``, ``runs``."""
    made = {
        "channels": _channels(report),
        "throughput": _throughput(report),
        "timers": _timers(report),
        "runs": _runs(report),
    }
    return {name: chart for name, chart in made.items() if chart is not None}


def outside_in_words(report: Report) -> list[str]:
    """Return a sentence for the events before, and one for those after, the time that charts show."""
    if report.shown is None:
        return []
    shown = f"{minute(report.shown.since)} to {minute(report.shown.until)}"
    return [
        f"1 event at {minute(one.first)} is {one.side} the time that charts show ({shown})"
        if one.events == 1
        else f"{count(one.events)} events from {minute(one.first)} to {minute(one.last)} are {one.side} the time that "
        f"charts show ({shown})"
        for one in report.outside
    ]


def runs_shown(report: Report) -> tuple[list[RunStats], int]:
    """Return the latest runs in the time that charts show (all if there is none), and the number of other runs."""
    latest, time = report.runs[:_MOST_RUNS], report.shown
    shown = [run for run in latest if time is None or time.since <= run.started < time.until] or latest
    return shown, len(latest) - len(shown)


def _channels(report: Report) -> Chart | None:
    totals: dict[str, int] = {}
    for row in report.channels:
        totals[row.channel or ""] = totals.get(row.channel or "", 0) + row.events
    largest = sorted(totals, key=lambda name: (-totals[name], name))[:_MOST_CHANNELS]
    if not largest:
        return None
    values = [
        {
            "channel": printable(row.channel),
            "level": _level(row.level),
            "events": row.events,
            "order": list(_LEVELS).index(_level(row.level)),
        }
        for row in report.channels
        if (row.channel or "") in set(largest)
    ]
    levels = [level for level in _LEVELS if any(value["level"] == level for value in values)]
    spec = {
        "data": {"values": values},
        "height": {"step": _ROW},
        "mark": {"type": "bar", "height": {"band": 0.62}},
        "encoding": {
            "y": {"field": "channel", "type": "nominal", "sort": [printable(name) for name in largest], "title": None},
            "x": {
                "field": "events",
                "type": "quantitative",
                "title": "events",
                "axis": {"format": "~s", "tickMinStep": 1},
            },
            "color": _colours("level", {level: _LEVELS[level] for level in levels}),
            "order": {"field": "order", "type": "quantitative"},
        },
    }
    which = f"the {len(largest)} busiest of {len(totals)} channels" if len(totals) > len(largest) else "each channel"
    return _both(spec, f"Bars: events of {which}, by level")


def _level(level: str | None) -> str:
    return level if level in _LEVELS and level is not None else "none"


def _throughput(report: Report) -> Chart | None:
    if len(report.throughput) < 2:
        return None
    # Steps without events get a bar, too: they show silence.
    first, last = report.throughput[0].at, report.throughput[-1].at
    steps = (last - first).total_seconds() / report.step + 1
    shown = {"events": "var(--info)", "errors": "var(--error)", "records": "var(--good)"}
    panels = [name for name in shown if any(getattr(one, name) for one in report.throughput)]
    x: dict[str, Any] = {
        "field": "at",
        "type": "temporal",
        "title": None,
        "scale": {"type": "utc", "domain": [_stamp(first), _stamp(later(last, timedelta(seconds=report.step)))]},
        "axis": {
            "labelOverlap": "greedy",
            "format": "%b %-d" if last - first > timedelta(days=4) else "%b %-d %H:%M",
            "grid": False,
        },
    }

    def panel(name: str) -> dict[str, Any]:
        values = [
            {
                "at": _stamp(one.at),
                "end": _stamp(later(one.at, timedelta(seconds=report.step))),
                name: getattr(one, name),
            }
            for one in report.throughput
            if getattr(one, name)
        ]
        axis = {"format": "~s", "tickMinStep": 1, "tickCount": 3, "grid": True, "domain": False, "minExtent": 34}
        return {
            "data": {"values": values},
            "height": 110 if name == "events" else 56,
            "mark": {"type": "rect", "color": shown[name], "stroke": None, "xOffset": 0.5 if steps < 120 else 0},
            "encoding": {
                "x": {**x, "bandPosition": 0} if name == panels[-1] else {**x, "axis": {**x["axis"], "labels": False}},
                "x2": {"field": "end"},
                "y": {"field": name, "type": "quantitative", "title": name, "axis": axis},
                "y2": {"datum": 0},
            },
        }

    spec = {"vconcat": [panel(name) for name in panels], "spacing": 8}
    unit = {3600: "hour", 86400: "day", 604800: "week"}.get(int(report.step), "month")
    return _both(spec, "; ".join((f"Bars: {', '.join(panels)} by {unit}", *outside_in_words(report))))


def _stamp(when: datetime) -> str:
    return when.isoformat()


def _timers(report: Report) -> Chart | None:
    timers = [
        row
        for row in report.metrics
        if row.type == "timer" and row.p50 is not None and row.p50 > 0 and row.p99 is not None
    ]
    timers = sorted(timers, key=lambda row: -(row.p99 or 0))[:_MOST_TIMERS]
    if not timers:
        return None
    names = [printable(row.metric) for row in timers]
    points = [
        {"metric": printable(row.metric), "share": share, "seconds": getattr(row, share)}
        for row in timers
        for share in ("p50", "p95", "p99")
    ]
    ranges = [{"metric": printable(row.metric), "low": row.p50, "high": row.p99} for row in timers]
    y = {"field": "metric", "type": "nominal", "sort": names, "title": None}
    scale, axis = _log_seconds([number for row in timers for number in (row.p50, row.p99) if number])
    spec = {
        "height": {"step": _ROW + 8},
        "layer": [
            {
                "data": {"values": ranges},
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.3, "color": "var(--info)"},
                "encoding": {
                    "y": y,
                    "x": {
                        "field": "low",
                        "type": "quantitative",
                        "scale": scale,
                        "title": "seconds, on a log scale",
                        "axis": axis,
                    },
                    "x2": {"field": "high"},
                },
            },
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": {"field": "seconds", "type": "quantitative", "scale": scale},
                    "color": _colours("share", {"p50": "var(--info)", "p95": "var(--warning)", "p99": "var(--error)"}),
                    "shape": {
                        "field": "share",
                        "type": "nominal",
                        "scale": {"domain": ["p50", "p95", "p99"], "range": ["circle", "diamond", "square"]},
                    },
                },
            },
        ],
    }
    return _both(spec, "Dots: p50, p95 and p99 of each timer")


def _runs(report: Report) -> Chart | None:
    latest = report.runs[:_MOST_RUNS]
    if not latest:
        return None
    drawn, outside = runs_shown(report)
    values = [
        {
            "started": run.started.isoformat(),
            "seconds": max(run.duration, 0.001),
            "outcome": run.outcome if run.outcome in _OUTCOMES else "unknown",
        }
        for run in drawn
    ]
    outcomes = [outcome for outcome in _OUTCOMES if any(value["outcome"] == outcome for value in values)]
    shapes = {
        "field": "outcome",
        "type": "nominal",
        "scale": {"domain": outcomes, "range": [_SHAPES[o] for o in outcomes]},
    }
    scale, axis = _log_seconds([run.duration for run in drawn])
    days = (drawn[0].started - drawn[-1].started).total_seconds() / 86400
    spec = {
        "height": 210,
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 0.8},
        "encoding": {
            "x": {
                "field": "started",
                "type": "temporal",
                "title": "started, UTC",
                "scale": {"type": "utc", "nice": True},
                "axis": {
                    "labelOverlap": "greedy",
                    "format": "%b %-d" if days > 4 else "%b %-d %H:%M" if days > 0.5 else "%H:%M:%S",
                },
            },
            "y": {
                "field": "seconds",
                "type": "quantitative",
                "title": "duration, on a log scale",
                "scale": scale,
                "axis": axis,
            },
            "color": _colours("outcome", {outcome: _OUTCOMES[outcome] for outcome in outcomes}),
            "shape": shapes,
        },
    }
    which = f"the latest {len(latest)} of {len(report.runs)} runs" if len(report.runs) > len(latest) else "each run"
    words = f"Dots: when {which} started and how long it took, by outcome"
    return _both(spec, f"{words}; {outside} started outside of the time that charts show" if outside else words)


def _log_seconds(values: list[float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return scale and axis for seconds: ticks at familiar durations, from below all values to above."""
    values = [max(value, 1e-6) for value in values]
    low = max((tick for tick in _TIMES if tick <= min(values)), default=min(values))
    high = min((tick for tick in _TIMES if tick >= max(values)), default=max(values))
    ticks = [tick for tick in _TIMES if low <= tick <= high]
    if len(ticks) > 8:
        ticks = [tick for tick in ticks if tick in _FEW_TIMES]
    words = ", ".join(f"'{tick:.6f}': '{_time(tick)}'" for tick in ticks)
    scale = {"type": "log", "domain": [low, high if high > low else low * 10]}
    return scale, {"values": ticks, "labelExpr": f"({{{words}}})[format(datum.value, '.6f')]", "labelOverlap": "greedy"}


def _time(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds * 1e6:g} µs"


def _colours(field: str, colours: dict[str, str]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(colours), "range": list(colours.values())},
    }


def _both(spec: dict[str, Any], words: str) -> Chart:
    wide, narrow = (_svg(spec, width) for width in (_WIDE, _NARROW))
    return Chart(words, wide, narrow)


def _svg(spec: dict[str, Any], width: int) -> str:
    import vl_convert

    text = {"labelColor": "var(--muted)", "titleColor": "var(--muted)", "labelFontSize": 12, "titleFontSize": 12}
    axis = {
        **text,
        "titleFontWeight": "normal",
        "domainColor": "var(--rule)",
        "gridColor": "var(--rule)",
        "tickColor": "var(--rule)",
        "titlePadding": 8,
    }
    narrow = width == _NARROW
    config = {
        "background": None,
        "padding": {"left": 14, "right": 14, "top": 4, "bottom": 4},
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"tickCount": 4 if narrow else 7},
        "axisY": {
            "labelLimit": 105 if narrow else 190,
            "grid": "mark" in spec and spec["mark"]["type"] == "point",
            "ticks": False,
            "labelPadding": 6,
        },
        "legend": {
            **text,
            "orient": "top",
            "symbolType": "square",
            "columns": 3 if narrow else 6,
            "offset": 10,
            "labelLimit": 140,
        },
    }
    panels = {"vconcat": [{**panel, "width": width} for panel in spec["vconcat"]]} if "vconcat" in spec else {}
    sized = {**spec, **panels} if panels else {"width": width, **spec}
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", **sized, "config": config}
    svg: str = vl_convert.vegalite_to_svg(whole, allowed_base_urls=[])
    # The picture has one label, and its numbers are in a table; screen readers would read the labels of its parts, too.
    return re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", svg)
