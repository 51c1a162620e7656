"""Turn a tap's stderr into events, and join the lines of a traceback or of a crash report."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any, Generic, TypeVar, cast

from balog.event import MAX_CHANNEL_LENGTH, Event
from balog.event.log_payload import log_payload
from balog.log_lines.crash_reports import Ahead, CrashReport, Undecided, crash_report
from balog.log_lines.dialects import read_line, without_colours
from balog.log_lines.line import LogLine
from balog.log_lines.open_record import FAILURES, OpenRecord, OpenSecret, begins_traceback, is_object
from balog.log_lines.patterns import Pattern

MAX_LINE = 256 * 1024
"""Bytes of a line that are read."""

_MAX_RECORD_LINES = 2000
_MAX_RECORD = 1024 * 1024  # characters; a longer record is split


class LineAssembler:
    """Turns chunks of a program's stderr into events.

    A line that a dialect knows begins a record, and so does a crash report. Any other line continues the record before
    it, when that record came from a dialect or a traceback is under way; otherwise it is a record by itself. A
    traceback after a record of DEBUG or INFO is a record of its own, at ERROR: the program did not catch it. After one
    of WARNING it belongs to the record, which is an ERROR where the traceback begins in the program's main module.
    The line of the exception ends a traceback.

    Args:
        application: the program's name: the first part of each event's channel, and ``application`` in its context.
        context: further keys of every event's context.
        patterns: the user's patterns for lines that balog does not know.
    """

    def __init__(
        self, application: str, context: dict[str, Any] | None = None, patterns: Sequence[Pattern] = ()
    ) -> None:
        self.application = application
        self.context: dict[str, Any] = {"application": application, **(context or {})}
        self._lines = LineSplitter()
        self._records: RecordAssembler[None] = RecordAssembler(patterns=patterns)

    def feed(self, data: bytes) -> list[Event]:
        """Add the next bytes, and return the events that they complete. A line is cut at 256 KiB."""
        return [event for line in self._lines.feed(data) for event in self._events(self._records.take(line, None))]

    @property
    def is_in_report(self) -> bool:
        """Whether a traceback or a crash report is not whole yet."""
        return self._records.is_in_report

    def flush(self) -> list[Event]:
        """Return the pending record, for a pause in the stream. An unfinished line or secret stays."""
        return self._events(self._records.pause())

    def close(self) -> list[Event]:
        """Return the pending events at the end of the stream."""
        events = [event for line in self._lines.close() for event in self._events(self._records.take(line, None))]
        return events + self._events(self._records.finish())

    def _events(self, records: list[tuple[None, LogLine]]) -> list[Event]:
        return [line.event or self._event(line) for _, line in records]

    def _event(self, line: LogLine) -> Event:
        return Event.new(
            channel_of(line, self.application),
            payload_of(line),
            level=line.level,
            context=self.context,
            timestamp=line.timestamp,
        )


class LineSplitter:
    """Splits chunks of bytes into lines, without their newlines. A line is cut at 256 KiB."""

    def __init__(self) -> None:
        self._partial = b""
        self._is_cutting = False

    def feed(self, data: bytes) -> list[bytes]:
        """Add the next bytes, and return the lines that they complete."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        if lines and self._is_cutting:  # the rest of a cut line
            self._is_cutting = False
            del lines[0]
        if self._is_cutting:
            self._partial = b""
        elif len(self._partial) > MAX_LINE:
            lines.append(self._partial)
            self._partial, self._is_cutting = b"", True
        return lines

    def close(self) -> list[bytes]:
        """Return the last line, if it has no newline."""
        rest, self._partial = self._partial, b""
        return [rest] if rest and not self._is_cutting else []


def channel_of(line: LogLine, application: str) -> str:
    """Return the channel of a record: the application, then the logger unless both are the same."""
    channel = application
    if line.logger and line.logger != "root":
        under = line.logger == channel or line.logger.startswith(channel + ".")
        channel = line.logger if under else f"{channel}.{line.logger}"
    return channel[:MAX_CHANNEL_LENGTH]


def payload_of(line: LogLine) -> dict[str, Any]:
    """Return the payload of a record: its metric, else a ``log``."""
    return line.metric or log_payload(
        line.message,
        line.level,
        logger=line.logger,
        fields=line.fields,
        exception=line.exception,
        exc_text=line.exc_text,
    )


