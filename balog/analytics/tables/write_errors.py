"""Reports a worker's errors to the driver as a row, without a failed task.

That applies to errors of the disk and to wrong rows. Another try of the task would not help, and Spark would print a
stack trace for each.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from datetime import date
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from balog.analytics.tables.staging import ROW_FAILED, WRITE_FAILED, encode_files
from balog.analytics.tables.store import RowError, StagedFile

if TYPE_CHECKING:
    import pyarrow as pa


_REASONS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}
_P = ParamSpec("_P")


def report_errors(write: Callable[_P, Iterator[pa.RecordBatch]]) -> Callable[_P, Iterator[pa.RecordBatch]]:
    """Decorate a worker's function that yields rows of ``staging.FILES``: errors become its last row.

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
