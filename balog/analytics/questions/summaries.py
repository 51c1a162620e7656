"""The questions of ``balog.analytics.functions``."""

from __future__ import annotations

from collections.abc import Sequence

from balog.analytics.questions.fragments import (
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
    quantile,
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

HTTP = f"""
WITH requests AS (
  SELECT endpoint, status, sketch, metric = 'http_request_duration' AS is_timed, count, sum, high
  FROM {{metrics}} WHERE metric IN ('http_request_duration', 'http_request_count')),
sums AS (
  SELECT endpoint, status, SUM(CASE WHEN is_timed THEN count END) AS timed,
    SUM(CASE WHEN NOT is_timed THEN sum END) AS counted, SUM(CASE WHEN is_timed THEN sum END) AS seconds,
    {merged_sketch("sketch")} AS sketch, MAX(CASE WHEN is_timed THEN high END) AS high
  FROM requests GROUP BY endpoint, status)
SELECT endpoint, status, COALESCE(timed, {whole("counted")}) AS requests, seconds, {percentiles()}, high
FROM sums ORDER BY requests DESC, endpoint, status"""


def _all_of(measured: str, number: str) -> str:
    """Return the sum of whole numbers; null if one that was measured as a double is beyond 64 bits."""
    beyond = f"COUNT(CASE WHEN {measured} IS NOT NULL AND {number} IS NULL THEN 1 END)"
    return f"CASE WHEN {beyond} = 0 THEN {long_total(number)} END"


_VOLUME = f"""
counting AS ({counting()}),
chosen AS (
  SELECT hour, {whole("counted")} AS records, counted
  FROM (SELECT hour, SUM(sum) AS counted FROM {{metrics}} WHERE {IS_COUNTER} GROUP BY application, hour)
  UNION ALL
  SELECT hour, run.records, NULL
  FROM reports LEFT JOIN counting ON reports.run_id = counting.run_id WHERE counting.run_id IS NULL),
passed AS (
  SELECT hour, stage, application, SUM(sum) AS passed FROM {{metrics}} WHERE metric = 'pipe_bytes'
  GROUP BY hour, stage, application),
most AS (
  SELECT hour, MAX(passed) AS passed FROM (SELECT hour, stage, SUM(passed) AS passed FROM passed GROUP BY hour, stage)
  GROUP BY hour),
-- a pipe has counted the bytes of the runs that it took part in
piped AS (
  SELECT DISTINCT run_id FROM {{runs}}
  WHERE COALESCE(application, '') IN (SELECT COALESCE(application, '') FROM passed)),
reported AS (
  SELECT reports.hour AS hour, reports.run.bytes AS bytes
  FROM reports LEFT JOIN piped ON reports.run_id = piped.run_id WHERE piped.run_id IS NULL),
volume AS (
  SELECT hour, events, CASE WHEN {IS_ERROR} THEN events ELSE 0 END AS errors, NULL AS records, NULL AS counted,
    NULL AS bytes, NULL AS passed FROM {{events}}
  UNION ALL
  SELECT hour, NULL, NULL, records, counted, NULL, NULL FROM chosen
  UNION ALL
  SELECT hour, NULL, NULL, NULL, NULL, bytes, NULL FROM reported
  UNION ALL
  SELECT hour, NULL, NULL, NULL, NULL, {whole("passed")}, passed FROM most),
throughput AS (
  SELECT hour, COALESCE(SUM(events), 0L) AS events, COALESCE(SUM(errors), 0L) AS errors,
    {_all_of("counted", "records")} AS records, {_all_of("passed", "bytes")} AS bytes
  FROM volume GROUP BY hour)"""

THROUGHPUT = f"WITH reports AS ({REPORTS}), {_VOLUME} SELECT * FROM throughput ORDER BY hour"


def _total(metric: str) -> str:
    return f"COALESCE(SUM(CASE WHEN metric = '{metric}' THEN sum END), 0D)"


WAITING = f"""
SELECT *, CASE WHEN GREATEST(reading, writing) <= 0 THEN 'neither' WHEN reading >= writing THEN 'reading'
    ELSE 'writing' END AS waiting
FROM (
  SELECT stage, {_total("pipe_read_wait_seconds")} AS reading, {_total("pipe_write_wait_seconds")} AS writing,
    {whole(_total("pipe_bytes"))} AS bytes, {whole(_total("pipe_lines"))} AS lines
  FROM {{metrics}} WHERE STARTSWITH(metric, 'pipe_') AND stage IS NOT NULL GROUP BY stage)
ORDER BY GREATEST(reading, writing) DESC, stage"""


def _period(alias: str) -> str:
    return f"CASE WHEN hour >= TIMESTAMP_MICROS(:since) THEN 'now' ELSE 'before' END AS {alias}"


def _stats(table: str, *names: str) -> str:
    return " UNION ALL ".join(
        f"SELECT period, '{name}' AS figure, CAST({name} AS DOUBLE) AS value FROM {table}" for name in names
    )


HEALTH = f"""
WITH reports AS ({REPORTS}), {_VOLUME},
counted AS (
  SELECT period, COALESCE(SUM(events), 0L) AS events, COALESCE(SUM(errors), 0L) AS errors,
    SUM(COALESCE(counted, CAST(records AS DOUBLE))) AS records
  FROM (SELECT *, {_period("period")} FROM volume) GROUP BY period),
failed AS (
  SELECT period, COUNT(DISTINCT fingerprint) AS failures FROM (SELECT fingerprint, {_period("period")} FROM {{errors}})
  GROUP BY period),
ran AS (
  SELECT period, COUNT(*) AS runs, COUNT(CASE WHEN run.outcome = 'failed' THEN 1 END) AS failed,
    PERCENTILE(run.duration, 0.95) AS run_p95
  FROM (SELECT run, {_period("period")} FROM reports) GROUP BY period),
requested AS (
  SELECT period, SUM(count) AS requests, {merged_sketch("sketch")} AS sketch
  FROM (SELECT count, sketch, {_period("period")} FROM {{metrics}} WHERE metric = 'http_request_duration')
  GROUP BY period),
answered AS (SELECT period, requests, {quantile("sketch", 0.95)} AS request_p95 FROM requested),
stats AS (
  {_stats("counted", "events", "errors", "records")} UNION ALL {_stats("failed", "failures")} UNION ALL
  {_stats("ran", "runs", "failed", "run_p95")} UNION ALL {_stats("answered", "requests", "request_p95")}),
sides AS (
  SELECT figure, MAX(CASE WHEN period = 'now' THEN value END) AS now,
    MAX(CASE WHEN period = 'before' THEN value END) AS before
  FROM stats GROUP BY figure)
SELECT figure, now, before, CASE WHEN before <> 0 THEN now / before END AS change FROM sides ORDER BY figure"""
