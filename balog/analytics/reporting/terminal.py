"""Prints the report's tables, or one run of it for ``balog report --run``, to a terminal or a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from itertools import compress
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from balog.analytics.reporting.comparison import change_in_words, health_in_words
from balog.analytics.reporting.links import Link, LinkTemplate, links_of_run
from balog.analytics.reporting.model import MOST_LINES, Failure, Report, RunStats
from balog.common.errors import ConfigError
from balog.common.text import counted, suggest
from balog.ui.formats import amount, count, minute, printable, seconds, size, span, when

MOST_ROWS_PRINTED = 20
"""Rows of each table that are printed; the page and ``--json`` have more."""

_WIDE = 110
"""The width of a terminal that shows every column."""

_COLOURS = {
    **dict.fromkeys(("ERROR", "CRITICAL", "failed", "worse"), "red"),
    **dict.fromkeys(("WARNING", "unknown"), "yellow"),
    **dict.fromkeys(("succeeded", "better"), "green"),
    "new": "bold red",
}


def open_console() -> Console:
    """Return a console on stdout: a terminal has its width and colours, a pipe plain text of any width."""
    console = Console(file=sys.stdout)
    return console if console.is_terminal else Console(file=sys.stdout, width=200, no_color=True, highlight=False)


def print_tables(report: Report) -> None:
    """Print the report to stdout: a terminal gets its width and colours, a pipe plain text of any width."""
    console = open_console()
    named = (report.events, "event"), (report.errors, "error"), (report.quarantined, "bad line")
    files = "" if report.files is None else f"; files read: {count(report.files)}"
    console.print(", ".join(counted(number, noun, shown=count(number)) for number, noun in named) + files)
    if report.duplicates:
        console.print(f"{count(report.duplicates)} duplicates, with the id of another event, are not counted")
    for condition in report.conditions:
        console.print(Text(f"only {printable(condition)}"))
    _health(console, report)
    lists = (_failures, _runs, _streams, _requests, _metrics, _waiting, _channels, _quarantine)
    for table in (each(console, report) for each in lists):
        table.print()


def _health(console: Console, report: Report) -> None:
    if report.compared is None:
        return
    console.print()
    console.print(Text(health_in_words(report), "dim"))
    for finding in report.findings:
        since = f", since {minute(finding.since)}" if finding.since is not None else ""
        console.print(Text(f"• {printable(finding.words)}{since}", "red" if finding.kind != "bad_lines" else "yellow"))
    if report.compared.before is None:
        return
    table = ReportTable(console, "Health", "", "*now", "*before", "change")
    for stat in report.health:
        shown = seconds if stat.unit == "seconds" else amount
        change = change_in_words(stat) if stat.before is not None else ""
        table.add_row(stat.name, shown(stat.now), shown(stat.before),
                      Text(change, _COLOURS.get(stat.verdict, "")))  # fmt: skip
    table.print()


def _failures(console: Console, report: Report) -> ReportTable:
    table = ReportTable(console, _title("Failures", report.totals.get("failures", 0)), "", "failure", "*events", "*now",
                   "*before", "~=first seen", "=last seen", "~channels")  # fmt: skip
    for failure in report.failures[:MOST_ROWS_PRINTED]:
        table.add_row(
            _text("new" if failure.new else ""), _text(failure_name(failure)[:160]),
            count(failure.events), count(failure.now), count(failure.before),
            minute(failure.first), minute(failure.last), _text(", ".join(failure.channels[:3])),
        )  # fmt: skip
    return table


def failure_name(failure: Failure) -> str:
    """Return the error's type and message."""
    return f"{failure.prefix}: {failure.message}" if failure.prefix else failure.message


def _runs(console: Console, report: Report) -> ReportTable:
    table = ReportTable(console, _title("Runs", report.totals.get("runs", 0), "the latest "), "run", "applications",
                   "=started (UTC)", "*duration", "=outcome", "~*records", "~*events", "*errors")  # fmt: skip
    for run in report.runs[:MOST_ROWS_PRINTED]:
        names = _text(", ".join(run.applications))
        numbers = map(count, (run.records, run.events, run.errors))
        table.add_row(_text(run.run_id), names, minute(run.started), span(run.duration), _text(run.outcome), *numbers)
    return table


