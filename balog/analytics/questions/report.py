"""The questions of the report. Their time ranges are parameters, see ``within``; their lists end at ``:most``."""

from __future__ import annotations

from collections.abc import Sequence

from balog.analytics.questions.runs import (
    COUNTED_STREAM,
    COUNTING_STREAM,
    EXAMPLE_KEY,
    IS_COUNTER,
    IS_ERROR,
    MERGED_RUNS,
    RUN_OUTCOME,
    RUN_SECONDS,
    counting,
    merged_sketch,
    percentiles,
    quantile,
    reports,
    total,
)


def within(name: str) -> str:
    """Return whether an hour overlaps a time range: the parameters ``<name>after`` and ``<name>until``, exclusive.

    An hour in which the range begins has only events of the range, so ``after`` is an hour before it.
    """
    return f"(hour > TIMESTAMP_MICROS(:{name}_after) AND hour < TIMESTAMP_MICROS(:{name}_until))"


INSIDE, READ = within("period"), within("read")
SPANS = {"": INSIDE, "_now": within("now"), "_before": within("before")}
"""The conditions of the period, of now and of before, by the suffix of their columns' names."""

_DURATION = "CASE WHEN run.duration BETWEEN 0 AND 1e8 THEN run.duration END"
"""The duration in a run's report, or null if it is longer than three years: one event must not break the report."""


def _spans(form: str) -> str:
    """Return columns for each span; ``form`` has ``%(inside)s`` and ``%(suffix)s``."""
    return ", ".join(form % {"inside": inside, "suffix": suffix} for suffix, inside in SPANS.items())


def _some(values: str, most: int) -> str:
    return f"SLICE(SORT_ARRAY(COLLECT_SET({values})), 1, {most})"


BOUNDS = """
SELECT MIN(CASE WHEN hour < TIMESTAMP_MICROS(:ahead) THEN hour END) AS first_usual,
  MAX(CASE WHEN hour < TIMESTAMP_MICROS(:ahead) THEN hour END) AS last_usual,
  MIN(hour) AS first, MAX(hour) AS last, COUNT(*) AS number
FROM (SELECT hour FROM {events} UNION ALL SELECT CAST(NULL AS TIMESTAMP) FROM {metrics})"""

_COUNTS = f"""
    {_spans("COALESCE(SUM(CASE WHEN %(inside)s THEN events END), 0L) AS events%(suffix)s")},
    {_spans("COALESCE(SUM(CASE WHEN %(inside)s THEN errors END), 0L) AS errors%(suffix)s")},
    MIN(CASE WHEN {INSIDE} THEN first END) AS first, MAX(CASE WHEN {INSIDE} THEN last END) AS last"""
_EVENTS = f"SELECT *, CASE WHEN {IS_ERROR} THEN events ELSE 0L END AS errors FROM {{events}} WHERE {READ}"

CHANNELS = f"""
SELECT channel, level, {_COUNTS} FROM ({_EVENTS}) GROUP BY channel, level
ORDER BY events DESC, channel, level LIMIT :most"""

APPLICATIONS = f"""
SELECT application, {_COUNTS} FROM ({_EVENTS}) WHERE application IS NOT NULL GROUP BY application
ORDER BY events_before DESC, application LIMIT :most"""
"""Events by application, those with the most before the time that is compared first."""


def _by_step(rows: str) -> str:
    """Return rows with their step ``at``."""
    return f"""
  SELECT *, CASE :step WHEN 'hour' THEN hour WHEN 'day' THEN DATE_TRUNC('DAY', hour)
    WHEN 'week' THEN DATE_TRUNC('WEEK', hour) ELSE DATE_TRUNC('MONTH', hour) END AS at
  FROM ({rows})"""


THROUGHPUT = f"SELECT at, {_COUNTS} FROM ({_by_step(_EVENTS)}) GROUP BY at ORDER BY at"

_NUMBERS = f"""
  SELECT hour, sum AS number FROM {{metrics}} WHERE {READ} AND {IS_COUNTER}
  UNION ALL
  SELECT hour, CAST(run.records AS DOUBLE) FROM ({reports(READ)}) AS reported
  LEFT JOIN ({counting(where=READ)}) AS counting ON reported.run_id = counting.run_id
  WHERE run.records IS NOT NULL AND counting.run_id IS NULL"""

RECORDS = f"""
SELECT at, {_spans("SUM(CASE WHEN %(inside)s THEN number END) AS records%(suffix)s")}
FROM ({_by_step(_NUMBERS)}) GROUP BY at ORDER BY at"""
"""Records by step: of each run from its counters, or else from its reports."""


def _each_span(*names: str) -> str:
    return ", ".join(_spans(f"CASE WHEN %(inside)s THEN {name} END AS {name}%(suffix)s") for name in names)


