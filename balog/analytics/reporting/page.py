"""The report as one page of HTML that opens offline: no script, no request, nothing but this file.

The HTML is in ``templates``, one file for each section; Jinja escapes every text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from balog.analytics.reporting import formats
from balog.analytics.reporting.charts import draw, outside_in_words, runs_shown
from balog.analytics.reporting.comparison import health_in_words, period_in_words, tile_of
from balog.analytics.reporting.model import ChannelStats, Outside, Report, RunStats, Throughput
from balog.analytics.sketches import RANK_ERROR, K

MOST_RUNS = 200
MOST_FAILURES = 100
MOST_ROWS_SHOWN = 200
"""Rows of a list in the page; ``--json`` has more."""

_LONGEST = 400  # characters of a text in the page
_SOURCES = {"rollups": "rollups of hours", "events": "the table of events", "files": "raw events"}
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", None)
_OUTCOMES = ("succeeded", "failed", "unknown")


def make_page(report: Report) -> str:
    """Return the page's HTML. Every number in a table carries its exact value in ``<data value=…>``."""
    runs = report.runs[:MOST_RUNS]
    outcomes = Counter(map(_outcome, runs))
    is_compared = report.compared is not None and report.compared.before is not None
    throughput = _throughput(report)
    return _environment().get_template("page.html").render(
        report=report,
        where=", ".join(map(formats.printable, report.sources)),
        source=_SOURCES.get(report.source, report.source),
        sections=_sections(report, throughput),
        charts=dict.fromkeys(("runs", "throughput", "timers", "channels")) | (draw(report) if report.events else {}),
        most={"runs": MOST_RUNS, "failures": MOST_FAILURES, "rows": MOST_ROWS_SHOWN},
        is_compared=is_compared,
        tiles=[tile_of(stat, is_compared=is_compared) for stat in report.health],
        anchors={run.run_id: f"run-{number}" for number, run in enumerate(runs, 1)},
        fingerprints={failure.fingerprint for failure in report.failures[:MOST_FAILURES]},
        outcomes=[(name, outcomes[name]) for name in _OUTCOMES if outcomes[name]],
        runs_outside=runs_shown(report)[1],
        throughput=throughput,
        outside=outside_in_words(report),
        channels=_channels(report),
        exact_values=K,
        rank_error=f"{RANK_ERROR:.2%}",
    )  # fmt: skip


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("balog.analytics.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        **{name: getattr(formats, name) for name in ("amount", "count", "minute", "seconds", "size", "span", "when")},
        "exact": repr,
        "health": health_in_words,
        "largest": _largest,
        "outcome": _outcome,
        "percent": lambda part: f"{min(max(part, 0), 1):.1%}",
        "period": period_in_words,
        "text": _text,
    }
    environment.globals["shown_of"] = _shown_of
    return environment


def _largest(rows: Sequence[object], name: str) -> float:
    """Return the largest value of an attribute, 1 if there is none above 0: bars are parts of it."""
    return max((getattr(row, name) or 0 for row in rows), default=0) or 1


def _text(text: str | None) -> str:
    """Return a text without control characters, cut to the length that the page shows."""
    shown = formats.printable(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def _shown_of(shown: int, total: int, noun: str) -> str:
    """Return a note if not all rows are shown."""
    if total <= shown:
        return ""
    return f"{formats.count(shown)} of {formats.count(total)} {noun} are shown; balog report --json has more."


def _sections(report: Report, throughput: list[Throughput | Outside]) -> dict[str, str]:
    """Return the titles of the sections that the page has, by name."""
    sections: dict[str, tuple[str, Any]] = {
        "health": ("Health", report.compared is not None),
        "failures": ("Failures", report.failures),
        "runs": ("Runs", report.runs),
        "throughput": ("Throughput", len(throughput) > 1),
        "streams": ("Slowest streams", report.streams),
        "requests": ("HTTP requests", report.requests),
        "metrics": ("Durations and metrics", report.metrics),
        "waiting": ("Waiting side", report.waiting),
        "channels": ("Channels", report.channels),
        "quarantine": ("Bad lines", report.quarantine),
    }
    return {name: title for name, (title, is_shown) in sections.items() if is_shown}


def _outcome(run: RunStats) -> str:
    return run.outcome if run.outcome in _OUTCOMES else "unknown"


def _throughput(report: Report) -> list[Throughput | Outside]:
    """Return the steps, between the events before and after the time that charts show."""
    before, after = ([one for one in report.outside if one.side == side] for side in ("before", "after"))
    return [*before, *report.throughput, *after]


class _ChannelRow(NamedTuple):
    name: str | None
    by_level: list[int]
    events: int
    errors: int
    last: datetime | None


def _channels(report: Report) -> dict[str, list[Any]]:
    """Return the columns of the table of channels, and a row for each channel."""
    by_name: dict[str | None, list[ChannelStats]] = {}
    for stats in report.channels:
        by_name.setdefault(stats.channel, []).append(stats)
    levels = [level for level in _LEVELS if any(_level(stats) == level for stats in report.channels)]
    rows = [
        _ChannelRow(
            name,
            [sum(stats.events for stats in found if _level(stats) == level) for level in levels],
            sum(stats.events for stats in found),
            sum(stats.errors for stats in found),
            max((stats.last for stats in found if stats.last is not None), default=None),
        )
        for name, found in by_name.items()
    ]
    return {"columns": ["channel", *(f"#{level or 'no level'}" for level in levels), "#events", "#errors", "last"],
            "rows": rows}  # fmt: skip


def _level(stats: ChannelStats) -> str | None:
    return stats.level if stats.level in _LEVELS else None
