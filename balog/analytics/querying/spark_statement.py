"""Runs one checked statement in Spark, and writes its result.

Spark's workers convert rows to JSON, so every type has the same representation in each format: timestamps in UTC, bytes
in base64, variants and nested values as JSON. At most one partition's rows are in memory.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from typing import IO

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics import register
from balog.analytics.querying.rows import need_unique, shown_rows, write_rows
from balog.analytics.querying.sources import RawSource, open_source
from balog.analytics.querying.spark_allowed_statements import check
from balog.analytics.reading.schemas import columns_of_statement
from balog.analytics.reading.spark_types import spark_struct
from balog.analytics.sessions import cause, unwrapped
from balog.analytics.tables.catalogs.location import quoted
from balog.analytics.tables.parquet import ParquetStore
from balog.common.errors import ConfigError

_TRACEBACK = "Traceback (most recent call last):"
_MANY = re.compile(r"\s*SHOW\s+TABLES\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"(?:To (?:tolerate|return|bypass|process)|If (?:necessary|you want)|To continue|Correct the value"
    r"|Use the SQL function|(?:Please u|U)se [`']?try_).*",
    re.DOTALL,
)


def ask(spark: SparkSession, tables: ParquetStore | None, sql: str, sources: Sequence[str] = ()) -> DataFrame:
    """Return the statement's frame, not computed yet; the tables and the raw events in it become temporary views.

    Args:
        spark: the session.
        tables: the tables, or None.
        sql: the statement.
        sources: see ``check``.

    Raises:
        ConfigError: the statement is rejected (see ``check``), or Spark can't parse it.
    """
    names = tables.names() if tables is not None else []
    checked = check(sql, names, sources)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # pyspark logs each failure with its Java trace on stderr before it raises it
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    text = checked.text
    words = text.lower()
    frames = {
        # a view costs reading a schema, so only tables in the statement get one
        name: tables.frame(name)
        for name in names
        if tables is not None and (name.lower() in words or _MANY.match(text))
    }
    for path in checked.paths:
        source = open_source(path, sources)
        frames[source.name] = _read_source(spark, source, checked.words)
    for name, frame in frames.items():
        frame.createOrReplaceTempView(quoted(name))
    # Spark would replace ${env:…} in a statement by environment variables and settings, including secrets
    spark.conf.set("spark.sql.variable.substitute", "false")
    try:
        frame = spark.sql(text)
        frame.schema  # noqa: B018  under Spark Connect, this is when it is looked at
    except PySparkException as error:
        raise ConfigError(explain_failure(error), "SQL") from None
    if _MANY.match(text):  # views of others in the session are hidden
        frame = frame.where(f.col(frame.columns[1]).isin(names))
    return frame


def _read_source(spark: SparkSession, source: RawSource, words: Collection[str] | None) -> DataFrame:
    register(spark)
    return spark.read.format("balog").schema(spark_struct(columns_of_statement(words))).options(**source.options).load()


def explain_failure(error: PySparkException) -> str:
    """Return Spark's error in one line: the reason and its position in the statement."""
    text = cause(error) if _TRACEBACK in str(error) else str(error)
    message = re.sub(r"\s+", " ", text.partition("\n\n")[0].partition("== SQL")[0]).strip()
    message = re.sub(r"^(?:.*?: )?\[([A-Z_]+)(?:\.[A-Z_]+)*\] ", "", message)
    message = _ADVICE.sub("", re.sub(r"\s*SQLSTATE: \w+.*", "", message)).strip()
    where = re.search(r"line (\d+),? (?:pos (\d+)|position (\d+))", str(error))
    if where is None:
        return message.rstrip(". ")
    column = int(where[2]) + 1 if where[2] else int(where[3])  # "pos" counts from 0, "position" from 1
    return f"{message.rstrip('. ')}, line {where[1]}, column {column}"


_FEW = 10_000
_WITHOUT_JSON = (t.NullType, t.DayTimeIntervalType, t.YearMonthIntervalType, t.CalendarIntervalType)
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}


def write_text(frame: DataFrame, form: str, out: IO[str], limit: int | None) -> tuple[int, bool]:
    """Write the frame's rows, at most ``limit``; return their number, and whether there are more.

    Raises:
        ConfigError: two columns have the same name, for JSON.
        PySparkException: Spark could not compute a row.
    """
    if form == "jsonl":
        need_unique(frame.columns)
    limit = shown_rows(form, limit)
    try:
        return write_rows(frame.columns, documents(frame, limit), form, out, limit)
    except Py4JJavaError as error:  # pyspark converts errors of collect(), but not those of toLocalIterator()
        raise unwrapped(error) from None


def documents(frame: DataFrame, limit: int | None) -> Iterator[str]:
    """Return each row as the JSON text of an object; one row more than the limit, if there is one."""
    some = frame if limit is None else frame.limit(limit + 1)
    names = [f"c{number}" for number in range(len(frame.columns))]
    are_json = [not isinstance(field.dataType, _WITHOUT_JSON) for field in frame.schema.fields]
    columns = [f.col(name) if is_json else f.col(name).cast("string") for name, is_json in zip(names, are_json)]
    texts = some.toDF(*names).select(f.to_json(f.struct(*columns), _JSON).alias("text"))
    # Small results come from one job over all partitions, large ones from one partition after the other.
    rows = texts.collect() if limit is not None and limit <= _FEW else texts.toLocalIterator(prefetchPartitions=True)
    return (row[0] for row in rows)
