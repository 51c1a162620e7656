"""When a disk refuses what a worker writes, or a row is not what it should be: the driver gets one row of it, and no
failed task.

To try the task again would not help, and Spark would print a stack for each try.
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

__all__ = ["told"]

_REASONS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}
_P = ParamSpec("_P")


def told(write: Callable[_P, Iterator[pa.RecordBatch]]) -> Callable[_P, Iterator[pa.RecordBatch]]:
    """Have a function of a worker that gives rows of ``staging.FILES`` end with one of its error, if it has one.

    Those are what a disk refuses, and ``RowError``.
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
            said = json.dumps([error.table, error.field, error.event, error.cause]).encode()
            yield encode_files([(ROW_FAILED, StagedFile("", date.min, 0, 0), said)])

    return run
