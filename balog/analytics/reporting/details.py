"""Adds the details of single runs, failures and streams to a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from balog.analytics.engine import Parameters, Row
from balog.analytics.questions import details as questions
from balog.analytics.reporting import model
from balog.analytics.reporting.model import MOST_DAYS, MOST_DETAILED, MOST_LINES, from_row
from balog.analytics.reporting.numbers import whole
from balog.analytics.reporting.queries import ReportQueries, Rows
from balog.analytics.reporting.query import TimeRanges


def ask_details(
    queries: ReportQueries, ranges: TimeRanges, runs: Sequence[model.RunStats], failures: Sequence[model.Failure]
) -> Rows:
    """Return the rows of all details, by name.

    Args:
        queries: asks about the rollups of the report.
        ranges: the time ranges of the report.
        runs, failures: the first ``MOST_DETAILED`` of each have details.
    """
    run_ids = [run.run_id for run in runs[:MOST_DETAILED]]
    fingerprints = [failure.fingerprint for failure in failures[:MOST_DETAILED]]
    asked: dict[str, tuple[str, Parameters]] = {}
    if run_ids:
        parameters: Parameters = {"longest": MOST_LINES, **_named(run_ids)}
        asked["run_parts"] = questions.run_parts(len(run_ids)), parameters
        asked["run_lines"] = questions.run_lines(len(run_ids)), parameters
    if fingerprints:
        named, number = _named(fingerprints), len(fingerprints)
        latest: Parameters = {"longest": MOST_LINES, **named}
        days: Parameters = {"longest": MOST_DAYS, **named}
        asked["failure_lines"] = questions.failure_lines(number), latest
        asked["failure_days"] = questions.failure_days(number), days
    return queries.ask_each(asked, ranges)


def _named(names: Sequence[str]) -> dict[str, str]:
    return {f"name{index}": name for index, name in enumerate(names)}


def add_details(runs: Sequence[model.RunStats], failures: Sequence[model.Failure], rows: Rows) -> None:
    """Add parts and error lines to runs, and days and error lines to failures.

    Args:
        runs, failures: of the report; they are changed.
        rows: the result of ``ask_details``.
    """
    parts, run_lines = (_grouped(rows.get(name, []), "run_id") for name in ("run_parts", "run_lines"))
    for run in runs:
        run.parts = [from_row(model.RunPart, row) for row in parts[run.run_id]]
        run.lines = [from_row(model.ErrorLine, row) for row in run_lines[run.run_id]]
        run.failures = list(dict.fromkeys([*run.failures, *(line.fingerprint for line in run.lines)]))
    days, lines = (_grouped(rows.get(name, []), "fingerprint") for name in ("failure_days", "failure_lines"))
    for failure in failures:
        day_rows = days[failure.fingerprint]
        failure.days = [from_row(model.FailureDay, row) for row in day_rows]
        failure.all_days = day_rows[0]["days"] if day_rows else 0
        failure.lines = [from_row(model.ErrorLine, row) for row in lines[failure.fingerprint]]


def add_stream_runs(streams: Sequence[model.StreamSummary], rows: Iterable[Row], report_time: datetime) -> None:
    """Add runs and the time since the last success to streams.

    Args:
        streams: of the report; they are changed.
        rows: the answer to ``questions.STREAM_RUNS``.
        report_time: when the report was made.
    """
    rows_by_stream = _grouped(rows, "stream")
    for stream in streams:
        own = rows_by_stream[stream.stream]
        if own:
            stream.all_runs, stream.succeeded = own[0]["runs"], own[0]["succeeded"]
        if stream.succeeded is not None:
            stream.age = max((report_time - stream.succeeded).total_seconds(), 0.0)
        stream.runs = [_stream_run(row) for row in own]


def _stream_run(row: Row) -> model.StreamRun:
    records, duration = whole(row["records"]), row["duration"]
    rate = records / duration if records is not None and duration > 0 else None
    return from_row(model.StreamRun, row, records=records, bytes=whole(row["bytes"]), rate=rate)


def _grouped(rows: Iterable[Row], name: str) -> defaultdict[str, list[Row]]:
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[name]].append(row)
    return groups
