"""The rows that workers return to the driver: one for each file that they wrote, and counts, shapes and errors.

Errors of the disk and wrong rows are rows, too, without a failed task: another try of the task would not help, and
Spark would print a stack trace for each.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import wraps
from typing import Any, ParamSpec

import pyarrow as pa
from pyspark.sql import DataFrame

from balog.analytics.reading.spark_types import arrow_schema, struct
from balog.analytics.tables.store import RowError, StagedFile, TableError

FILES = struct(
    "table string, path string, day date, rows bigint, size bigint, first timestamp, last timestamp, shape binary"
)
"""A row for each file that a worker wrote. Rows with one of the following constants as ``table`` have other content."""

COUNT = "-count"
"""Row of ``FILES``: a number, of what ``path`` says.

- ``read``: lines that were read, invalid ones included
- ``old``: events of days before the floor, which are not loaded
- ``timeless``: events whose lines have no time
- ``untyped``: events whose type has no table
- ``unseen``: events of types beyond the limit of types
- ``events``, ``quarantine``: of a preview
"""

SHAPE = "-shape"
"""Row of ``FILES``: the number of payloads of the type ``path``, and their ``shapes.PayloadShape`` in ``shape``."""

WRITE_FAILED = "-refused"
"""Row of ``FILES``: the reason in ``path`` why the disk did not take the files."""

ROW_FAILED = "-wrong"
"""Row of ``FILES``: the arguments of a ``RowError`` in ``shape``."""


_ARROW = arrow_schema(FILES)
_REASONS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}
_P = ParamSpec("_P")


def report_errors(write: Callable[_P, Iterator[pa.RecordBatch]]) -> Callable[_P, Iterator[pa.RecordBatch]]:
    """Decorate a worker's function that yields rows of ``FILES``: errors become its last row.

    These are errors of the disk, and ``RowError``.
    """

    @wraps(write)
    def run(*args: _P.args, **named: _P.kwargs) -> Iterator[pa.RecordBatch]:
        try:
            yield from write(*args, **named)
        except OSError as error:
            if error.errno not in _REASONS:
                raise
            reason = f"{error.strerror or error}".partition("Detail:")[0].strip()
            yield encode_files([(WRITE_FAILED, StagedFile(reason, date.min, 0, 0), None)])
        except RowError as error:
            arguments = json.dumps([error.table, error.field, error.event, error.cause]).encode()
            yield encode_files([(ROW_FAILED, StagedFile("", date.min, 0, 0), arguments)])

    return run


Row = tuple[str, StagedFile, "bytes | None"]
"""A table (or one of the constants above), a file, and a shape."""


def encode_files(rows: Iterable[Row]) -> pa.RecordBatch:
    """Encode tables' names, files and shapes as rows of ``FILES``."""
    columns: Any = list(zip(*((table, *file, shape) for table, file, shape in rows))) or [()] * len(_ARROW)
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, _ARROW)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def count_rows(counts: Mapping[str, int]) -> Iterator[Row]:
    """Return the rows of counts, by what they count."""
    return ((COUNT, StagedFile(name, date.min, count, 0), None) for name, count in counts.items())


def decode_files(table: pa.Table) -> Iterator[Row]:
    """Decode rows of ``FILES``.

    Raises:
        TableError: a worker could not write.
        RowError: an event can't be converted to a row, or a row differs from its payload.
    """
    for row in table.to_pylist():
        if row["table"] == ROW_FAILED:
            raise RowError(*json.loads(row["shape"]))
        if row["table"] == WRITE_FAILED:
            raise TableError(f"{row['path']}; what was committed before is there, this batch is not", "writing tables")
        file = StagedFile(row["path"], row["day"], row["rows"], row["size"], row["first"], row["last"])
        yield row["table"], file, row["shape"]


def run_in_workers(
    frame: DataFrame, run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> Iterator[Row]:
    """Run a function on each partition of a frame, and return the rows of ``FILES`` that it yields.

    Raises:
        TableError, RowError: see ``decode_files``.
    """
    return decode_files(frame.mapInArrow(report_errors(run), FILES).toArrow())
