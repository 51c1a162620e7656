"""What an output knows of the call that it writes an event for, beside the event."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Call(threading.local):
    exception: BaseException | None = None
    is_from_stdlib = False


current = _Call()
"""The call in this thread: its exception, and whether it is a record of the standard library's logging."""


@contextmanager
def with_exception(error: BaseException | None) -> Iterator[None]:
    """Show outputs the exception of the event that the block writes."""
    before, current.exception = current.exception, error
    try:
        yield
    finally:
        current.exception = before
