"""The report as one page of HTML that opens offline: no script, no request, nothing but this file."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from balog.analytics.reporting.charts import Chart, draw
from balog.analytics.reporting.figures import amount, count, printable, seconds, span, when
from balog.analytics.reporting.report import Channel, Report
from balog.analytics.reporting.style import STYLE

__all__ = ["MOST_RUNS", "make_page"]

MOST_RUNS = 200
"""So many of the latest runs are listed; ``--json`` has all."""

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", None)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_MARKS = {"succeeded": "✓", "failed": "✕", "unknown": "?"}


def make_page(report: Report) -> str:
    """Give the page's text. Every number in a table carries its exact value in ``<data value=…>``."""
    charts = draw(report) if report.events else {}
    sections = [_runs(report, charts), _channels(report, charts), _metrics(report, charts), _quarantine(report)]
    where = ", ".join(printable(path) for path in report.paths)
    files = "1 file" if report.files == 1 else f"{count(report.files)} files"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="balog">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>Events of {escape(where)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>Pipeline events</h1>
<p class="where">{escape(where)}</p>
<p class="note">{files}, read <time datetime="{report.made.isoformat()}">{when(report.made)} UTC</time></p>
</header>
<main>
{_headline(report)}
{"".join(sections) if report.events or report.quarantined else '<p class="empty">There is no event.</p>'}
</main>
<footer><p>Percentiles are exact: linear interpolation between the two nearest of the sorted values. Times are UTC.
Made by balog.</p></footer>
</body>
</html>
"""


def _headline(report: Report) -> str:
    failed = sum(run.outcome == "failed" for run in report.runs)
    unknown = sum(run.outcome == "unknown" for run in report.runs)
    troubles = ", ".join(f"{count(n)} {word}" for n, word in ((failed, "failed"), (unknown, "without a report")) if n)
    share = f"{report.errors / report.events:.2%} of events" if report.events and report.errors else ""
    facts = (
        ("events", report.events, "", ""),
        ("errors", report.errors, share, "bad" if report.errors else ""),
        ("runs", len(report.runs), troubles or ("all succeeded" if report.runs else ""), "bad" if failed else ""),
        ("bad lines", report.quarantined, "" if report.quarantined else "none", "bad" if report.quarantined else ""),
    )
    return '<dl class="facts">{}</dl>'.format(
        "".join(
            f'<div class="{mark}"><dt>{name}</dt><dd>{_number(number, count(number))}<small>{note}</small></dd></div>'
            for name, number, note, mark in facts
        )
    )


def _runs(report: Report, charts: dict[str, Chart]) -> str:
    if not report.runs:
        return ""
    rows = [
        [
            f'<th scope="row"><code>{_words(run.run_id)}</code></th>',
            f"<td>{_words(', '.join(run.applications))}</td>",
            f'<td class="time"><time datetime="{run.started.isoformat()}">{when(run.started)}</time></td>',
            _cell(run.duration, span(run.duration)),
            f'<td><span class="outcome {_words(run.outcome)}">'
            f'<i aria-hidden="true">{_MARKS.get(run.outcome, "?")}</i> {_words(run.outcome)}</span></td>',
            _cell(run.records, count(run.records)),
            _cell(run.events, count(run.events)),
            _cell(run.errors, count(run.errors), bad=run.errors > 0),
        ]
        for run in report.runs[:MOST_RUNS]
    ]
    more = len(report.runs) - MOST_RUNS
    note = (
        f"The latest {MOST_RUNS} of {count(len(report.runs))} runs; balog report --json lists all." if more > 0 else ""
    )
    heads = ("run", "applications", "started", "#duration", "outcome", "#records", "#events", "#errors")
    return _section("runs", "Runs", charts.get("runs"), heads, rows, note)


def _channels(report: Report, charts: dict[str, Chart]) -> str:
    by_name: dict[str, dict[str | None, Channel]] = {}
    for row in report.channels:
        by_name.setdefault(row.channel, {})[row.level] = row
    levels = [level for level in _LEVELS if any(level in found for found in by_name.values())]
    rows = []
    for name, found in by_name.items():
        total, errors = sum(row.events for row in found.values()), sum(row.errors for row in found.values())
        cells = [
            _cell(found[level].events, count(found[level].events)) if level in found else _cell(0, "·")
            for level in levels
        ]
        ends = [_cell(total, count(total)), _cell(errors, count(errors), bad=errors > 0)]
        rows.append([f'<th scope="row">{_words(name)}</th>', *cells, *ends])
    heads = ("channel", *(f"#{level or 'no level'}" for level in levels), "#events", "#errors")
    return _section("channels", "Channels", charts.get("channels"), heads, rows) if rows else ""


def _metrics(report: Report, charts: dict[str, Chart]) -> str:
    rows = []
    for row in report.metrics:
        shown = seconds if row.type == "timer" else amount
        numbers = [_cell(number, shown(number)) for number in (row.sum, row.p50, row.p95, row.p99)]
        names = [f'<th scope="row">{_words(row.metric)}</th>', f"<td>{_words(row.type)}</td>"]
        rows.append([*names, _cell(row.count, count(row.count)), *numbers])
    heads = ("metric", "type", "#count", "#sum", "#p50", "#p95", "#p99")
    return _section("metrics", "Metrics", charts.get("timers"), heads, rows) if rows else ""


def _quarantine(report: Report) -> str:
    rows = [
        [
            f'<th scope="row">{_words(bad.reason)}</th>',
            _cell(bad.lines, count(bad.lines)),
            f'<td><code>{_words(bad.file)}</code></td><td class="number">{_number(bad.offset, count(bad.offset))}</td>',
        ]
        for bad in report.quarantine
    ]
    note = "Lines that are not events. They are left out of everything above; the offset is in bytes, decompressed."
    heads = ("reason", "#lines", "first in file", "#at byte")
    return _section("quarantine", "Bad lines", None, heads, rows, note) if rows else ""


def _section(
    name: str, title: str, chart: Chart | None, heads: Iterable[str], rows: list[list[str]], note: str = ""
) -> str:
    figure = ""
    if chart is not None:
        pictures = "".join(
            f'<div class="{width}">{svg}</div>' for width, svg in (("wide", chart.wide), ("narrow", chart.narrow))
        )
        figure = f'<figure role="img" aria-label="{escape(chart.words, quote=True)}">{pictures}</figure>'
    head = "".join(
        f'<th scope="col" class="number">{escape(text[1:])}</th>'
        if text.startswith("#")
        else f'<th scope="col">{escape(text)}</th>'
        for text in heads
    )
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"""<section aria-labelledby="{name}">
<h2 id="{name}">{title}</h2>
{figure}
<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0"><table id="{name}-table">
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>
{below}
</section>
"""


def _cell(number: float | None, shown: str, *, bad: bool = False) -> str:
    return f'<td class="number{" bad" if bad else ""}">{_number(number, shown)}</td>'


def _number(number: float | None, shown: str) -> str:
    return shown if number is None else f'<data value="{number!r}">{escape(shown)}</data>'


def _words(text: str | None) -> str:
    return escape(printable(text), quote=True)
