"""Functions from DataFrame to DataFrame: what ran, what failed, what slowed down, since when.

Each function takes events (a frame with the columns of ``spark.read.format("balog")``), rollup rows, ``Rollups``, or
tables of ``balog.analytics.tables.open_tables``, and returns a small frame. Events are aggregated again for each call.
For several calls, build the rollups once, ``rollups.from_files(spark, paths).persist()``, and pass those. ``between``
selects whole hours of any of them. Durations are in seconds, sizes in bytes. For percentiles, see
``balog.analytics.sketches``: they are actual values, exact up to 1,000 values, otherwise with a rank error of 0.3 %.
Totals of records and bytes are exact, and null beyond 64 bits.

Rollups may also be frames of a ``DuckDBEngine`` (``balog.analytics.duckdb_engine``). The answer is then a
``DuckDBResult`` with ``columns``, ``types`` and ``rows()``, the same as Spark's, and pyspark is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from balog.analytics.engine import micros
from balog.analytics.frame_engine import engine_of
from balog.analytics.questions import summaries
from balog.analytics.questions.runs import QUARANTINE
from balog.analytics.reading.schemas import names
from balog.analytics.rollups.schemas import METRICS, Rollups
from balog.common.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from balog.analytics.tables.parquet import ParquetStore

EventData: TypeAlias = "DataFrame | Rollups | ParquetStore"
__all__ = ["as_rollups", "between", "channels", "failures", "metrics", "quarantine", "runs", "streams"]

_MERGED = ("count", "sum", "low", "high", "sketch")


def as_rollups(data: EventData) -> Rollups:
    """Return any data as rollups.

    Raises:
        ConfigError: a frame has neither events nor rollup rows.
    """
    if isinstance(data, Rollups):
        return data
    columns = getattr(data, "columns", None)
    if columns is None:
        return data.rollups()  # type: ignore[operator]
    from balog.analytics.rollups import from_events, split

    return split(data if {"kind", "sketch"} <= set(columns) else from_events(data))  # type: ignore[arg-type]


def between(data: EventData, since: datetime | None = None, until: datetime | None = None) -> Rollups:
    """Return the rollups of a time, in whole hours, and all of quarantine, whose rows have no hour.

    Args:
        data: see the module.
        since: the first hour, with a time zone; hours that begin before it are left out. None for no beginning.
        until: the end, exclusive, with a time zone. None for no end.

    Returns:
        ``Rollups`` for any of the other functions.

    Raises:
        ConfigError: a time has no time zone.
    """
    for moment in (since, until):
        if moment is not None and moment.tzinfo is None:
            raise ConfigError(f"{moment} has no time zone; say datetime(…, tzinfo=timezone.utc)", "between")
    rollups = as_rollups(data)
    ends = {"since": micros(since), "until": micros(until)}
    engine = engine_of(rollups.events)
    hourly = ("events", "metrics", "errors", "runs")
    return rollups._replace(
        **{name: engine.sql(summaries.HOURS, ends, rows=getattr(rollups, name)).frame for name in hourly}
    )


def channels(data: EventData) -> DataFrame:
    """Count events: ``channel``, ``level``, ``events``, ``errors`` (of ERROR and CRITICAL), ``first``, ``last``."""
    return _ask(data, summaries.CHANNELS)


def metrics(data: EventData, by: Sequence[str] = ()) -> DataFrame:
    """Aggregate metrics: ``metric``, ``type``, ``count``, ``sum``, ``low``, ``high``, ``p50``, ``p95``, ``p99``.

    Only finite values count. Percentiles are null for counters, whose values are deltas.

    Args:
        data: see the module.
        by: additional keys, which come first: ``hour``, ``channel``, ``application``, ``stream``, ``endpoint``,
            ``status``, ``stage``.

    Raises:
        ConfigError: a key is unknown.
    """
    possible = [name for name in names(METRICS) if name not in (*_MERGED, "metric", "type", "run_id")]
    if unknown := sorted(set(by) - set(possible)):
        raise ConfigError(f"metrics have no key {', '.join(unknown)}; there are {', '.join(possible)}", "metrics(by)")
    return _ask(data, summaries.metrics([*by, "metric", "type"]))


def runs(data: EventData) -> DataFrame:
    """Return the outcome of each run, latest first.

    Columns:

    - ``run_id``
    - ``applications``, sorted
    - ``started`` and ``ended``: the times of the first and the last event
    - ``duration``: in seconds; the longest in an application's own report, otherwise from the first event to the last
    - ``outcome``: ``failed`` if a report says so, otherwise ``succeeded``; ``unknown`` without a report (the run is
      still running, or was killed)
    - ``exit_code``: the highest
    - ``records`` and ``bytes``: the sum of the reports, null without one
    - ``events`` and ``errors``
    """
    return _ask(data, summaries.RUNS)


def failures(data: EventData, since: datetime | None = None) -> DataFrame:
    """Return failures by fingerprint (see ``balog.event.fingerprints``), new ones first, then by count.

    Columns:

    - ``fingerprint`` and ``error_type``
    - ``message``: masked
    - ``channels`` and ``applications``: sorted
    - ``events``, ``first`` and ``last``
    - ``example struct<timestamp, id, run_id, message>``: the first event, not masked
    - ``is_new``: whether the first event is at or after ``since``; null without ``since``

    Args:
        data: of all times; events before ``since`` make a failure an old one.
        since: a time with a zone.
    """
    return _ask(data, summaries.FAILURES, since=micros(since))


def streams(data: EventData) -> DataFrame:
    """Return the volume and duration of each stream of each application, slowest first.

    Columns:

    - ``application`` and ``stream``
    - ``records``: the sum of the counter ``record_count`` (by its tag ``stream`` or ``endpoint``), and the reports of
      runs in which no application counts the stream
    - ``bytes`` and ``runs``: from the reports
    - ``seconds``: the sum of the timer ``sync_duration``, otherwise ``batch_processing_time``, and its ``p50``,
      ``p95``, ``p99``
    - ``requests`` and ``request_seconds``: of the timer ``http_request_duration`` with that stream, or an endpoint of
      its name
    - ``rate``: ``records`` by ``seconds``, or null
    """
    return _ask(data, summaries.STREAMS)


def quarantine(data: EventData) -> DataFrame:
    """Count invalid lines: ``reason``, ``lines``, and the first one's ``file`` and ``offset`` (bytes, decompressed)."""
    return _ask(data, QUARANTINE)


def _ask(data: EventData, question: str, **parameters: int | None) -> DataFrame:
    """Return the answer to a question about the data as a frame of their engine."""
    rollups = as_rollups(data)
    frames = {name: frame for name, frame in rollups._asdict().items() if f"{{{name}}}" in question}
    answer: DataFrame = engine_of(rollups.events).sql(question, parameters, **frames).frame
    return answer
