"""The questions about single runs, failures and streams of the report.

They read the rows of the named runs or failures only, which are parameters (``:name0`` and on), and each list has at
most ``:longest`` rows for each of them. Time ranges are those of ``questions.report``.
"""

from __future__ import annotations

from balog.analytics.questions.report import ALL_RUNS, INSIDE, READ
from balog.analytics.questions.runs import EXAMPLE_KEY, total


def _any_of(column: str, number: int) -> str:
    """Return whether a column has one of the values of the parameters ``name0`` and on."""
    return f"{column} IN ({', '.join(f':name{index}' for index in range(number))})"


def _first(rows: str, columns: str, by: str, order: str) -> str:
    """Return columns of the first ``:longest`` rows for each value of ``by``."""
    return f"""
SELECT {columns} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {order}) AS place FROM ({rows}))
WHERE place <= :longest ORDER BY {by}, place"""


def run_parts(number: int) -> str:
    """Return the question for the applications of some runs: when each began and ended, its events and errors.

    Args:
        number: how many runs are named.
    """
    rows = f"""
  SELECT run_id, application, MIN(first) AS first, MAX(last) AS last, SUM(events) AS events, SUM(errors) AS errors
  FROM {{runs}} WHERE {READ} AND {_any_of("run_id", number)} GROUP BY run_id, application"""
    return _first(
        rows, "run_id, application, first, last, events, errors", "run_id", "first, COALESCE(application, '')"
    )


_LINES = f"""
  SELECT *, example.run_id AS run_id, example.timestamp AS at, example.id AS id, example.message AS message FROM (
    SELECT fingerprint, channel, application, level, hour, SUM(events) AS events,
      MIN_BY(example, {EXAMPLE_KEY}) AS example
    FROM {{errors}} WHERE %s AND example IS NOT NULL GROUP BY fingerprint, channel, application, level, hour)"""
_LINE = "run_id, fingerprint, at, id, level, channel, application, message, events"
_TIES = "COALESCE(id, ''), fingerprint, COALESCE(channel, ''), COALESCE(application, ''), COALESCE(level, '')"


def run_lines(number: int) -> str:
    """Return the question for the error lines of some runs, in order of time.

    An error line is the first event of a failure, channel, application and level in an hour. ``events`` counts all of
    them in that hour, of any run.

    Args:
        number: how many runs are named.
    """
    rows = f"SELECT {_LINE} FROM ({_LINES % READ}) WHERE {_any_of('run_id', number)}"
    return _first(rows, _LINE, "run_id", f"at, {_TIES}")


def failure_lines(number: int) -> str:
    """Return the question for the latest error lines of some failures; see ``run_lines``.

    Args:
        number: how many fingerprints are named.
    """
    rows = f"SELECT {_LINE} FROM ({_LINES % (INSIDE + ' AND ' + _any_of('fingerprint', number))})"
    return _first(rows, _LINE, "fingerprint", f"at DESC, {_TIES}, COALESCE(run_id, '')")


def failure_days(number: int) -> str:
    """Return the question for the latest days with events of some failures, and how many days there are.

    Args:
        number: how many fingerprints are named.
    """
    rows = f"""
  SELECT fingerprint, day, events, COUNT(*) OVER (PARTITION BY fingerprint) AS days FROM (
    SELECT fingerprint, DATE_TRUNC('DAY', hour) AS day, SUM(events) AS events
    FROM {{errors}} WHERE {INSIDE} AND {_any_of("fingerprint", number)}
    GROUP BY fingerprint, DATE_TRUNC('DAY', hour))"""
    return _first(rows, "fingerprint, day, events, days", "fingerprint", "day DESC")


STREAM_RUNS = f"""
WITH rows AS (
  SELECT stream, run_id, started, ended, duration, outcome, {total("records")} AS records, {total("bytes")} AS bytes
  FROM (
    SELECT one.stream AS stream, one.records AS records, one.bytes AS bytes, run_id, started, ended, duration, outcome
    FROM (
      SELECT run_id, started, ended, duration, outcome, EXPLODE(streams) AS one FROM ({ALL_RUNS}) WHERE {INSIDE}))
  WHERE stream IS NOT NULL GROUP BY stream, run_id, started, ended, duration, outcome),
counted AS (
  SELECT stream, COUNT(*) AS runs, MAX(CASE WHEN outcome = 'succeeded' THEN ended END) AS succeeded,
    MAX(started) AS latest
  FROM rows GROUP BY stream),
ranked AS (
  SELECT rows.*, counted.runs AS runs, counted.succeeded AS succeeded, counted.latest AS latest,
    ROW_NUMBER() OVER (PARTITION BY rows.stream ORDER BY rows.started DESC, rows.run_id) AS place
  FROM rows JOIN counted ON rows.stream = counted.stream)
SELECT stream, run_id, started, duration, outcome, records, bytes, runs, succeeded
FROM ranked WHERE place <= :longest ORDER BY latest DESC, stream, place LIMIT :most"""
"""The latest runs that reported each stream; ``runs`` counts all, ``succeeded`` is the end of the last success.

``duration`` is the run's.
"""
