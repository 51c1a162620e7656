"""Rows and outcomes of runs, and other parts that several questions share."""

from __future__ import annotations

from balog.analytics.sketches import PERCENTILES, K

IS_ERROR = "level IN ('ERROR', 'CRITICAL')"

_REPORT_KEY = """STRUCT(run.at, COALESCE(run.outcome, ''), COALESCE(run.duration, -1e308D), COALESCE(run.exit_code, 0),
    COALESCE(run.records, -1L), COALESCE(run.bytes, -1L), hour, COALESCE(TRANSFORM(run.streams, one ->
    STRUCT(COALESCE(one.stream, ''), COALESCE(one.records, -1L), COALESCE(one.bytes, -1L))), ARRAY()))"""
"""Orders the reports of a run, the latest last; of one time, as ``rollups.worker`` does. No part is null, because
engines order nulls differently."""

EXAMPLE_KEY = """STRUCT(example.timestamp, COALESCE(example.id, ''), COALESCE(example.run_id, ''),
    COALESCE(example.message, ''))"""
"""Orders the examples of a failure, the earliest first."""

MERGED_RUNS = f"""
  SELECT run_id, application, MIN(first) AS first, MAX(last) AS last, SUM(events) AS events, SUM(errors) AS errors,
    MAX_BY(run, CASE WHEN run IS NOT NULL THEN {_REPORT_KEY} END) AS run, MAX(hour) AS hour
  FROM {{runs}} GROUP BY run_id, application"""
"""One row for each application of each run, with its latest report."""


def reports(where: str = "true") -> str:
    """Return the query for the latest report of each application of each run, and its hour.

    Args:
        where: a condition on the rows of ``{runs}``.
    """
    return f"""
  SELECT run_id, application, MAX_BY(run, {_REPORT_KEY}) AS run, MAX_BY(hour, {_REPORT_KEY}) AS hour
  FROM {{runs}} WHERE run IS NOT NULL AND {where} GROUP BY run_id, application"""


REPORTS = reports()

RUN_OUTCOME = """
    CASE WHEN COUNT(CASE WHEN run.outcome = 'failed' THEN 1 END) > 0 THEN 'failed'
      ELSE COALESCE(MAX(run.outcome), 'unknown') END"""
"""The outcome of a run, over ``MERGED_RUNS``: failed if any application failed."""

RUN_SECONDS = "(UNIX_MICROS(MAX(last)) - UNIX_MICROS(MIN(first))) / 1e6"
"""The time from a run's first to its last event, over ``MERGED_RUNS``."""

QUARANTINE = """
  SELECT reason, lines, place.file, place.offset FROM (
    SELECT reason, SUM(lines) AS lines,
      MIN_BY(STRUCT(file, offset), STRUCT(COALESCE(file, ''), COALESCE(offset, -1L))) AS place
    FROM {quarantine} GROUP BY reason)
  ORDER BY lines DESC, reason"""
"""Invalid lines by reason, with the first line of each."""


COUNTED_STREAM = "COALESCE(stream, endpoint)"
"""The stream of a ``record_count``: singer-python's counters have it in the tag ``endpoint``."""

IS_COUNTER = "metric = 'record_count' AND type = 'counter'"


def counting(columns: str = "run_id", where: str = "true") -> str:
    """Return the query for the runs with counters of records.

    The records of these runs are the sum of the counters, whichever application has them. Of other runs, they are
    those of the reports.

    Args:
        columns: the run's id and, for the runs that count a stream, the stream.
        where: a condition on the rows of ``{metrics}``.
    """
    return f"SELECT DISTINCT {columns} FROM {{metrics}} WHERE run_id IS NOT NULL AND {IS_COUNTER} AND {where}"


COUNTING_STREAM = f"run_id, {COUNTED_STREAM} AS name"


def total(number: str) -> str:
    """Return the exact sum of whole numbers as ``decimal(38,0)``, in any order of the rows."""
    return f"SUM(CAST({number} AS DECIMAL(28, 0)))"


def long_total(number: str) -> str:
    """Return the exact sum of whole numbers as ``bigint``, null beyond 64 bits."""
    return f"TRY_CAST({total(number)} AS BIGINT)"


def whole(number: str) -> str:
    """Return a double without its fraction as ``bigint``, null beyond 64 bits."""
    return f"TRY_CAST(({number}) - ({number}) % 1D AS BIGINT)"


def merged_sketch(column: str) -> str:
    """Return the aggregate that merges sketches; null if all are null."""
    return f"CASE WHEN COUNT({column}) > 0 THEN KLL_MERGE_AGG_DOUBLE({column}, {K}) END"


def percentiles(sketch: str = "sketch", suffix: str = "") -> str:
    """Return the columns ``p50``, ``p95`` and ``p99`` of a sketch."""
    return ", ".join(f"{quantile(sketch, share)} AS p{share * 100:.0f}{suffix}" for share in PERCENTILES)


def quantile(sketch: str, share: float) -> str:
    """Return a quantile of a sketch, null without one; ``share`` is from 0 to 1."""
    return f"KLL_SKETCH_GET_QUANTILE_DOUBLE({sketch}, {share}D)"
