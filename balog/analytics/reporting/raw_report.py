"""Makes the report from files on the embedded engine, without Java."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from balog.analytics.reporting.model import Report
from balog.analytics.reporting.query import ReportQuery, channel_pattern
from balog.analytics.reporting.report import report_of
from balog.analytics.rollups.raw_files import open_rollups
from balog.analytics.rollups.selection import Selection


def make_raw_report(
    paths: Sequence[str], query: ReportQuery, files: int | None = None, *, progress: str = "", **options: str
) -> Report:
    """Read files in child processes and make the report, equal to Spark's.

    Args:
        paths: files, folders, globs and URLs.
        query: what to report.
        files: the number of files, for the report.
        progress: see ``balog.analytics.progress.EventMeter``.
        options: of the format ``balog``.

    Raises:
        ConfigError: a path does not exist.
        BalogError: a process that reads ended.
    """
    options["paths"] = json.dumps(list(paths))
    if query.of_rollups:
        times = {"since": query.earliest, "until": query.until}
        options |= {name: when.isoformat() for name, when in times.items() if when is not None}
    with open_rollups(options, selection_of(query), progress=progress) as found:
        made = report_of(found.rollups, query, paths, "files", files)
    return msgspec.structs.replace(made, duplicates=found.duplicates)


def selection_of(query: ReportQuery) -> Selection | None:
    """Return which events a query selects; None if hourly rollups of all events are enough."""
    if query.of_rollups:
        return None
    gap = None
    if query.since and query.until and query.back and query.earliest and not query.of_whole_hours:
        before = query.until - query.back
        gap = (before, query.since) if before < query.since else None
    return Selection(
        query.earliest,
        query.until,
        gap,
        channel_pattern(query.channel) if query.channel else "",
        query.where.text if query.where is not None else "",
        query.past_the_hour,
    )