def _streams(console: Console, report: Report) -> ReportTable:
    table = ReportTable(console, _title("Slowest streams", len(report.streams)), "stream", "~applications", "*time",
                   "~in", "~*p95", "*p95 now", "*p95 before", "*records", "*rate", "~*bytes")  # fmt: skip
    for stream in report.streams[:MOST_ROWS_PRINTED]:
        table.add_row(
            _text(stream.stream), _text(", ".join(stream.applications)), span(stream.seconds),
            _text(stream.timer), *map(seconds, (stream.p95, stream.p95_now, stream.p95_before)), count(stream.records),
            "–" if stream.rate is None else f"{amount(stream.rate)}/s", size(stream.bytes),
        )  # fmt: skip
    return table


def _requests(console: Console, report: Report) -> ReportTable:
    table = ReportTable(console, _title("HTTP requests", len(report.requests)), "endpoint", "status", "*requests",
                   "~*p50", "*p95", "~*p99", "*p95 now", "*p95 before")  # fmt: skip
    for request in report.requests[:MOST_ROWS_PRINTED]:
        shares = map(seconds, (request.p50, request.p95, request.p99, request.p95_now, request.p95_before))
        table.add_row(_text(request.endpoint), _text(request.status), count(request.requests), *shares)
    return table


def _metrics(console: Console, report: Report) -> ReportTable:
    table = ReportTable(console, _title("Metrics", len(report.metrics)), "metric", "type", "*count", "*sum", "*p50",
                   "*p95", "*p99")  # fmt: skip
    for metric in report.metrics[:MOST_ROWS_PRINTED]:
        numbers = map(seconds if metric.type == "timer" else amount, (metric.sum, metric.p50, metric.p95, metric.p99))
        table.add_row(_text(metric.metric), _text(metric.type), count(metric.count), *numbers)
    return table


def _waiting(console: Console, report: Report) -> ReportTable:
    title = _title("Waiting side", len(report.waiting))
    table = ReportTable(console, title, "stage", "*waited for input", "*waited for output", "what is slow stands")
    for stats in report.waiting[:MOST_ROWS_PRINTED]:
        table.add_row(_text(stats.stage), span(stats.read), span(stats.write), stats.slow)
    return table


def _channels(console: Console, report: Report) -> ReportTable:
    title = _title("Channels", len(report.channels))
    table = ReportTable(console, title, "channel", "level", "*events", "*errors", "=last (UTC)")
    for row in report.channels[:MOST_ROWS_PRINTED]:
        last = "–" if row.last is None else minute(row.last)
        table.add_row(_text(row.channel), _text(row.level), count(row.events), count(row.errors), last)
    return table


def _quarantine(console: Console, report: Report) -> ReportTable:
    table = ReportTable(console, _title("Bad lines", len(report.quarantine)), "reason", "*lines", "first at")
    for lines in report.quarantine[:MOST_ROWS_PRINTED]:
        table.add_row(_text(lines.reason), count(lines.lines), _text(f"{lines.file}:{lines.offset}"))
    return table


def _title(name: str, total: int, which: str = "") -> str:
    return f"{name}, {which}{MOST_ROWS_PRINTED} of {count(total)}" if total > MOST_ROWS_PRINTED else name


