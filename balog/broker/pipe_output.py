"""The writing side of a pipe, and the counters of its data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, ClassVar

from balog.broker.editor import Line
from balog.broker.stopwatch import Stopwatch
from balog.common.stats import Stats, counter
from balog.common.storage.local_files import write_all

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
    """Queues bytes and writes them in large pieces.

    Args:
        target: the descriptor to write.
        before_passing: called before a write that follows LOG lines which ``on_log`` was given.

    Attributes:
        has_new_logs: whether ``before_passing`` has to be called.
        writing: the time spent in writing.
    """

    def __init__(self, target: int, before_passing: Callable[[], None]) -> None:
        self._target = target
        self._before_passing = before_passing
        self._out: list[bytes | memoryview] = []
        self._out_bytes = 0
        self.has_new_logs = False
        self.writing = Stopwatch()

    def put(self, data: bytes | memoryview) -> None:
        """Queue bytes for writing, at the block's end at the latest."""
        self._out.append(data)
        self._out_bytes += len(data)
        if self._out_bytes >= _OUT_BYTES:
            self.flush()

    def put_lines(self, lines: Iterable[Line]) -> int:
        """Queue an editor's lines, and return their number."""
        out, count = self._out, 0
        for _, line in lines:
            out.append(line)
            self._out_bytes += len(line)
            count += 1
            if self._out_bytes >= _OUT_BYTES:
                self.flush()
                out = self._out
        return count

    def flush(self) -> None:
        """Write what is queued."""
        if self.has_new_logs:
            self.has_new_logs = False
            self._before_passing()
        out, self._out, self._out_bytes = self._out, [], 0
        if out:
            self.write(out[0] if len(out) == 1 else b"".join(out))

    def write(self, data: bytes | memoryview) -> None:
        """Write bytes now, before the queued ones."""
        with self.writing:
            write_all(self._target, data)
