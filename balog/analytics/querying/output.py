"""Writes the result of a query: a table for people, CSV, or JSON lines.

Spark's workers convert rows to JSON, so every type has the same representation in each format: timestamps in UTC, bytes
in base64, variants and nested values as JSON. At most one partition's rows are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.querying.rows import need_unique, shown_rows, write_rows
from balog.analytics.sessions import unwrapped

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
