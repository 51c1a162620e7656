"""The report as one page of HTML that opens offline: no request, nothing but this file.

The HTML is in ``templates``, one file for each section; Jinja escapes every text. The one script, which searches and
filters, has no data in it; the page allows it alone, by its hash. Without scripts the page has the same contents.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache, partial
from importlib import resources
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from balog.analytics.reporting.charts import draw
from balog.analytics.reporting.comparison import health_in_words, period_in_words, tile_of
from balog.analytics.reporting.links import LinkTemplate, links_of_failure, links_of_run, links_of_stream
from balog.analytics.reporting.model import ChannelStats, Failure, Report, RunPart, RunStats, StreamRun, StreamSummary
from balog.analytics.sketches import RANK_ERROR, K
from balog.ui import formats
from balog.ui.environment import make_environment

MOST_RUNS = 200
MOST_FAILURES = 100
MOST_ROWS_SHOWN = 200
"""Rows of a list in the page; ``--json`` has more."""

MOST_LINES_SHOWN = 10
"""Error lines of a run or of a failure in the page."""

MOST_STREAMS_SHOWN = 20
"""Streams of a run in the page."""

_MOST_CHOICES = 500  # of a filter
_ANCHOR = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_SOURCES = {"rollups": "rollups of hours", "events": "the table of events", "files": "raw events"}
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", None)
_OUTCOMES = ("succeeded", "failed", "unknown")


def make_page(report: Report, links: Sequence[LinkTemplate] = ()) -> str:
    """Return the page's HTML. Every number in a table carries its exact value in ``<data value=…>``.

    Args:
        report: its numbers.
        links: templates of links from runs, failures and streams to other systems.
    """
    runs = report.runs[:MOST_RUNS]
    outcomes = Counter(map(_outcome, runs))
    is_compared = report.compared is not None and report.compared.before is not None
    choices = _choices(report)
    script = resources.files("balog.analytics.reporting").joinpath("templates/filter.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template("page.html").render(
        report=report,
        where=", ".join(map(formats.printable, report.sources)),
        source=_SOURCES.get(report.source, report.source),
        sections=_sections(report),
        charts=dict.fromkeys(("runs", "throughput", "timers", "channels")) | (draw(report) if report.events else {}),
        most={"runs": MOST_RUNS, "failures": MOST_FAILURES, "rows": MOST_ROWS_SHOWN, "lines": MOST_LINES_SHOWN,
              "streams": MOST_STREAMS_SHOWN},
        is_compared=is_compared,
        tiles=[tile_of(stat, is_compared=is_compared) for stat in report.health],
        anchors=_anchors(report),
        choices=choices,
        choices_of=partial(_choices_of, choices),
        has_filter=bool(report.runs or report.failures or report.streams),
        script=Markup(script),  # noqa: S704 - a file of this package
        script_hash=f"sha256-{digest}",
        links_of_run=partial(links_of_run, links),
        links_of_failure=partial(links_of_failure, links),
        links_of_stream=partial(links_of_stream, links, report=report),
        outcomes=[(name, outcomes[name]) for name in _OUTCOMES if outcomes[name]],
        channels=_channels(report),
        exact_values=K,
        rank_error=f"{RANK_ERROR:.2%}",
    )  # fmt: skip


def _anchors(report: Report) -> dict[str, dict[str, str]]:
    """Return the anchors of the runs, failures and streams in the page, and the messages of its failures.

    An anchor is made of the id or name itself if that is possible, so that a link is good in later reports, too.
    """
    failures = report.failures[:MOST_FAILURES]
    names = {failure.fingerprint: failure.message or failure.error_type or "" for failure in failures}
    return {
        "runs": _named("run", (run.run_id for run in report.runs[:MOST_RUNS])),
        "streams": _named("stream", (stream.stream for stream in report.streams[:MOST_ROWS_SHOWN])),
        "failures": _named("f", names),
        "messages": names,
    }


def _named(kind: str, names: Iterable[str]) -> dict[str, str]:
    return {
        name: f"{kind}-{name}" if _ANCHOR.fullmatch(name) else f"{kind}:{number}"
        for number, name in enumerate(names, 1)
    }


def _choices(report: Report) -> dict[str, list[str]]:
    """Return what the filters offer: pipelines (applications), streams and outcomes of the page."""
    runs, failures = report.runs[:MOST_RUNS], report.failures[:MOST_FAILURES]
    streams = report.streams[:MOST_ROWS_SHOWN]
    applications = [run.applications for run in runs] + [failure.applications for failure in failures]
    pipelines = {name for names in (*applications, *(stream.applications for stream in streams)) for name in names}
    return {
        "pipeline": sorted(pipelines)[:_MOST_CHOICES],
        "stream": sorted({stream.stream for stream in streams})[:_MOST_CHOICES],
        "outcome": [name for name in _OUTCOMES if any(_outcome(run) == name for run in runs)],
    }


def _choices_of(choices: dict[str, list[str]], row: RunStats | Failure | StreamSummary) -> dict[str, str]:
    """Return the places of a row's pipelines and streams in the choices, by filter."""
    own = {"pipeline": set(row.applications)}
    if isinstance(row, RunStats):
        own["stream"] = {stream.stream for stream in row.streams}
    elif isinstance(row, StreamSummary):
        own["stream"] = {row.stream}
    return {
        name: " ".join(str(index) for index, choice in enumerate(choices[name]) if choice in names)
        for name, names in own.items()
    }


