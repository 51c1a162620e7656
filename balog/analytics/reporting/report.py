"""Makes the report from rollups on either engine, or from files on the embedded engine, without Java."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timezone

import msgspec

from balog.analytics.frame_engine import engine_of
from balog.analytics.reading.inputs import Inputs, read_inputs
from balog.analytics.reading.tasks import SourceFile
from balog.analytics.reporting.assembly import assemble, ordered_failures, slowed
from balog.analytics.reporting.model import Report
from balog.analytics.reporting.queries import Bounds, ReportQueries, ask_details
from balog.analytics.reporting.query import Period, ReportQuery, TimeRanges, compare
from balog.analytics.rollups import Rollups
from balog.analytics.tables.log import has_log
from balog.analytics.tables.store import ROLLUPS

MOST_LOCAL = 5 * 10**9
"""Up to this many bytes of stored rollups, or of files, the embedded engine makes the report.

A compressed byte of files counts as eight.
"""


def make_local_report(location: str, query: ReportQuery) -> Report | None:
    """Make the report from the stored rollups of a folder, by DuckDB; None if only Spark can.

    Spark makes it if the query has a condition, without stored rollups, beyond ``MOST_LOCAL``, or after an internal
    error of DuckDB.
    """
    from balog.analytics.duckdb_engine import DuckDBEngine
    from balog.analytics.tables.local import StoredTables, open_rollups

    if not query.of_rollups or not has_log(location):
        return None
    tables, names = StoredTables(location), list(ROLLUPS.values())
    if not set(names) <= set(tables.names()) or tables.size(*names) > MOST_LOCAL:
        return None
    import duckdb

    try:
        with DuckDBEngine([file for name in names for file in tables.files(name)]) as engine:
            rollups = open_rollups(tables, engine, query.earliest, query.until)
            return report_of(rollups, query, [location], "rollups")
    except (duckdb.InternalException, duckdb.FatalException):
        return None


def report_of(
    rollups: Rollups, query: ReportQuery, sources: Sequence[str], source: str, files: int | None = None
) -> Report:
    """Make the report from rollups.

    Args:
        rollups: merged or not.
        query: its channel and condition have been applied already.
        sources, source, files: see ``Report``.
    """
    engine = engine_of(rollups.events)
    queries = ReportQueries(engine, rollups)
    data, rows = queries.bounds()
    ranges = _time_ranges(data, query)
    with engine.tuned(rollups, rows) as tuned:
        queries = ReportQueries(engine, tuned)
        answers = queries.ask(ranges, query.run)
        keys = [(slow.metric, slow.stream, slow.endpoint) for slow in slowed(answers)]
        hourly, failures = queries.hourly(ranges, keys), ordered_failures(answers, ranges)
        details = ask_details(queries, ranges, answers["runs"], failures)
    lists = assemble(answers, ranges, query.made, hourly, details)
    return Report(
        made=query.made,
        sources=list(sources),
        source=source,
        files=files,
        conditions=query.conditions,
        period=ranges.period if data is not None else None,
        compared=ranges.compared if data is not None else None,
        **lists,
    )


def _time_ranges(bounds: Bounds | None, query: ReportQuery) -> TimeRanges:
    """Return the time ranges; without data, those of the query, or empty ones."""
    since, until = query.since, query.until
    if bounds is None:
        moment = since or until or query.made
        bounds = Bounds(Period(moment, moment), Period(moment, moment))
    data = bounds.usual
    compared = compare(data, since, until, query.back, none=not query.compared)
    if compared.before is not None and compared.before.until <= data.since:
        compared = compare(data, since, until, query.back, none=True)  # there is nothing before to compare with
    first = since or bounds.all.since
    period = Period(first, max(until or bounds.all.until, first))
    return TimeRanges(period, compared)


def empty_report(paths: Sequence[str], query: ReportQuery) -> Report:
    """Return the report of paths without files; it needs no Spark."""
    ranges = _time_ranges(None, query)
    lists = assemble(defaultdict(list), ranges, query.made)
    return Report(
        made=datetime.now(timezone.utc), sources=list(paths), source="files", files=0, conditions=query.conditions,
        period=None, compared=None, **lists,
    )  # fmt: skip


def make_raw_report(paths: Sequence[str], query: ReportQuery, listed: Sequence[SourceFile] | None = None) -> Report:
    """Read files in child processes and make the report, equal to Spark's.

    Args:
        paths: files, folders, globs and URLs.
        query: what to report.
        listed: the files at the paths, so that they are not listed again; see ``wanted_files``.

    Raises:
        ConfigError: a path does not exist.
        BalogError: a process that reads ended.
    """
    from balog.analytics.rollups.raw_files import open_rollups
    from balog.analytics.rollups.selection import Selection

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
