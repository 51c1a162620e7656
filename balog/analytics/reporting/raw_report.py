"""Makes the report from files on the embedded engine, without Java."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from balog.analytics.reading.inputs import Inputs, read_inputs
from balog.analytics.reading.tasks import SourceFile
from balog.analytics.reporting.model import Report
from balog.analytics.reporting.query import ReportQuery
from balog.analytics.reporting.report import report_of
from balog.analytics.rollups.raw_files import open_rollups
from balog.analytics.rollups.selection import Selection


def make_raw_report(
    paths: Sequence[str],
    query: ReportQuery,
    listed: Sequence[SourceFile] | None = None,
) -> Report:
    """Read files in child processes and make the report, equal to Spark's.

    Args:
        paths: files, folders, globs and URLs.
        query: what to report.
        listed: the files at the paths, so that they are not listed again; see ``wanted_files``.

    Raises:
        ConfigError: a path does not exist.
        BalogError: a process that reads ended.
    """
    if listed is None:
        listed = wanted_files(read_inputs({"paths": json.dumps(list(paths))}), query)
    # hourly rollups of all events are enough without a condition
    selection = Selection(query.where.text, query.earliest, query.until) if query.where is not None else None
    with open_rollups({"files": json.dumps(list(listed))}, selection) as raw_rollups:
        report = report_of(raw_rollups.rollups, query, paths, "files", len(listed))
    return msgspec.structs.replace(report, duplicates=raw_rollups.duplicates)


def wanted_files(inputs: Inputs, query: ReportQuery) -> list[SourceFile]:
    """List the files that a report of a query reads, once.

    Without a selection these are the files that may have events in the query's time. Otherwise they are all files,
    because the invalid lines of all of them are reported.
    """
    return (inputs.narrow(query.earliest, query.until) if query.of_rollups else inputs).files()