METRICS = f"""
WITH rows AS (
  SELECT metric, type, stream, stage, application,
    CASE WHEN metric = 'http_request_duration' THEN endpoint END AS endpoint,
    CASE WHEN metric = 'http_request_duration' THEN status END AS status,
    {_each_span("count", "sum", "low", "high", "sketch")}
  FROM {{metrics}} WHERE {READ}),
sets AS (
  SELECT metric, type, stream, endpoint, status, stage,
    CASE GROUPING_ID() WHEN 15 THEN 'metric' WHEN 7 THEN 'stream' WHEN 9 THEN 'request' WHEN 11 THEN 'endpoint'
      WHEN 14 THEN 'stage' END AS kind,
    {_some("CASE WHEN count IS NOT NULL THEN application END", 10)} AS applications,
    {
    ", ".join(
        f'''SUM(count{suffix}) AS count{suffix}, SUM(sum{suffix}) AS sum{suffix},
    MIN(low{suffix}) AS low{suffix}, MAX(high{suffix}) AS high{suffix},
    {merged_sketch(f"sketch{suffix}")} AS sketch{suffix}'''
        for suffix in SPANS
    )
}
  FROM rows
  GROUP BY metric, type, stream, endpoint, status, stage GROUPING SETS ((metric, type), (metric, type, stream),
    (metric, type, endpoint, status), (metric, type, endpoint), (metric, type, stage)))
SELECT metric, type, stream, endpoint, status, stage, kind AS grouping, applications,
  {", ".join(f"{name}{suffix}" for suffix in SPANS for name in ("count", "sum", "low", "high"))},
  {", ".join(percentiles(f"sketch{suffix}", suffix) for suffix in SPANS)}
FROM sets
WHERE kind = 'metric' OR kind = 'stream' AND stream IS NOT NULL OR kind = 'stage' AND stage IS NOT NULL
  OR kind IN ('request', 'endpoint') AND metric = 'http_request_duration'
ORDER BY count DESC NULLS LAST, kind, metric, type, stream, endpoint, status, stage LIMIT :most"""
"""Metrics alone, by stream, by endpoint and status, and by stage, as ``grouping`` says."""

_ALL_FAILURES = f"""
  SELECT fingerprint, MAX(error_type) AS error_type, MAX(message) AS message,
    MAX_BY(level, STRUCT(CASE level WHEN 'CRITICAL' THEN 2 WHEN 'ERROR' THEN 1 ELSE 0 END, COALESCE(level, '')))
      AS level,
    {_spans("COALESCE(SUM(CASE WHEN %(inside)s THEN events END), 0L) AS events%(suffix)s")},
    MIN(first) AS first, MAX(CASE WHEN {INSIDE} THEN last END) AS last,
    MIN_BY(example, CASE WHEN {INSIDE} THEN {EXAMPLE_KEY} END) AS example,
    {_some(f"CASE WHEN {INSIDE} THEN channel END", 20)} AS channels,
    {_some(f"CASE WHEN {INSIDE} THEN application END", 20)} AS applications,
    {_some(f"CASE WHEN {INSIDE} THEN example.run_id END", 20)} AS runs
  FROM {{errors}} WHERE hour < TIMESTAMP_MICROS(:period_until) GROUP BY fingerprint"""

FAILURES = f"SELECT * FROM ({_ALL_FAILURES}) WHERE events > 0 ORDER BY events DESC, fingerprint LIMIT :most"
ALL_FAILURES = f"SELECT COUNT(*) AS count FROM ({_ALL_FAILURES}) WHERE events > 0"

_STREAM = "CASE WHEN run.streams IS NOT NULL THEN STRUCT(COALESCE(application, '') AS name, run.streams AS streams) END"
ALL_RUNS = f"""
  SELECT run_id, applications,
    -- its own clock, if that is clearly earlier than its first event
    CASE WHEN begun < UNIX_MICROS(first) - 1000000L THEN TIMESTAMP_MICROS(begun) ELSE first END AS started,
    ended, duration, outcome, exit_code, problem, records, bytes, events, errors, streams, hour
  FROM (
    SELECT run_id, {_some("application", 20)} AS applications, MIN(first) AS first,
      MAX(last) AS ended, MIN(UNIX_MICROS(run.at) - CAST(ROUND(({_DURATION}) * 1e6) AS BIGINT)) AS begun,
      COALESCE(MAX({_DURATION}), {RUN_SECONDS}) AS duration, {RUN_OUTCOME} AS outcome,
      MAX(run.exit_code) AS exit_code, MAX(run.problem) AS problem, {total("run.records")} AS records,
      {total("run.bytes")} AS bytes, SUM(events) AS events, COALESCE(SUM(errors), 0L) AS errors,
      FLATTEN(TRANSFORM(SORT_ARRAY(COLLECT_LIST({_STREAM})), one -> one.streams)) AS streams, MAX(hour) AS hour
    FROM ({MERGED_RUNS.replace("GROUP BY", f"WHERE {READ} GROUP BY")}) GROUP BY run_id)"""
"""One row for each run, of the hours that are read."""

