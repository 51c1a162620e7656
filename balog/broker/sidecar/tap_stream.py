"""Pass a tap's stdout through the sidecar unchanged, with LOG messages between its lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from balog.broker.messages.invalid_lines import InvalidLineFilter
from balog.broker.messages.message_prefixes import kind_of
from balog.broker.messages.record_counter import RecordCounter
from balog.broker.state import read_value
from balog.broker.stopwatch import Stopwatch
from balog.common.storage.local_files import write_all

_MAX_HELD_LINE = 8 * 1024 * 1024
_MAX_HELD_LOGS = 16 * 1024 * 1024
_MAX_STATE = 64 * 1024
_PREFIX_BYTES = 64 * 1024


class _Search:
    """Finds the messages of one type in whole lines, without parsing lines that begin as those of another."""

    def __init__(self, kind: str, others: str) -> None:
        other = rb'\{"type": ?"(?:%b)"' % others.encode()
        self._kind = kind
        self.is_other = re.compile(other).match
        self._next = re.compile(rb"\n(?!%b)" % other)
        self._mentions = re.compile(rb'"type"\s*:\s*"%b"' % kind.encode(), re.IGNORECASE).search

    def find(self, lines: bytes) -> Iterator[bytes]:
        """Yield the lines of that type."""
        starts = [] if self.is_other(lines) else [0]
        for start in [*starts, *(newline.end() for newline in self._next.finditer(lines))]:
            end = lines.find(b"\n", start)
            line = lines[start : end if end >= 0 else len(lines)]
            kind = kind_of(line)
            if kind == self._kind or (kind is None and self._mentions(line)):
                yield line


_STATES = _Search("STATE", "RECORD|SCHEMA|ACTIVATE_VERSION|BATCH")
_SCHEMAS = _Search("SCHEMA", "RECORD|STATE|ACTIVATE_VERSION|BATCH")


class TapStream:
    """Passes whole lines to a descriptor, and writes LOG lines between them, so an unfinished line is buffered.

    A line over 8 MiB is not buffered: it passes in pieces, and up to 16 MiB of LOG lines wait for its end.

    Args:
        target: the descriptor to write to.
        say: writes one line to the user.
        invalid_lines: removes lines that are not messages; None lets every line pass.
        keeps_state: whether to keep the last STATE.
        on_schema: called with each SCHEMA line before it passes; None for no call.

    Attributes:
        records: counts of the records that passed.
        bytes: number of bytes read.
        state: the last STATE's value, encoded; None without a readable one of at most 64 KiB.
        lost_logs: number of LOG lines that exceeded the buffer.
        has_lost_output: whether some of the output could not be written.
        writing: time spent in writing.
    """

    def __init__(
        self,
        target: int,
        say: Callable[[str], None],
        *,
        invalid_lines: InvalidLineFilter | None = None,
        keeps_state: bool = False,
        on_schema: Callable[[bytes], None] | None = None,
    ) -> None:
        self._target: int | None = target
        self._say = say
        self._filter = invalid_lines
        self._keeps_state = keeps_state
        self._on_schema = on_schema
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._long_line = ""  # whether the current long line passes or is dropped
        self._waiting_logs: list[bytes] = []
        self._waiting_bytes = 0
        self.records = RecordCounter()
        self.bytes = 0
        self.state: bytes | None = None
        self.lost_logs = 0
        self.has_lost_output = False
        self.writing = Stopwatch()

    @property
    def is_wanted(self) -> bool:
        """Whether output can still be written: False after the reader closed its end."""
        return self._target is not None

    def take(self, data: bytes) -> None:
        """Add the next bytes, and write the lines that they complete."""
        self.bytes += len(data)
        if self._long_line:
            data = self._end_long_line(data)
        end = data.rfind(b"\n") + 1
        if end:
            lines = b"".join([*self._held, data[:end]])
            self._held, self._held_bytes = [], 0
            self._pass(lines)
            self._write_waiting()
        if end < len(data):
            self._hold(data[end:])

    def _end_long_line(self, data: bytes) -> bytes:
        """Pass or drop the rest of a long line like its beginning; return the data after it."""
        end = data.find(b"\n") + 1
        piece, rest = (data[:end], data[end:]) if end else (data, b"")
        if self._long_line == "pass":
            self.records.lengthen(len(piece))
            self._write(piece)
        if end:
            self._long_line = ""
            self._write_waiting()
        return rest

    def _hold(self, data: bytes) -> None:
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes <= _MAX_HELD_LINE:
            return
        beginning = b"".join(self._held)
        self._held, self._held_bytes = [], 0
        if self._filter is None or self._filter.sift_long(beginning[:_PREFIX_BYTES]):
            self._long_line = "pass"
            if not _STATES.is_other(beginning):
                self.state = None  # it may be a STATE that is too large to keep
            self.records.count(beginning)
            self._write(beginning)
        else:
            self._long_line = "drop"

    def _pass(self, lines: bytes) -> None:
        if self._filter is not None:
            lines = self._filter.sift(lines)
        self._examine(lines)
        self.records.count(lines)
        self._write(lines)

    def _examine(self, lines: bytes) -> None:
        for line in _STATES.find(lines) if self._keeps_state else ():
            self.state = read_value(line) if len(line) <= _MAX_STATE else None
        if self._on_schema is not None:
            for line in _SCHEMAS.find(lines):
                self._on_schema(line)

    def add_log(self, line: bytes) -> None:
        """Write a LOG line now, or at the end of the unfinished line."""
        if self._long_line == "pass":
            if self._waiting_bytes + len(line) > _MAX_HELD_LOGS:
                self.lost_logs += 1
                return
            self._waiting_logs.append(line)
            self._waiting_bytes += len(line)
        else:
            self._write(line)

    def end(self, last_logs: Callable[[], None]) -> None:
        """Write the rest. ``last_logs`` adds the last LOG lines, after which only an unfinished last line follows."""
        if self._long_line == "pass":
            self._write(b"\n")  # ends the long line before the first LOG line
        self._long_line = ""
        self._write_waiting()
        rest, self._held, self._held_bytes = b"".join(self._held), [], 0
        if rest and self._filter is not None:
            rest = self._filter.sift(rest)
        if rest:
            self._examine(rest)
        self.records.count(rest)
        last_logs()
        self._write(rest)

    def _write_waiting(self) -> None:
        if self._waiting_logs:
            self._write(b"".join(self._waiting_logs))
            self._waiting_logs, self._waiting_bytes = [], 0

    def _write(self, data: bytes) -> None:
        if self._target is None or not data:
            return
        try:
            with self.writing:
                write_all(self._target, data)
        except OSError as error:
            self._target = None
            self.has_lost_output = True
            gone = isinstance(error, BrokenPipeError)
            self._say("the target closed the pipe" if gone else f"the stream broke: {error.strerror or error}")
