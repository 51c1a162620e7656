"""Charts of pages: Vega-Lite specifications, rendered to SVG.

Static SVG opens immediately, prints, needs no script (so the page can forbid all scripts, whatever text an event has)
and is smaller than Vega's own code. Colours are the page's CSS variables, so one drawing serves light and dark. Each
chart is drawn wide and narrow, because text in a drawing does not flow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

_WIDE, _NARROW = 960, 215


class Chart(NamedTuple):
    """A chart as SVG, wide and narrow; ``words`` is its text alternative."""

    words: str
    wide: str
    narrow: str


def times_axis(first: datetime, last: datetime) -> dict[str, Any]:
    """Return the labels of a time axis: the shortest that tell its ticks apart; the years are in its title."""
    span = last - first
    forms = ((timedelta(days=700), "%Y"), (timedelta(days=150), "%b %Y"), (timedelta(days=4), "%b %-d"),
             (timedelta(hours=12), "%b %-d %H:%M"), (timedelta(minutes=10), "%H:%M"))  # fmt: skip
    form = next((form for longest, form in forms if span > longest), "%H:%M:%S")
    return {"labelOverlap": "greedy", "labelSeparation": 24, "labelFlush": False, "labelPadding": 10, "format": form}


def years(first: datetime, last: datetime) -> str:
    """Return the years, and below a day the day, of a time axis: ``2025 to 2026, UTC``."""
    if last - first <= timedelta(hours=12):
        days = [f"{when:%b} {when.day}, {when.year:04}" for when in (first, last)]
        return f"{' to '.join(dict.fromkeys(days))}, UTC"
    return f"{' to '.join(dict.fromkeys(f'{when.year:04}' for when in (first, last)))}, UTC"


def field(name: str, kind: str = "nominal", **more: Any) -> dict[str, Any]:
    """Return the encoding of a field."""
    return {"field": name, "type": kind, **more}


def number(name: str, **more: Any) -> dict[str, Any]:
    """Return the encoding of a field of numbers."""
    return field(name, "quantitative", **more)


def scaled(name: str, values: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Return the encoding of a field by colours or shapes, by the field's values."""
    return field(name, **more, scale={"domain": list(values), "range": list(values.values())})


def present(values: Mapping[str, str], name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the colours or shapes of the values that occur in rows."""
    occurring = {row[name] for row in rows}
    return {value: shown for value, shown in values.items() if value in occurring}


def layer(values: Sequence[Mapping[str, Any]], mark: Mapping[str, Any], **encoding: Any) -> dict[str, Any]:
    """Return a layer, or a whole chart: rows, how they are drawn, and the encoding of its channels by fields."""
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}


def draw_chart(spec: dict[str, Any], words: str) -> Chart:
    """Draw a Vega-Lite specification that sets no width.

    Args:
        words: the text alternative.
    """
    wide, narrow = (_svg(spec, width) for width in (_WIDE, _NARROW))
    return Chart(words, wide, narrow)


def _svg(spec: dict[str, Any], width: int) -> str:
    import vl_convert

    narrow = width == _NARROW
    text = {"labelColor": "var(--muted)", "titleColor": "var(--muted)", "labelFontSize": 12, "titleFontSize": 12}
    rules = dict.fromkeys(("domainColor", "gridColor", "tickColor"), "var(--rule)")
    labels = {"labelLimit": 105 if narrow else 190, "labelPadding": 6, "ticks": False}
    legend = {"orient": "top", "symbolType": "square", "columns": 3 if narrow else 6, "offset": 10, "labelLimit": 140}
    config = {
        "background": None,
        "padding": {"left": 14, "right": 14, "top": 4, "bottom": 4},
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {**text, **rules, "titleFontWeight": "normal", "titlePadding": 8},
        "axisX": {"tickCount": 4 if narrow else 7},
        "axisY": {**labels, "grid": "mark" in spec and spec["mark"]["type"] == "point"},
        "legend": {**text, **legend},
    }
    panels = {"vconcat": [{**panel, "width": width} for panel in spec["vconcat"]]} if "vconcat" in spec else {}
    sized = {**spec, **panels} if panels else {"width": width, **spec}
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", **sized, "config": config}
    svg: str = vl_convert.vegalite_to_svg(whole, allowed_base_urls=[])
    # The picture has one label, and its numbers are in a table; screen readers would read the labels of its parts, too.
    return re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", svg)