RUNS = f"""
SELECT run_id, applications, started, ended, duration, outcome, exit_code, problem, records, bytes, events, errors,
  SLICE(streams, 1, 100) AS streams
FROM ({ALL_RUNS}) WHERE {INSIDE}
ORDER BY CASE WHEN run_id = :run THEN 0 ELSE 1 END, started DESC, run_id LIMIT :most"""
"""The runs that ended in the period, latest first; before them the run ``:run``, which may be null."""

OUTCOMES = f"""
WITH runs AS (
  SELECT applications, outcome, duration, hour, ARRAY_REMOVE(applications, 'balog') AS others FROM ({ALL_RUNS})),
named AS (  -- brokers take part in every run; the run belongs to the tap and its target
  SELECT outcome, ARRAY_JOIN(CASE WHEN SIZE(others) > 0 THEN others ELSE applications END, ', ') AS names,
    {_spans("CASE WHEN %(inside)s THEN 1L END AS in%(suffix)s")},
    {_spans("CASE WHEN %(inside)s THEN duration END AS duration%(suffix)s")}
  FROM runs)
SELECT names, outcome, GROUPING_ID() AS grouping, {", ".join(f"SUM(in{suffix}) AS runs{suffix}" for suffix in SPANS)},
  {", ".join(f"PERCENTILE(duration{suffix}, 0.95) AS p95{suffix}" for suffix in SPANS)}
FROM named GROUP BY names, outcome GROUPING SETS ((names, outcome), (names), (outcome), ())
ORDER BY grouping DESC, runs DESC NULLS LAST, names, outcome LIMIT :most"""
"""Runs by application and outcome, and over all of them (``names`` null) the p95 of their durations."""

STREAMS = f"""
WITH parts AS (
  SELECT {COUNTED_STREAM} AS stream, application, sum AS counted, NULL AS records, NULL AS bytes FROM {{metrics}}
  WHERE {INSIDE} AND {IS_COUNTER}
  UNION ALL
  SELECT one.stream, application, NULL, CASE WHEN counting.run_id IS NULL THEN one.records END, one.bytes
  FROM (SELECT run_id, application, EXPLODE(run.streams) AS one FROM ({reports(INSIDE)})) AS reported
  LEFT JOIN ({counting(COUNTING_STREAM, READ)}) AS counting
    ON reported.run_id = counting.run_id AND reported.one.stream = counting.name),
chosen AS (
  SELECT stream, application, SUM(counted) AS counted, {total("records")} AS reported, {total("bytes")} AS bytes
  FROM parts WHERE stream IS NOT NULL GROUP BY stream, application),
timed AS (
  SELECT DISTINCT stream, application, metric FROM {{metrics}}
  WHERE {INSIDE} AND type = 'timer' AND stream IS NOT NULL),
rows AS (
  SELECT stream, CAST(NULL AS STRING) AS timer, application, counted, reported, bytes FROM chosen
  UNION ALL
  SELECT chosen.stream, timed.metric, chosen.application, chosen.counted, chosen.reported, chosen.bytes
  FROM chosen JOIN timed ON chosen.stream = timed.stream AND chosen.application <=> timed.application)
SELECT stream, timer, SUM(counted) AS counted, {total("reported")} AS reported, {total("bytes")} AS bytes,
  {_some("application", 10)} AS applications
FROM rows GROUP BY stream, timer
ORDER BY timer IS NOT NULL, counted DESC NULLS LAST, reported DESC NULLS LAST, stream, timer LIMIT :most"""
"""The records and bytes of streams in the period: of all applications, and of those with each of its timers.

``counted`` is the sum of the counters, ``reported`` that of the runs without counters of the stream.
"""


def hourly(keys: Sequence[tuple[str, str | None, str | None]]) -> str:
    """Return the question for ``metric, stream, endpoint, hour, count, p95`` of a few metrics.

    A stream is aggregated over all endpoints, an endpoint over all streams.

    Args:
        keys: metric, stream and endpoint of each; the parameters are ``metric0``, ``stream0``, ``endpoint0`` and on.
    """
    numbers = range(len(keys))
    streams, endpoints = (
        ", ".join(f":metric{number}" for number in numbers if keys[number][index] is not None) or "NULL"
        for index in (1, 2)
    )
    wanted = " OR ".join(
        f"metric = :metric{number} AND stream <=> CAST(:stream{number} AS STRING) "
        f"AND endpoint <=> CAST(:endpoint{number} AS STRING)"
        for number in numbers
    )
    return f"""
SELECT metric, stream, endpoint, hour, count, {quantile("sketch", 0.95)} AS p95 FROM (
  SELECT metric, stream, endpoint, hour, SUM(count) AS count, {merged_sketch("sketch")} AS sketch FROM (
    SELECT metric, hour, count, sketch, CASE WHEN metric IN ({streams}) THEN stream END AS stream,
      CASE WHEN metric IN ({endpoints}) THEN endpoint END AS endpoint
    FROM {{metrics}} WHERE {SPANS["_before"]} OR {SPANS["_now"]})
  WHERE {wanted} GROUP BY metric, stream, endpoint, hour)
ORDER BY metric, stream, endpoint, hour"""
