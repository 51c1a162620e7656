"""When a disk refuses what a worker writes: told to the driver as one row, not as a failed task.

To try the task again would not help, and Spark would print a stack for each try.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from datetime import date
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from balog.analytics.tables.staging import REFUSED, encode_files
from balog.analytics.tables.store import Staged

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["told"]

_REASONS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}
_P = ParamSpec("_P")


def told(write: Callable[_P, Iterator[pa.RecordBatch]]) -> Callable[_P, Iterator[pa.RecordBatch]]:
    """Have a function of a worker that gives rows of ``staging.FILES`` end with one that says what the disk refused."""

    @wraps(write)
    def run(*args: _P.args, **named: _P.kwargs) -> Iterator[pa.RecordBatch]:
        try:
            yield from write(*args, **named)
        except OSError as error:
            if error.errno not in _REASONS:
                raise
            reason = f"{error.strerror or error}".partition("Detail:")[0].strip()
            yield encode_files([(REFUSED, Staged(reason, date.min, 0, 0), None)])

    return run
