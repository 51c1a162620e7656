"""Errors of the data source in one line, in place of the traceback of a worker process."""

from __future__ import annotations

import os
import sys
from contextlib import ContextDecorator

from balog.common.errors import BalogError

_HIDE = "SPARK_HIDE_TRACEBACK"


class OneLineErrors(ContextDecorator):
    """Report a ``BalogError`` to the user of Spark in one line, without the traceback of the worker process.

    PySpark reads ``SPARK_HIDE_TRACEBACK`` when it sends an exception to the JVM, and its worker process ends right
    after that. The variable is set for that one exception only: all other errors keep their tracebacks. Outside of a
    worker process nothing changes.
    """

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Hide the traceback of an error of balog."""
        if isinstance(error, BalogError) and _is_worker():
            os.environ[_HIDE] = "1"


def _is_worker() -> bool:
    """Return whether this process was started to run PySpark's daemon or one of its workers."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
