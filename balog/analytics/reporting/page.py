"""The report as one page of HTML that opens offline: no script, no request, nothing but this file."""

from __future__ import annotations

import re
from html import escape

from balog.analytics.reporting import sections
from balog.analytics.reporting.charts import draw
from balog.analytics.reporting.formats import count, printable, when
from balog.analytics.reporting.health import health, period_in_words
from balog.analytics.reporting.markup import words
from balog.analytics.reporting.model import Report
from balog.analytics.reporting.sections import MOST_RUNS
from balog.analytics.reporting.style import STYLE
from balog.analytics.rollups.sketches import RANK_ERROR, K

__all__ = ["make_page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SOURCES = {"rollups": "rollups of hours", "events": "the table of events", "files": "raw events"}


def make_page(report: Report) -> str:
    """Give the page's text. Every number in a table carries its exact value in ``<data value=…>``."""
    charts = draw(report) if report.events else {}
    anchors = {run.run_id: f"run-{number}" for number, run in enumerate(report.runs[:MOST_RUNS], 1)}
    parts = [
        health(report),
        sections.failures(report, anchors),
        sections.runs(report, charts, anchors),
        sections.throughput(report, charts),
        sections.streams(report),
        sections.requests(report),
        sections.metrics(report, charts),
        sections.waiting(report),
        sections.channels(report, charts),
        sections.quarantine(report),
    ]
    where = ", ".join(printable(path) for path in report.sources)
    body = "".join(parts) if report.events or report.quarantined else '<p class="empty">There is no event.</p>'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="balog">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>Events of {words(where)}</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#report">Skip to the report</a>
<header>
<h1>Pipeline events</h1>
<p class="where">{words(where)}</p>
<p class="note">{_said(report)}</p>
{_contents(parts)}
</header>
<main id="report" tabindex="-1">
{body}
</main>
<footer><p>Percentiles are values by the nearest rank, exact up to {count(K)} values; beyond, the rank is off by less
than {RANK_ERROR:.2%} of the values, with 99 % confidence. Times are UTC, hours belong to a time by their beginning.
Made by balog.</p></footer>
</body>
</html>
"""


def _said(report: Report) -> str:
    files = "" if report.files is None else "1 file, " if report.files == 1 else f"{count(report.files)} files, "
    period = f"{period_in_words(report.period)}; " if report.period is not None else ""
    events = f"{count(report.events)} events, {count(report.errors)} errors; " if report.events else ""
    again = (
        f"; {count(report.duplicates)} came again with the same id, and are not counted" if report.duplicates else ""
    )
    conditions = "".join(f"<br>only {words(condition)}" for condition in report.conditions)
    read = f'{files}{_SOURCES.get(report.source, report.source)}, read <time datetime="{report.made.isoformat()}">'
    return f"{escape(period)}{events}{read}{when(report.made)} UTC</time>{again}{conditions}"


def _contents(parts: list[str]) -> str:
    found = [
        match for part in parts if (match := re.match(r'<section id="([\w-]+)".*>\n<h2 id="[\w-]+">(.*?)</h2>', part))
    ]
    if len(found) < 2:
        return ""
    links = "\n".join(f'<li><a href="#{match[1]}">{match[2]}</a></li>' for match in found)
    return f'<nav aria-label="Contents"><ul>\n{links}\n</ul></nav>'