class ReportTable(Table):
    """A table whose column names have marks: ``*`` numbers, ``=`` no line breaks, ``~`` wide terminals only."""

    def __init__(self, console: Console, title: str, *columns: str) -> None:
        super().__init__(
            title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim"
        )
        self._console = console
        self._shown = [console.width >= _WIDE or not name.startswith("~") for name in columns]
        for column in compress(columns, self._shown):
            _, marks, name = re.split(r"^([~*=]*)", column)
            right = "*" in marks
            self.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right or "=" in marks)

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row with a cell for each column, including those that are not shown."""
        super().add_row(*compress(cells, self._shown), **options)

    def print(self) -> None:
        """Print the table, unless it is empty."""
        if self.row_count:
            self._console.print()
            self._console.print(self)


def _text(value: str | None) -> Text:
    # An event's text is only shown: markup and control sequences have no effect.
    shown = printable(value) if value else ""
    return Text(shown or ("" if value == "" else "–"), style=_COLOURS.get(shown, ""))


class SingleRun(Struct, kw_only=True):
    """A run with its failures; ``links`` are URLs by label."""

    version: str
    made: datetime
    sources: list[str]
    run: RunStats
    failures: list[Failure]
    links: dict[str, str]


def find_run(report: Report, run_id: str, templates: Sequence[LinkTemplate] = ()) -> SingleRun:
    """Return a run of a report.

    Args:
        report: made with a query for this run.
        run_id: the run's id.
        templates: of links from runs to other systems.

    Raises:
        ConfigError: no run has this id; the error names one that is similar.
    """
    run = next((run for run in report.runs if run.run_id == run_id), None)
    if run is None:
        known = [run.run_id for run in report.runs]
        hint = suggest(run_id, known, 5) if known else "; there are no runs in this time"
        raise ConfigError(f"no run {run_id!r:.200}{hint}", "--run")
    links: list[Link] = links_of_run(templates, run)
    failures = [failure for failure in report.failures if failure.fingerprint in run.failures]
    return SingleRun(version=report.version, made=report.made, sources=report.sources, run=run, failures=failures,
                     links={link.label: link.url for link in links})  # fmt: skip


def print_run(single: SingleRun) -> None:
    """Print a run to stdout: its outcome, timeline, streams, error lines and failures."""
    console, run = open_console(), single.run
    ended = f" to {when(run.ended)}" if run.ended is not None else ""
    console.print(Text(f"run {printable(run.run_id)}", "bold"))
    console.print(Text(f"{', '.join(map(printable, run.applications)) or '–'}, {when(run.started)}{ended} UTC"))
    code = f", exit code {run.exit_code}" if run.exit_code else ""
    named = (run.records, "record"), (run.events, "event"), (run.errors, "error")
    numbers = [counted(number, noun, shown=count(number)) for number, noun in named if number is not None]
    numbers[1:1] = [size(run.bytes)] if run.bytes is not None else []
    console.print(Text(f"{printable(run.outcome)}{code} after {span(run.duration)}; {', '.join(numbers)}"))
    if run.problem:
        console.print(Text(printable(run.problem), "red"))
    for label, url in single.links.items():
        console.print(Text(f"{printable(label)}: {printable(url)}"), soft_wrap=True)
    parts = ReportTable(
        console, "Timeline", "application", "=first event (UTC)", "=last event (UTC)", "*events", "*errors"
    )
    for part in run.parts:
        name = printable(part.application)
        parts.add_row(Text(name), when(part.first), when(part.last), count(part.events), count(part.errors))
    streams = ReportTable(console, "Streams", "stream", "*records", "*bytes", "*records/s of the run")
    for stream in run.streams:
        rate = stream.records / run.duration if stream.records is not None and run.duration > 0 else None
        shown = "–" if rate is None else f"{rate:,.1f}"
        streams.add_row(Text(printable(stream.stream)), count(stream.records), size(stream.bytes), shown)
    title = f"Log lines of errors, the first {MOST_LINES}" if len(run.lines) == MOST_LINES else "Log lines of errors"
    lines = ReportTable(console, title, "=time (UTC)", "level", "~channel", "message", "*in this hour")
    for line in run.lines:
        message = printable(line.message)[:300]
        lines.add_row(
            when(line.at), Text(printable(line.level)), Text(printable(line.channel)), Text(message), count(line.events)
        )
    failures = ReportTable(console, "Failures", "failure", "=first seen", "=last seen", "*events", "~fingerprint")
    for group in single.failures:
        failure = Text(printable(failure_name(group))[:160])
        failures.add_row(failure, when(group.first), when(group.last), count(group.events), group.fingerprint)
    for table in (parts, streams, lines, failures):
        table.print()
