"""Compares now with before, in numbers and in words: what changed, whether that is more than chance, and since when.

Counts n and m of times of equal length differ by about √(n + m) by chance. A difference of less than twice that, or of
less than a tenth, counts as the same. So do percentiles that differ by less than a fifth, or of fewer than ``FEW``
values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from balog.analytics.reporting.model import HealthStat, Report
from balog.analytics.reporting.query import HOUR, Period
from balog.ui.formats import amount, count, length, minute, seconds, span

FEW = 20
"""The number of values that a percentile needs for a comparison."""

SLOWER = 1.5
"""The factor from which a slowdown is a finding."""

Row = Mapping[str, Any]


def counted(name: str, now: float | None, before: float | None, *, good: str) -> HealthStat:
    """Compare counts; ``good`` is ``less``, ``more``, or "" if neither is."""
    same = now is not None and before is not None and abs(now - before) <= _chance(now, before)
    return _stat(name, "count", now, before, same=same, good=good)


def _chance(now: float, before: float) -> float:
    """Return the difference of two counts that counts as the same."""
    return max(2 * math.sqrt(abs(now) + abs(before)), 0.1 * abs(before))


def timed(name: str, row: Row) -> HealthStat:
    """Compare the p95 of durations in seconds; less is better."""
    now, before = row.get("p95_now"), row.get("p95_before")
    few = min(row.get("count_now") or 0, row.get("count_before") or 0) < FEW
    same = now is not None and before is not None and (few or 0.8 * before <= now <= 1.2 * before)
    return _stat(name, "seconds", now, before, same=same, good="less")


def _stat(name: str, unit: str, now: float | None, before: float | None, *, same: bool, good: str) -> HealthStat:
    change = None if now is None or not before else now / before
    verdict = "same" if same else "unknown"
    if now is not None and before is not None and good and not same:
        verdict = "better" if (now < before) == (good == "less") else "worse"
    return HealthStat(name=name, unit=unit, now=now, before=before, change=change, verdict=verdict)


def change_in_words(stat: HealthStat) -> str:
    """Return a change as text: ``+12 %``, ``3.2 times as much``, ``none before``, ``about the same``."""
    if stat.now is None or stat.before is None:
        return "nothing to compare"
    shown = seconds if stat.unit == "seconds" else count
    before = shown(stat.before if stat.unit == "seconds" else round(stat.before))
    if stat.now == stat.before:
        return "as before"
    if stat.change is None:
        return "none before"
    if stat.verdict == "same":
        return f"about as before, {before}"
    if not stat.now:
        return f"none; {before} before"
    if stat.change >= 2:
        return f"{stat.change:.1f} × {before} before"
    return f"{stat.change - 1:+.0%} from {before}".replace("%", " %")


def is_more(now: float, before: float) -> bool:
    """Return whether a count at least doubled, beyond chance."""
    return now >= 2 * before and now - before > 3 * math.sqrt(now + before)


def is_slower(row: Row) -> bool:
    """Return whether the p95 of enough values grew at least by the factor ``SLOWER``."""
    now, before = row.get("p95_now"), row.get("p95_before")
    enough = min(row.get("count_now") or 0, row.get("count_before") or 0) >= FEW
    return enough and now is not None and before is not None and before > 0 and now >= SLOWER * before


def since_when(hours: Sequence[Row], now: float, before: float) -> datetime | None:
    """Return the hour that best separates hours near ``before`` from hours near ``now``, on a log scale.

    The result is None if fewer than three in four of the hours from then on are near ``now``: the change was temporary.

    Args:
        hours: ``hour`` and ``p95``, in any order.
        now, before: the p95 of the two times compared, both above 0.
    """
    middle = math.sqrt(now * before)
    ordered = sorted((row["hour"], row["p95"] > middle) for row in hours if row["p95"] is not None)
    slow = sum(is_slow for _, is_slow in ordered)
    best, since, passed = 0, None, 0  # passed: the number of slow hours before this one
    for index, (hour, is_slow) in enumerate(ordered):
        right = (slow - passed) + (index - passed)
        if is_slow and right > best and slow - passed >= 0.75 * (len(ordered) - index):
            best, since = right, hour
        passed += is_slow
    return since


def slower_in_words(what: str, now: float, before: float) -> str:
    """Return a slowdown as text: ``charges: p95 is 1.2 s, was 310 ms (3.9 ×)``."""
    shown = span if min(now, before) >= 60 else seconds
    return f"{what}: p95 is {shown(now)}, was {shown(before)} ({now / before:.1f} ×)"


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
