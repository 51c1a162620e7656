"""The questions of ``balog.analytics.functions``."""

from __future__ import annotations

from collections.abc import Sequence

from balog.analytics.questions.runs import (
    COUNTED_STREAM,
    COUNTING_STREAM,
    EXAMPLE_KEY,
    IS_COUNTER,
    IS_ERROR,
    MERGED_RUNS,
    REPORTS,
    RUN_OUTCOME,
    RUN_SECONDS,
    counting,
    long_total,
    merged_sketch,
    percentiles,
    total,
    whole,
)

HOURS = """
SELECT * FROM {rows}
WHERE hour >= COALESCE(TIMESTAMP_MICROS(CAST(:since AS BIGINT)), hour)
  AND (hour < TIMESTAMP_MICROS(CAST(:until AS BIGINT)) OR CAST(:until AS BIGINT) IS NULL)"""

CHANNELS = f"""
SELECT channel, level, SUM(events) AS events, SUM(CASE WHEN {IS_ERROR} THEN events ELSE 0 END) AS errors,
  MIN(first) AS first, MAX(last) AS last
FROM {{events}} GROUP BY channel, level ORDER BY channel, level"""


def metrics(keys: Sequence[str]) -> str:
    """Return the question for metrics by these keys, which are columns of ``rollup_metrics``."""
    named = ", ".join(keys)
    return f"""
SELECT {named}, count, sum, low, high, {percentiles()} FROM (
  SELECT {named}, SUM(count) AS count, SUM(sum) AS sum, MIN(low) AS low, MAX(high) AS high,
    {merged_sketch("sketch")} AS sketch
  FROM {{metrics}} GROUP BY {named})
ORDER BY {named}"""


RUNS = f"""
SELECT run_id, SORT_ARRAY(COLLECT_SET(application)) AS applications, MIN(first) AS started, MAX(last) AS ended,
  COALESCE(MAX(run.duration), {RUN_SECONDS}) AS duration, {RUN_OUTCOME} AS outcome, MAX(run.exit_code) AS exit_code,
  {long_total("run.records")} AS records, {long_total("run.bytes")} AS bytes, SUM(events) AS events,
  SUM(errors) AS errors
FROM ({MERGED_RUNS}) GROUP BY run_id ORDER BY started DESC, run_id"""

FAILURES = f"""
SELECT *, first >= TIMESTAMP_MICROS(CAST(:since AS BIGINT)) AS is_new FROM (
  SELECT fingerprint, error_type, message, SORT_ARRAY(COLLECT_SET(channel)) AS channels,
    SORT_ARRAY(COLLECT_SET(application)) AS applications, SUM(events) AS events, MIN(first) AS first,
    MAX(last) AS last, MIN_BY(example, {EXAMPLE_KEY}) AS example
  FROM {{errors}} GROUP BY fingerprint, error_type, message)
ORDER BY is_new DESC, events DESC, fingerprint, error_type, message"""

STREAMS = f"""
WITH reports AS ({REPORTS}),
streams AS (SELECT run_id, application, EXPLODE(run.streams) AS one FROM reports),
counting AS ({counting(COUNTING_STREAM)}),
parts AS (
  SELECT application, {COUNTED_STREAM} AS stream, NULL AS reported, NULL AS bytes, NULL AS runs,
    CASE WHEN {IS_COUNTER} THEN sum END AS counted,
    CASE WHEN metric = 'http_request_duration' THEN count END AS requests,
    CASE WHEN metric = 'http_request_duration' THEN sum END AS request_seconds,
    CASE WHEN metric = 'sync_duration' THEN sum END AS sync,
    CASE WHEN metric = 'batch_processing_time' THEN sum END AS batch,
    CASE WHEN metric = 'sync_duration' THEN sketch END AS sync_sketch,
    CASE WHEN metric = 'batch_processing_time' THEN sketch END AS batch_sketch
  FROM {{metrics}}
  WHERE metric IN ('record_count', 'http_request_duration', 'sync_duration', 'batch_processing_time')
  UNION ALL
  SELECT application, one.stream, CASE WHEN counting.run_id IS NULL THEN one.records END, one.bytes, 1L, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL
  FROM streams LEFT JOIN counting ON streams.run_id = counting.run_id AND streams.one.stream = counting.name),
sums AS (
  SELECT application, stream, {total("reported")} AS reported, {long_total("bytes")} AS bytes, SUM(runs) AS runs,
    SUM(counted) AS counted, SUM(requests) AS requests, SUM(request_seconds) AS request_seconds,
    SUM(sync) AS sync, SUM(batch) AS batch,
    {merged_sketch("sync_sketch")} AS sync_sketch, {merged_sketch("batch_sketch")} AS batch_sketch
  FROM parts WHERE stream IS NOT NULL GROUP BY application, stream),
rows AS (
  SELECT *, CASE WHEN counted IS NULL THEN TRY_CAST(reported AS BIGINT)
    ELSE TRY_CAST(CAST({whole("counted")} AS DECIMAL(28, 0)) + COALESCE(reported, 0) AS BIGINT) END AS records,
    COALESCE(sync, batch) AS seconds, COALESCE(sync_sketch, batch_sketch) AS sketch
  FROM sums WHERE COALESCE(counted, reported, runs, sync, batch) IS NOT NULL)  -- other endpoints are not streams
SELECT application, stream, records, bytes, runs, seconds, {percentiles()}, requests, request_seconds,
  CASE WHEN seconds > 0 THEN records / seconds END AS rate
FROM rows ORDER BY seconds DESC NULLS LAST, request_seconds DESC NULLS LAST, application, stream"""
