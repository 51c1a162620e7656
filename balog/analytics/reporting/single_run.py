"""One run of a report, for ``balog report --run``: as tables on a terminal, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from rich.text import Text

from balog.analytics.reporting.links import Link, LinkTemplate, links_of_run
from balog.analytics.reporting.model import MOST_LINES, Failure, Report, RunStats
from balog.analytics.reporting.terminal import ReportTable, failure_name, open_console
from balog.common.errors import ConfigError
from balog.common.text import counted, suggest
from balog.ui.formats import count, printable, size, span, when


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
