"""The report's tables for a terminal or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text

from balog.analytics.reporting.figures import amount, count, printable, seconds, span, when
from balog.analytics.reporting.report import Report

__all__ = ["MOST_RUNS", "print_tables", "progress"]

MOST_RUNS = 20
"""So many of the latest runs are printed; the page and ``--json`` have more."""

_COLOURS = {
    "ERROR": "red",
    "CRITICAL": "red",
    "WARNING": "yellow",
    "failed": "red",
    "unknown": "yellow",
    "succeeded": "green",
}


@contextmanager
def progress(first: str) -> Iterator[Callable[[str], None]]:
    """Say on stderr what is going on, when that is a terminal; what is yielded changes the words."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda words: None
        return
    with console.status(first) as status:
        yield status.update


def print_tables(report: Report) -> None:
    """Print the report to stdout: for a terminal in its width and colours, else plain and as wide as it needs."""
    console = Console(file=sys.stdout)
    if not console.is_terminal:
        console = Console(file=sys.stdout, width=200, no_color=True, highlight=False)
    bad, files = count(report.quarantined), count(report.files)
    console.print(f"{count(report.events)} events, {count(report.errors)} errors, {bad} bad lines; files read: {files}")
    table = _table("Channels", "channel", "level", "*events", "*errors")
    for row in report.channels:
        table.add_row(_text(row.channel), _text(row.level), count(row.events), count(row.errors))
    _print(console, table)
    table = _table("Metrics", "metric", "type", "*count", "*sum", "*p50", "*p95", "*p99")
    for metric in report.metrics:
        shown = seconds if metric.type == "timer" else amount
        numbers = (metric.sum, metric.p50, metric.p95, metric.p99)
        table.add_row(_text(metric.metric), _text(metric.type), count(metric.count), *map(shown, numbers))
    _print(console, table)
    more = len(report.runs) - MOST_RUNS
    table = _table(f"Runs, the latest {MOST_RUNS} of {count(len(report.runs))}" if more > 0 else "Runs",
                   "run", "applications", "started (UTC)", "*duration", "outcome", "*records", "*events",
                   "*errors")  # fmt: skip
    for run in report.runs[:MOST_RUNS]:
        names = _text(", ".join(run.applications))
        numbers_ = (count(run.records), count(run.events), count(run.errors))
        table.add_row(_text(run.run_id), names, when(run.started), span(run.duration), _text(run.outcome), *numbers_)
    _print(console, table)
    if report.quarantine:
        table = _table("Bad lines", "reason", "*lines", "first at")
        for lines in report.quarantine:
            table.add_row(_text(lines.reason), count(lines.lines), _text(f"{lines.file}:{lines.offset}"))
        _print(console, table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for name in columns:
        table.add_column(name.lstrip("*"), justify="right" if name.startswith("*") else "left", overflow="fold")
    return table


def _print(console: Console, table: Table) -> None:
    if table.row_count:
        console.print()
        console.print(table)


def _text(value: str | None) -> Text:
    # An event's text is shown, never obeyed: no markup, no control sequences.
    shown = printable(value)
    return Text(shown, style=_COLOURS.get(shown, ""))
