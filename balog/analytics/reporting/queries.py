"""The report's questions about rollups: bounded lists, of the period and of the two times compared, and details.

Each question is one small job over hourly rows; they run concurrently. An hour belongs to every time that it overlaps.
Lists end at ``MOST_ROWS``, so only the work grows with the archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from balog.analytics.engine import EPOCH, Parameters, QueryEngine, Row, micros
from balog.analytics.questions import report as questions
from balog.analytics.questions.details import STREAM_RUNS, failure_days, failure_lines, run_lines, run_parts
from balog.analytics.questions.runs import QUARANTINE
from balog.analytics.reporting.model import MOST_DAYS, MOST_DETAILED, MOST_LINES, MOST_ROWS, MOST_STREAM_RUNS
from balog.analytics.reporting.query import HOUR, Period, TimeRanges, later
from balog.analytics.rollups import Rollups

REQUESTS = "http_request_duration"
WAITS = {"pipe_read_wait_seconds": "read", "pipe_write_wait_seconds": "write"}

Rows = dict[str, list[Row]]

_QUESTIONS = {
    "channels": questions.CHANNELS, "applications": questions.APPLICATIONS,
    "throughput": questions.THROUGHPUT, "records": questions.RECORDS,
    "metrics": questions.METRICS, "failures": questions.FAILURES, "runs": questions.RUNS,
    "outcomes": questions.OUTCOMES, "streams": questions.STREAMS,
    "stream_runs": STREAM_RUNS, "quarantine": f"{QUARANTINE} LIMIT :most",
}  # fmt: skip


class Bounds(NamedTuple):
    """The hours with events, including the last one: those up to a day ahead of now, and all."""

    usual: Period
    all: Period


class ReportQueries:
    """Asks an engine about rollups."""

    def __init__(self, engine: QueryEngine, rollups: Rollups) -> None:
        self.engine = engine
        self.frames = rollups._asdict()

    def rows(self, question: str, parameters: Parameters) -> list[Row]:
        """Return the rows of an answer; only parameters and frames of the question's text are passed."""
        used = {name: value for name, value in parameters.items() if f":{name}" in question}
        frames = {name: frame for name, frame in self.frames.items() if f"{{{name}}}" in question}
        return self.engine.sql(question, used, **frames).rows()

    def bounds(self) -> tuple[Bounds | None, int]:
        """Return the hours with events (None without events), and the number of rows of events and metrics.

        Hours more than a day ahead of now are counted, but are not part of ``usual`` if there are others: one wrong
        clock must not decide what "now" is.
        """
        ahead = datetime.now(timezone.utc) + timedelta(days=1)
        (row,) = self.rows(questions.BOUNDS, {"ahead": micros(ahead)})
        if row["first"] is None:
            return None, row["number"]
        whole = _hours(row["first"], row["last"])
        usual = whole if row["first_usual"] is None else _hours(row["first_usual"], row["last_usual"])
        return Bounds(usual, whole), row["number"]

    def ask(self, ranges: TimeRanges, run: str | None = None) -> Rows:
        """Return the rows of every list, by name; times are in UTC.

        Args:
            ranges: the time ranges of the report.
            run: a run that is listed before all others.
        """
        own: Parameters = {"run": run, "longest": MOST_STREAM_RUNS}
        rows = self.ask_each({name: (question, own) for name, question in _QUESTIONS.items()}, ranges)
        number = len(rows["failures"])
        count = [{"count": number}] if number < MOST_ROWS else self.rows(questions.ALL_FAILURES, _parameters(ranges))
        return {**rows, "all_failures": count}

    def ask_each(self, asked: Mapping[str, tuple[str, Parameters]], ranges: TimeRanges) -> Rows:
        """Return the answers to several questions, which run concurrently, by name.

        Args:
            asked: questions, and their parameters beside the time ranges.
            ranges: the time ranges.
        """
        parameters = _parameters(ranges)
        with ThreadPoolExecutor(4) as threads:
            answers = threads.map(lambda query: self.rows(query[0], {**parameters, **query[1]}), asked.values())
            return dict(zip(asked, answers))

    def hourly(self, ranges: TimeRanges, keys: Sequence[tuple[str, str | None, str | None]]) -> list[Row]:
        """Return ``metric, stream, endpoint, hour, count, p95`` of a few metrics, over the times compared."""
        if not keys or ranges.compared.before is None:
            return []
        named = {
            f"{name}{number}": value
            for number, key in enumerate(keys)
            for name, value in zip(("metric", "stream", "endpoint"), key)
        }
        return self.rows(questions.hourly(keys), {**_parameters(ranges), **named})


def _hours(first: datetime, last: datetime) -> Period:
    return Period(first, later(last, HOUR))


def _ends(name: str, period: Period | None) -> dict[str, int]:
    """Return the parameters of a time range, see ``questions.report.within``; no hour is within None."""
    if period is None:
        return {f"{name}_after": 0, f"{name}_until": 0}
    since, until = ((end - EPOCH) // timedelta(microseconds=1) for end in (period.since, period.until))
    return {f"{name}_after": since - HOUR // timedelta(microseconds=1), f"{name}_until": until}


def _parameters(ranges: TimeRanges) -> Parameters:
    return {
        **_ends("period", ranges.period),
        **_ends("now", ranges.compared.now),
        **_ends("before", ranges.compared.before),
        **_ends("read", Period(ranges.earliest, ranges.period.until)),
        "step": ranges.step[0],
        "most": MOST_ROWS,
    }


class Details(NamedTuple):
    """The rows about single runs and failures, by run id or fingerprint.

    Attributes:
        parts, lines: the applications, and the error lines, of runs.
        days, latest: the days, and the latest error lines, of failures.
    """

    parts: Mapping[str, list[Row]] = {}
    lines: Mapping[str, list[Row]] = {}
    days: Mapping[str, list[Row]] = {}
    latest: Mapping[str, list[Row]] = {}


NO_DETAILS = Details()


def ask_details(
    queries: ReportQueries, ranges: TimeRanges, runs: Sequence[Mapping[str, Any]], failures: Sequence[Mapping[str, Any]]
) -> Details:
    """Return the details of the first ``MOST_DETAILED`` runs and failures.

    Args:
        queries: asks about the rollups of the report.
        ranges: the time ranges of the report.
        runs, failures: rows in the order of the report.
    """
    run_ids = [row["run_id"] for row in runs[:MOST_DETAILED]]
    fingerprints = [row["fingerprint"] for row in failures[:MOST_DETAILED]]
    asked: dict[str, tuple[str, Parameters]] = {}
    if run_ids:
        parameters: Parameters = {"longest": MOST_LINES, **_named(run_ids)}
        asked["parts"] = run_parts(len(run_ids)), parameters
        asked["lines"] = run_lines(len(run_ids)), parameters
    if fingerprints:
        named, number = _named(fingerprints), len(fingerprints)
        asked["days"] = failure_days(number), {"longest": MOST_DAYS, **named}
        asked["latest"] = failure_lines(number), {"longest": MOST_LINES, **named}
    keys = {"parts": "run_id", "lines": "run_id", "days": "fingerprint", "latest": "fingerprint"}
    return Details(**{name: grouped(rows, keys[name]) for name, rows in queries.ask_each(asked, ranges).items()})


def _named(names: Sequence[str]) -> dict[str, str]:
    return {f"name{index}": name for index, name in enumerate(names)}


def grouped(rows: Iterable[Row], name: str) -> dict[str, list[Row]]:
    """Return rows by the value of a column."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append(row)
    return groups
