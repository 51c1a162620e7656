"""Events counted where they are parsed: small rows that can be merged, and the tables that people ask for.

A rollup has a row for each block of a file and each combination of its first six columns; a metric of the payload
type ``metrics`` has rows of its own with ``events`` 0. Columns (``schemas.ROLLUP``):

- ``channel``, ``level`` (null in facility 0.0.1), ``application`` and ``run_id`` (from the context, may be null),
  ``type`` and ``metric`` (null unless the events are metrics; ``type`` is ``counter``, ``timer``, ``gauge``, or
  ``value`` where the payload does not say);
- ``events``: how many; ``first`` and ``last``: their earliest and latest timestamps;
- ``measured``, ``total``: how many finite values, and their sum; ``values``: the values themselves, null for counters;
- ``run``: the latest ``run`` report among them (``at``, ``outcome``, ``duration`` in seconds, ``exit_code``,
  ``records``);
- ``quarantine``: as in events; such a row has everything else null.

``channels``, ``metrics``, ``runs`` and ``quarantine`` take a rollup, or a frame of events and make one of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.reading.schemas import QUARANTINE, ROLLUP, RUN
from balog.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from balog.analytics.reading.parser import Parser

__all__ = ["PERCENTILES", "RollupQuery", "channels", "metrics", "quarantine", "rollup", "runs"]

PERCENTILES = (0.50, 0.95, 0.99)
"""Exact, by linear interpolation between the two nearest of the sorted values: the rank is ``p * (n - 1)``, from 0."""

_ERRORS = ("ERROR", "CRITICAL")


# -- in the worker ------------------------------------------------------------------------------------------------

_COLUMNS = """{
  'schema': 'VARCHAR',
  'header': 'STRUCT(channel VARCHAR, "timestamp" TIMESTAMPTZ, "level" VARCHAR,
                    context STRUCT(application VARCHAR, run_id VARCHAR))',
  'payload': 'STRUCT(cls_type VARCHAR, "type" VARCHAR, metric VARCHAR, "value" VARCHAR,
                     outcome VARCHAR, duration VARCHAR, exit_code VARCHAR, records VARCHAR)'
}"""
_KEYS = """header.channel AS channel, header."level" AS "level",
  header.context.application AS application, header.context.run_id AS run_id"""
_ROW = f"""{_KEYS},
  CASE WHEN payload.cls_type = 'metric' THEN payload."type" END AS "type",
  CASE WHEN payload.cls_type = 'metric' THEN payload.metric END AS metric,
  header."timestamp" AS moment,
  CASE WHEN payload.cls_type = 'metric' AND isfinite(TRY_CAST(payload."value" AS DOUBLE))
    THEN TRY_CAST(payload."value" AS DOUBLE) END AS number,
  CASE WHEN payload.cls_type = 'run' THEN payload END AS report,
  payload.cls_type AS kind"""
_ROLLUP = """channel, "level", application, run_id, "type", metric,
  count(*) AS events, min(moment) AS "first", max(moment) AS "last", count(number) AS measured, sum(number) AS total,
  list(number) FILTER ("type" <> 'counter' AND number IS NOT NULL) AS "values",
  max(CASE WHEN kind = 'run' THEN moment END) AS reported, arg_max(report, moment) FILTER (kind = 'run') AS report,
  NULL AS quarantine, count(*) FILTER (kind = 'metrics') AS many"""
_SELECT = f"""channel, "level", application, run_id, "type", metric, events, "first", "last", measured, total, "values",
  CASE WHEN reported IS NOT NULL THEN struct_pack(
    "at" := reported, outcome := report.outcome, duration := TRY_CAST(report.duration AS DOUBLE),
    exit_code := TRY_CAST(report.exit_code AS INTEGER), records := TRY_CAST(report.records AS BIGINT)) END AS run,
  quarantine, many FROM (SELECT {_ROLLUP} FROM (SELECT {_ROW}"""  # noqa: S608

# A payload of the type ``metrics`` holds several values; few blocks have one, and those are asked once more.
_MANY_COLUMNS = _COLUMNS.replace('"value" VARCHAR', '"values" JSON')
_MANY_NAME, _MANY_VALUE = (
    "json_extract_string(item, '$.name')",
    "TRY_CAST(json_extract_string(item, '$.value') AS DOUBLE)",
)
_MANY_SELECT = f"""{_KEYS}, 'value' AS "type", {_MANY_NAME} AS metric, list({_MANY_VALUE}) AS "values",
  0::BIGINT AS events, count(*) AS measured, sum({_MANY_VALUE}) AS total"""
_MANY_REST = f""", unnest(json_extract(payload."values", '$[*]')) AS items(item)
  WHERE payload.cls_type = 'metrics' AND isfinite({_MANY_VALUE}) AND {_MANY_NAME} IS NOT NULL GROUP BY ALL"""


class RollupQuery:
    """The rollup of one block."""

    @property
    def arrow(self) -> pa.Schema:
        """``schemas.ROLLUP``."""
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(ROLLUP, timezone="UTC")

    def run(self, parser: Parser) -> tuple[int, pa.Table]:
        """Give a row for each combination of keys in the block."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from balog.analytics.reading.scan import check_years

        table = parser.table(_COLUMNS, _SELECT, ") GROUP BY ALL)")
        check_years(table.column("first"))
        check_years(table.column("last"))
        count = pc.sum(table.column("events")).as_py() or 0
        many = pc.sum(table.column("many")).as_py()
        table = table.drop_columns(["many"])
        if many:
            values = parser.table(_MANY_COLUMNS, _MANY_SELECT, _MANY_REST)
            table = pa.concat_tables([table, values], promote_options="default")
        return count, table


# -- in Spark -----------------------------------------------------------------------------------------------------


def rollup(events: DataFrame) -> DataFrame:
    """Give a frame of events as a rollup: a row for each event, and one for each value of a ``metrics`` payload.

    Use it for events that are a frame already (filtered, joined, streamed). Out of files,
    ``spark.read.format("balog").option("rollup", True).load(path)`` is several times faster.

    Args:
        events: with ``channel``, ``timestamp``, ``level``, ``context`` and ``payload``, the latter a variant or a
            struct with at least the fields of ``schemas.EVENTS``; ``quarantine`` may be there.

    Raises:
        ConfigError: a column is missing or of another type.
    """
    missing = {"channel", "timestamp", "level", "context", "payload"} - set(events.columns)
    kind = None if missing else events.schema["payload"].dataType
    if missing or not isinstance(kind, (t.StructType, t.VariantType)):
        wrong = f"no column {', '.join(sorted(missing))}" if missing else "payload is neither a variant nor a struct"
        raise ConfigError(f"{wrong}; read them with balog.analytics.reading.schemas.EVENTS", "a frame of events")

    def payload(name: str, kind_: str) -> Column:
        return (
            f.try_variant_get("payload", f"$.{name}", kind_)
            if isinstance(kind, t.VariantType)
            else f.col("payload")[name]
        )

    cls_type = f.col("cls_type") if "cls_type" in events.columns else payload("cls_type", "string")
    is_metric, is_run = cls_type == "metric", cls_type == "run"
    value = f.when(is_metric, payload("value", "double"))
    value = f.when(~f.isnan(value) & (f.abs(value) != float("inf")), value)
    bad = f.col("quarantine") if "quarantine" in events.columns else f.lit(None).cast(QUARANTINE)
    run = f.struct(f.col("timestamp").alias("at"), *(
        payload(name, kind_).alias(name)
        for name, kind_ in (("outcome", "string"), ("duration", "double"), ("exit_code", "int"), ("records", "bigint"))
    ))  # fmt: skip
    keys: list[Column] = [
        f.col("channel"),
        f.col("level"),
        f.col("context")["application"].alias("application"),
        f.col("context")["run_id"].alias("run_id"),
    ]
    type_ = payload("type", "string")
    rows = events.select(
        *keys,
        f.when(is_metric, type_).alias("type"),
        f.when(is_metric, payload("metric", "string")).alias("metric"),
        f.when(bad.isNull(), 1).cast("bigint").alias("events"),
        f.col("timestamp").alias("first"),
        f.col("timestamp").alias("last"),
        f.when(bad.isNull(), value.isNotNull().cast("bigint")).alias("measured"),
        value.alias("total"),
        f.when((type_ != "counter") & value.isNotNull(), f.array(value)).alias("values"),
        f.when(is_run, run).cast(RUN).alias("run"),
        bad.alias("quarantine"),
    )
    items = f.explode(payload("values", "array<struct<name string, value double>>")).alias("item")
    number = f.col("item.value")
    nothing = f.lit(None)
    many = events.where(cls_type == "metrics").select(*keys, items)
    many = many.where(
        number.isNotNull() & ~f.isnan(number) & (f.abs(number) != float("inf")) & f.col("item.name").isNotNull()
    )
    many = many.select(
        *("channel", "level", "application", "run_id"),
        f.lit("value").alias("type"),
        f.col("item.name").alias("metric"),
        f.lit(0).cast("bigint").alias("events"),
        nothing.cast("timestamp").alias("first"),
        nothing.cast("timestamp").alias("last"),
        f.lit(1).cast("bigint").alias("measured"),
        number.alias("total"),
        f.array(number).alias("values"),
        nothing.cast(RUN).alias("run"),
        nothing.cast(QUARANTINE).alias("quarantine"),
    )
    whole: DataFrame = rows.unionByName(many)
    return whole


def _rolled(frame: DataFrame) -> DataFrame:
    return frame if {"measured", "values", "run"} <= set(frame.columns) else rollup(frame)


def channels(frame: DataFrame) -> DataFrame:
    """Count events: ``channel``, ``level``, ``events``, ``errors`` (those of level ERROR or CRITICAL)."""
    events = (
        _rolled(frame)
        .where("quarantine IS NULL AND events > 0")
        .groupBy("channel", "level")
        .agg(f.sum("events").alias("events"))
    )
    errors = f.when(f.col("level").isin(*_ERRORS), f.col("events")).otherwise(0)
    return events.withColumn("errors", errors.cast("bigint")).orderBy("channel", "level")


def metrics(frame: DataFrame) -> DataFrame:
    """Sum metrics up: ``metric``, ``type``, ``count`` (of finite values), ``sum``, ``p50``, ``p95``, ``p99``.

    The percentiles are exact (see ``PERCENTILES``) and null for counters, whose values are deltas. All values of one
    metric come together in one task's memory, 8 bytes each.
    """
    of_one = _rolled(frame).where("metric IS NOT NULL").groupBy("metric", "type")
    values = f.sort_array(f.flatten(f.collect_list("values")))
    rows = of_one.agg(
        f.sum("measured").alias("count"), f.coalesce(f.sum("total"), f.lit(0.0)).alias("sum"), values.alias("values")
    )
    names = [f"p{round(100 * share)}" for share in PERCENTILES]
    shares = [_percentile(share).alias(name) for share, name in zip(PERCENTILES, names)]
    return rows.select("metric", "type", "count", "sum", *shares).orderBy("metric", "type")


def _percentile(share: float) -> Column:
    rank = (f.size("values") - 1) * f.lit(share)
    low = f.floor(rank).cast("int")
    below, above = f.col("values")[low], f.col("values")[f.least(low + 1, f.size("values") - 1)]
    return f.when(f.size("values") > 0, below + (above - below) * (rank - low))


def runs(frame: DataFrame) -> DataFrame:
    """Tell what became of each run, the latest first.

    Columns: ``run_id``; ``applications``, sorted; ``started``, the first event's time; ``duration`` in seconds, as the
    run's own report has it, else from the first event to the last; ``outcome``: ``failed`` if any application's report
    says so, else ``succeeded``, or ``unknown`` without a report (the run goes on, or was killed); ``records``, summed
    over the reports, null without one; ``events``; ``errors``.
    """
    rows = _rolled(frame).where("run_id IS NOT NULL AND events > 0")
    errors = f.when(f.col("level").isin(*_ERRORS), f.col("events")).otherwise(0)
    parts = rows.groupBy("run_id", "application").agg(
        f.min("first").alias("first"),
        f.max("last").alias("last"),
        f.sum("events").alias("events"),
        f.sum(errors).alias("errors"),
        f.max("run").alias("run"),
    )
    failed = f.max(f.when(f.col("run.outcome") == "failed", True)).isNotNull()
    outcome = f.when(failed, "failed").when(f.max("run.outcome").isNotNull(), f.max("run.outcome")).otherwise("unknown")
    spent = f.max("last").cast("double") - f.min("first").cast("double")
    whole = parts.groupBy("run_id").agg(
        f.sort_array(f.collect_set("application")).alias("applications"),
        f.min("first").alias("started"),
        f.coalesce(f.max("run.duration"), spent).alias("duration"),
        outcome.alias("outcome"),
        f.sum("run.records").alias("records"),
        f.sum("events").alias("events"),
        f.sum("errors").alias("errors"),
    )
    return whole.orderBy(f.desc("started"), "run_id")


def quarantine(frame: DataFrame) -> DataFrame:
    """Count bad lines: ``reason``, ``lines``, the first one's ``file`` and ``offset`` (bytes, decompressed)."""
    bad = _rolled(frame).where("quarantine IS NOT NULL").groupBy("quarantine.reason")
    first = f.min(f.struct("quarantine.file", "quarantine.offset"))
    rows = bad.agg(f.count("*").alias("lines"), first.alias("example"))
    return rows.select("reason", "lines", "example.file", "example.offset").orderBy(f.desc("lines"), "reason")
