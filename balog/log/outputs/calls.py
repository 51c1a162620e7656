"""What an output knows of the call that it writes an event for, beside the event."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Call(threading.local):
    """The call in this thread."""

    exception: BaseException | None = None

    @contextmanager
    def with_exception(self, error: BaseException | None) -> Iterator[None]:
        """Show outputs the exception of the event that the block writes."""
        before, self.exception = self.exception, error
        try:
            yield
        finally:
            self.exception = before


class ThreadBlock(threading.local):
    """A ``with`` block that a thread should not enter again while it is inside."""

    is_entered = False

    def __enter__(self) -> None:
        self.is_entered = True

    def __exit__(self, *_: object) -> None:
        self.is_entered = False


current = _Call()
stdlib_record = ThreadBlock()
"""Entered while a record of the standard library's logging is written."""