def _lasting(parts: Sequence[RunPart]) -> Callable[[datetime], str]:
    """Return a function from a time to its place between the first and the last event, as percent."""
    since = min((part.first for part in parts), default=None)
    until = max((part.last for part in parts), default=None)

    def place(moment: datetime) -> str:
        if since is None or until is None or until <= since:
            return "0%"
        return f"{min(max((moment - since) / (until - since), 0), 1):.1%}"

    return place


@cache
def _environment() -> Environment:
    filters = {
        "health": health_in_words,
        "largest": _largest,
        "lasting": _lasting,
        "outcome": _outcome,
        "period": period_in_words,
        "quoted": shlex.quote,
    }
    return make_environment("balog.analytics.reporting", filters, {"shown_of": _shown_of, "left_out": _left_out})


def _largest(rows: Sequence[object], name: str) -> float:
    """Return the largest value of an attribute, 1 if there is none above 0: bars are parts of it."""
    return max((getattr(row, name) or 0 for row in rows), default=0) or 1


def _shown_of(shown: int, total: int, noun: str, *, elsewhere: bool = True) -> str:
    """Return a note if not all rows are shown; ``elsewhere`` says that ``--json`` has more."""
    if total <= shown:
        return ""
    more = "; balog report --json has more" if elsewhere else ""
    return f"{formats.count(shown)} of {formats.count(total)} {noun} are shown{more}."


def _left_out(shown: int, total: int, noun: str, *, elsewhere: bool = True) -> Markup:
    """Return a paragraph with the note of ``_shown_of``."""
    note = _shown_of(shown, total, noun, elsewhere=elsewhere)
    return Markup('<p class="note">{}</p>').format(note) if note else Markup("")


def _sections(report: Report) -> dict[str, str]:
    """Return the titles of the sections that the page has, by name."""
    sections: dict[str, tuple[str, Any]] = {
        "health": ("Health", report.compared is not None),
        "failures": ("Failures", report.failures),
        "runs": ("Runs", report.runs),
        "throughput": ("Throughput", len(report.throughput) > 1),
        "streams": ("Streams", report.streams),
        "requests": ("HTTP requests", report.requests),
        "metrics": ("Durations and metrics", report.metrics),
        "waiting": ("Waiting side", report.waiting),
        "channels": ("Channels", report.channels),
        "quarantine": ("Bad lines", report.quarantine),
    }
    return {name: title for name, (title, is_shown) in sections.items() if is_shown}


def _outcome(run: RunStats | StreamRun) -> str:
    return run.outcome if run.outcome in _OUTCOMES else "unknown"


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
            [sum(stats.events for stats in channel_stats if _level(stats) == level) for level in levels],
            sum(stats.events for stats in channel_stats),
            sum(stats.errors for stats in channel_stats),
            max((stats.last for stats in channel_stats if stats.last is not None), default=None),
        )
        for name, channel_stats in by_name.items()
    ]
    return {"columns": ["channel", *(f"#{level or 'no level'}" for level in levels), "#events", "#errors", "last"],
            "rows": rows}  # fmt: skip


def _level(stats: ChannelStats) -> str | None:
    return stats.level if stats.level in _LEVELS else None
