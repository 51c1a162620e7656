"""Writes the result of a query: a table for people, CSV, JSON, JSON lines, or a Parquet file.

Spark's workers convert rows to JSON, so every type has the same representation in each format: timestamps in UTC, bytes
in base64, variants and nested values as JSON. At most one partition's rows are in memory.
"""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from balog.analytics.reporting.formats import printable
from balog.errors import ConfigError

TABLE_ROWS = 200
"""Rows of a table that are shown without a limit."""

_FEW = 10_000
_WITHOUT_JSON = (t.NullType, t.DayTimeIntervalType, t.YearMonthIntervalType, t.CalendarIntervalType)
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}


def write_text(frame: DataFrame, form: str, out: IO[str], limit: int | None) -> tuple[int, bool]:
    """Write the frame's rows, at most ``limit``; return their number, and whether there are more.

    Raises:
        ConfigError: two columns have the same name, for JSON.
        PySparkException: Spark could not compute a row.
    """
    if form in ("json", "jsonl"):
        _need_unique(frame)
    if form == "table" and limit is None:
        limit = TABLE_ROWS
    rows = _documents(frame, limit)
    writers = {"table": _table, "csv": _csv, "json": _json, "jsonl": _jsonl}
    written = writers[form](frame.columns, islice(rows, limit), out)
    more = limit is not None and written == limit and next(rows, None) is not None
    return written, more


def write_parquet(frame: DataFrame, path: Path, limit: int | None) -> int:
    """Write one Parquet file atomically and return the number of rows.

    Raises:
        ConfigError: two columns have the same name, or the file can't be written.
    """
    _need_unique(frame)
    folder = path.with_name(f".{path.name}.part")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        whole = frame if limit is None else frame.limit(limit)
        whole.coalesce(1).write.parquet(folder.absolute().as_uri())
        part = next(folder.glob("part-*.parquet"))
        rows: int = pq.ParquetFile(part).metadata.num_rows
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}; give another --output", str(path)) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def _documents(frame: DataFrame, limit: int | None) -> Iterator[str]:
    """Return each row as the JSON text of an object; one row more than the limit, if there is one."""
    some = frame if limit is None else frame.limit(limit + 1)
    names = [f"c{number}" for number in range(len(frame.columns))]
    are_json = [not isinstance(field.dataType, _WITHOUT_JSON) for field in frame.schema.fields]
    columns = [f.col(name) if is_json else f.col(name).cast("string") for name, is_json in zip(names, are_json)]
    texts = some.toDF(*names).select(f.to_json(f.struct(*columns), _JSON).alias("text"))
    # Small results come from one job over all partitions, large ones from one partition after the other.
    found = texts.collect() if limit is not None and limit <= _FEW else texts.toLocalIterator(prefetchPartitions=True)
    return (row[0] for row in found)


def _values(row: str) -> list[Any]:
    return list(msgspec.json.decode(row).values())


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def _table(columns: list[str], rows: Iterator[str], out: IO[str]) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    kept = [_values(row) for row in rows]
    for number, name in enumerate(columns):
        measured = [row[number] for row in kept if row[number] is not None]
        numeric = measured and all(isinstance(value, (int, float)) for value in measured)
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in kept:
        table.add_row(*(Text(printable(_text(value))) if value is not None else Text("–", "dim") for value in row))
    console = Console(file=out)
    if not console.is_terminal:
        console = Console(file=out, width=1_000, no_color=True, highlight=False)
    console.print(table)
    return len(kept)


def _csv(columns: list[str], rows: Iterator[str], out: IO[str]) -> int:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        writer.writerow(map(_text, _values(row)))
    return count


def _jsonl(columns: list[str], rows: Iterator[str], out: IO[str]) -> int:
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        out.write(_with_names(columns, row) + "\n")
    return count


def _json(columns: list[str], rows: Iterator[str], out: IO[str]) -> int:
    count = 0
    out.write("[")
    for count, row in enumerate(rows, 1):
        out.write(("\n" if count == 1 else ",\n") + _with_names(columns, row))
    out.write("\n]\n" if count else "]\n")
    return count


def _with_names(columns: list[str], row: str) -> str:
    raw = msgspec.json.decode(row, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(dict(zip(columns, raw.values()))).decode()


def _need_unique(frame: DataFrame) -> None:
    twice = [name for name, count in Counter(frame.columns).items() if count > 1]
    if twice:
        raise ConfigError(f"two columns are called {twice[0]!r}; give one another name with AS", "SQL")
