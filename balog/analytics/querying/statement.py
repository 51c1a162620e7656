"""Runs one checked statement in Spark."""

from __future__ import annotations

import logging
import re

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balog.analytics.querying.policy import check
from balog.analytics.tables import Tables
from balog.errors import ConfigError
from balog.suggestions import suggest

_MANY = re.compile(r"\s*SHOW\s+(?:TABLES|VIEWS)\b", re.IGNORECASE)
_ADVICE = re.compile(r"(?:To (?:tolerate|return|bypass)|Use `?try_|If necessary|To continue).*", re.DOTALL)


def ask(spark: SparkSession, tables: Tables, sql: str) -> DataFrame:
    """Return the statement's frame, not computed yet; the tables become temporary views.

    Raises:
        ConfigError: the statement is rejected (see ``check``), or Spark can't parse it.
    """
    names = tables.names()
    text = check(sql, names)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # pyspark logs each failure with its Java trace on stderr before it raises it
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    words = text.lower()
    for name in names:
        # a view costs reading a schema, so only tables in the statement get one
        if name.lower() in words or _MANY.match(text):
            tables.frame(name).createOrReplaceTempView(name)
    # Spark would replace ${env:…} in a statement by environment variables and settings, including secrets
    spark.conf.set("spark.sql.variable.substitute", "false")
    try:
        frame = spark.sql(text)
        frame.schema  # noqa: B018  under Spark Connect, this is when it is looked at
    except PySparkException as error:
        raise ConfigError(explain_failure(error, text), "SQL") from None
    if _MANY.match(text):  # views of others in the session are hidden
        frame = frame.where(f.col(frame.columns[1]).isin(names))
    return frame


def explain_failure(error: PySparkException, sql: str) -> str:
    """Return Spark's error in one line: the reason, its position in the statement, and similar names."""
    message = re.sub(r"\s+", " ", str(error).partition("\n\n")[0].partition("== SQL")[0]).strip()
    message = re.sub(r"^(?:.*?: )?\[([A-Z_]+)(?:\.[A-Z_]+)*\] ", "", message)
    message = _ADVICE.sub("", re.sub(r"\s*SQLSTATE: \w+.*", "", message)).strip()
    where = re.search(r"\(line (\d+), (?:pos (\d+)|position (\d+))\)", str(error))
    if where:
        column = int(where[2]) + 1 if where[2] else int(where[3])  # "pos" counts from 0, "position" from 1
        return f"{message.rstrip('. ')}, line {where[1]}, column {column}"
    parameters = error.getMessageParameters() or {}
    if "objectName" in parameters and "proposal" in parameters:
        name = parameters["objectName"].replace("`", "").rpartition(".")[2]
        names = [part.strip().replace("`", "").rpartition(".")[2] for part in parameters["proposal"].split(",")]
        message = f"no column {name!r}{suggest(name, sorted(names), limit=20)}"
        return message.replace(";", f"{_position(error, sql)};", 1)
    return f"{message.rstrip('. ')}{_position(error, sql)}"


def _position(error: PySparkException, sql: str) -> str:
    for context in error.getQueryContext() or []:
        try:
            start = context.startIndex()
        except Exception:  # noqa: S112  a context of the DataFrame API has no place in a text
            continue
        if 0 <= start < len(sql):
            line = sql.count("\n", 0, start) + 1
            return f", line {line}, column {start - sql.rfind(chr(10), 0, start)}"
    return ""
