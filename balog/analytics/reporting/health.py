"""The health of pipelines in words: the times compared, and each stat now against before."""

from __future__ import annotations

from typing import NamedTuple

from balog.analytics.reporting.comparison import change_in_words
from balog.analytics.reporting.formats import amount, count, length, minute, seconds, span
from balog.analytics.reporting.model import HealthStat, Report
from balog.analytics.reporting.periods import HOUR, Period


class Tile(NamedTuple):
    """A stat as the page shows it.

    Attributes:
        name: the stat's name.
        value: the exact number.
        shown: the number as text.
        arrow: ``▲`` or ``▼`` if it became better or worse, else "".
        change: the change in words, "" without a time before.
        mark: ``bad``, ``good`` or "".
    """

    name: str
    value: float | None
    shown: str
    arrow: str
    change: str
    mark: str


def tile_of(stat: HealthStat, *, is_compared: bool) -> Tile:
    """Return the tile of a stat."""
    if stat.unit == "seconds":
        shown = span(stat.now) if stat.now is not None and stat.now >= 60 else seconds(stat.now)
    else:
        shown = count(round(stat.now)) if stat.now is not None and stat.now < 1e7 else amount(stat.now)
    arrow = change = ""
    if is_compared and stat.now is not None and stat.before is not None:
        change = change_in_words(stat)
        if stat.verdict in ("worse", "better") and stat.now != stat.before:
            arrow = "▲" if stat.now > stat.before else "▼"
    return Tile(stat.name, stat.now, shown, arrow, change, {"worse": "bad", "better": "good"}.get(stat.verdict, ""))


def health_in_words(report: Report) -> str:
    """Return a sentence about the times that are compared."""
    if report.compared is None:
        return "There is no event."
    now, before = report.compared.now, report.compared.before
    if before is None:
        return f"{period_in_words(now)}; there is no time before it to compare with"
    gap = "" if before.until == now.since else f", {length((now.since - before.since) / HOUR)} earlier"
    return f"{period_in_words(now)}, against {period_in_words(before)}{gap}"


def period_in_words(period: Period) -> str:
    """Return a period as text: ``2026-10-09 00:00 to 2026-10-10 00:00 (24 hours)``."""
    hours = period.length / HOUR
    return f"{minute(period.since)} to {minute(period.until)} ({length(hours)})"
