"""Runs one checked statement in Spark."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balog.analytics import register
from balog.analytics.querying.allowed_statements import check
from balog.analytics.querying.sources import RawSource, open_source
from balog.analytics.reading.schemas import columns_of_statement
from balog.analytics.reading.spark_types import spark_struct
from balog.analytics.sessions import cause
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