_Mark = TypeVar("_Mark")


class RecordAssembler(Generic[_Mark]):
    """Joins lines into records, each with the mark that came with its first line.

    Args:
        zone: the zone of times that don't name theirs; None is this machine's.
        patterns: the user's patterns for lines that balog does not know.
    """

    def __init__(self, zone: tzinfo | None = None, patterns: Sequence[Pattern] = ()) -> None:
        self._zone = zone
        self._patterns = patterns
        self._lines: deque[tuple[str, _Mark]] = deque()  # lines that the next ones decide about
        self._record: OpenRecord | CrashReport | None = None
        self._space = self._left = 0  # characters and lines that the record may still have
        self._mark: _Mark | None = None
        self._secret = OpenSecret("")

    def take(self, raw: bytes, mark: _Mark) -> list[tuple[_Mark, LogLine]]:
        """Add the next line, and return the records that it completes. A line is cut at 256 KiB."""
        self._lines.append((without_colours(raw[:MAX_LINE].decode("utf-8", "replace").rstrip("\r")), mark))
        return self._read(self._coming)

    def finish(self) -> list[tuple[_Mark, LogLine]]:
        """Return the pending records."""
        return self._read(self._rest) + self._finished()

    def pause(self) -> list[tuple[_Mark, LogLine]]:
        """Return the pending records, but not one whose secret may go on: its next line alone would show it."""
        records = self._read(self._rest)
        return records if self._secret.is_open else records + self._finished()

    @property
    def is_in_report(self) -> bool:
        """Whether a traceback or a crash report is not whole yet."""
        return self._record is not None and self._record.is_open

    def _coming(self, number: int) -> str | None:
        if number >= len(self._lines):
            raise Undecided
        return self._rest(number)

    def _rest(self, number: int) -> str | None:
        """Return a later line; None at the end, or where another record begins."""
        line = self._lines[number][0] if number < len(self._lines) else None
        return None if line is None or self._head(line) is not None else line

    def _head(self, line: str) -> LogLine | None:
        return read_line(line, self._zone, self._patterns)

    def _start(self, line: str, ahead: Ahead) -> LogLine | None:
        """Return the head of the record that a line begins in any form; None if it may continue another."""
        is_start = line.startswith(FAILURES) or begins_traceback(line) or is_object(line)
        head = self._head(line)
        return LogLine() if head is None and (is_start or crash_report(line, ahead) is not None) else head

    def _read(self, ahead: Ahead) -> list[tuple[_Mark, LogLine]]:
        records = []
        while self._lines:
            line, mark = self._lines[0]
            try:
                records += self._step(line, mark, ahead)
            except Undecided:
                break
            self._lines.popleft()
        return records

    def _step(self, line: str, mark: _Mark, ahead: Ahead) -> list[tuple[_Mark, LogLine]]:
        record = self._record if self._left > 0 and self._space >= 0 else None
        if record is not None and self._secret.is_open and self._secret.holds(line, self._start(line, ahead)):
            return self._add(line)
        self._secret = OpenSecret(line)
        if record is not None and record.awaits(line):
            return self._add(line)
        head = self._head(line)
        if head is None and record is not None and record.takes(line, ahead):
            return self._add(line)
        if head is None and not line.strip():
            return []
        crash = crash_report(line, ahead) if head is None else None
        records = self._finished()
        if head is not None and head.event is not None:
            return [*records, (mark, head)]
        self._mark, self._space, self._left = mark, _MAX_RECORD - len(line), _MAX_RECORD_LINES
        if head is not None:
            self._record = OpenRecord(head, from_dialect=True)
        elif crash is not None:
            self._record = crash
        elif line.startswith(FAILURES) or begins_traceback(line):
            self._record = OpenRecord(LogLine(level="ERROR", is_uncaught=True))
            self._record.add(line)
        else:
            self._record = OpenRecord(LogLine(message=line))
        return records

    def _add(self, line: str) -> list[tuple[_Mark, LogLine]]:
        if self._record is not None:
            self._record.add(line)
        self._space -= len(line) + 1
        self._left -= 1
        return []

    def _finished(self) -> list[tuple[_Mark, LogLine]]:
        """Return the pending record, if there is one."""
        if self._record is None:
            return []
        record, self._record = self._record, None
        return [(cast("_Mark", self._mark), record.finished())]
