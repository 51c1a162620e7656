"""The writing side of a pipe, and the counters of its data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, ClassVar

from balog.broker.editor import Line
from balog.broker.stopwatch import Stopwatch
from balog.common.stats import Stats, counter
from balog.common.storage.local_files import write_all
from balog.singer import LogMessage

_OUT_BYTES = 256 * 1024


class PipeStats(Stats, rename={"read_wait_seconds": "read_wait", "write_wait_seconds": "write_wait"}):
    """Counters of the data that passed so far."""

    component: ClassVar[str] = "pipe"
    bytes: Annotated[int, counter("Bytes that were read.")] = 0
    lines: Annotated[int, counter("Lines that were read; of a fast stream, an estimate from every eighth block.")] = 0
    logs: Annotated[int, counter("LOG messages.")] = 0
    edited: Annotated[int, counter("Messages that an editor changed, created or removed.")] = 0
    not_json: Annotated[int, counter("Lines that are not a JSON object and passed all the same.")] = 0
    unread: Annotated[
        int, counter("LOG lines that can't be read, because they are too long, nested too deep, or torn.")
    ] = 0
    read_wait_seconds: Annotated[float, counter("Seconds spent waiting for input.")] = 0.0
    write_wait_seconds: Annotated[float, counter("Seconds spent waiting for the output to be taken.")] = 0.0


class PipeOutput:
    """Queues bytes and writes them in large pieces, and gives LOG messages to a callable.

    Args:
        target: the descriptor to write.
        on_log: called with every LOG message; must not raise.
        before_passing: called before a write that follows LOG messages.

    Attributes:
        logs: number of LOG messages so far.
        edited: number of an editor's lines so far.
        writing: the time spent in writing.
    """

    def __init__(self, target: int, on_log: Callable[[LogMessage], None], before_passing: Callable[[], None]) -> None:
        self._target = target
        self._on_log = on_log
        self._before_passing = before_passing
        self._out: list[bytes | memoryview] = []
        self._out_bytes = 0
        self._has_new_logs = False
        self.logs = 0
        self.edited = 0
        self.writing = Stopwatch()

    def log(self, message: LogMessage) -> None:
        """Pass a LOG message to ``on_log``."""
        self.logs += 1
        self._on_log(message)
        self._has_new_logs = True

    def put(self, data: bytes | memoryview) -> None:
        """Queue bytes for writing, at the block's end at the latest."""
        self._out.append(data)
        self._out_bytes += len(data)
        if self._out_bytes >= _OUT_BYTES:
            self.flush()

    def put_lines(self, lines: Iterable[Line]) -> None:
        """Queue an editor's lines."""
        out, count = self._out, 0
        for _, line in lines:
            out.append(line)
            self._out_bytes += len(line)
            count += 1
            if self._out_bytes >= _OUT_BYTES:
                self.flush()
                out = self._out
        self.edited += count

    def flush(self) -> None:
        """Write what is queued."""
        if self._has_new_logs:
            self._has_new_logs = False
            self._before_passing()
        out, self._out, self._out_bytes = self._out, [], 0
        if out:
            self.write(out[0] if len(out) == 1 else b"".join(out))

    def write(self, data: bytes | memoryview) -> None:
        """Write bytes now, before the queued ones."""
        with self.writing:
            write_all(self._target, data)
