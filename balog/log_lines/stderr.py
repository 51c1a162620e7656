"""Turn a tap's stderr into events, and join the lines of a traceback or of a crash report."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any, Generic, TypeVar, cast

from balog.event import MAX_CHANNEL_LENGTH, Event
from balog.event.payload import log_payload
from balog.log_lines.crash_reports import (
    INDENTED,
    Ahead,
    CrashReport,
    Undecided,
    continues_message,
    crash_report,
    has_frame,
    is_out_of_memory,
)
from balog.log_lines.dialects import read_line, without_colours
from balog.log_lines.line import LogLine, exception_in, is_below_traceback
from balog.log_lines.open_secrets import OpenSecret, is_object
from balog.log_lines.patterns import Pattern

MAX_LINE = 256 * 1024
"""Bytes of a line that are read."""

_MAX_RECORD_LINES = 2000
_MAX_RECORD = 1024 * 1024  # characters; a longer record is split

_TRACEBACK = "Traceback (most recent call last):"
_GROUP = "  + Exception Group " + _TRACEBACK
_TRACEBACKS = (_TRACEBACK, _GROUP)
_FAILURES = (*_TRACEBACKS, "Exception in thread ")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause", *_TRACEBACKS)


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
        """Return the pending record, for a pause in the stream. An unfinished line stays."""
        return self._events(self._records.finish())

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
        self._record: _Record | CrashReport | None = None
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

    @property
    def is_in_report(self) -> bool:
        """Whether a traceback, a crash report or a secret of several lines is not whole yet."""
        return self._record is not None and (self._record.is_open or self._secret.is_open)

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
        is_start = line.startswith(_FAILURES) or _begins_traceback(line) or is_object(line)
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
            self._record = _Record(head, from_dialect=True)
        elif crash is not None:
            self._record = crash
        elif line.startswith(_FAILURES) or _begins_traceback(line):
            self._record = _Record(LogLine(level="ERROR", is_uncaught=True), lines=[line])
        else:
            self._record = _Record(LogLine(message=line))
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


class _Record:
    """An unfinished record: its first line, and the following ones."""

    def __init__(self, head: LogLine, *, from_dialect: bool = False, lines: list[str] | None = None) -> None:
        self.head = head
        self.lines: list[str] = []
        self._from_dialect = from_dialect
        self._report: CrashReport | None = None
        self._is_in_traceback = False
        self._exception = ""  # the last line of the traceback, which ends it
        for line in lines or []:
            self.add(line)

    def add(self, line: str) -> None:
        """Add a line that continues the record."""
        if self._report is not None:
            self._report.add(line)
            return
        self.lines.append(line)
        if _begins_traceback(line):
            self._is_in_traceback = True
        if line.startswith(_CHAINED) or _begins_traceback(line):
            self._exception = ""
        elif self._is_in_traceback and not self._exception:
            is_last = line != "" and not is_below_traceback(line)
            self._exception = line if is_last or line.lstrip().startswith("+--") else ""

    @property
    def is_open(self) -> bool:
        """Return whether the record has an unfinished traceback."""
        return self._report.is_open if self._report is not None else self._is_in_traceback and not self._exception

    def awaits(self, line: str) -> bool:
        """Return whether the line is the last one of an unfinished traceback; loguru leaves a line empty before it."""
        before = next(filter(None, self.lines[:-3:-1]), "")
        return (
            self._is_in_traceback
            and not self._exception
            and not is_below_traceback(line)
            and (is_below_traceback(before) or _begins_traceback(before))
            and line != ""
            and not line.startswith("{")
        )

    def takes(self, line: str, ahead: Ahead) -> bool:
        """Return whether a line without a dialect belongs to this record.

        Raises:
            Undecided: further lines decide.
        """
        if self.head.metric is not None:
            return False
        if self._report is not None:
            return self._report.takes(line, ahead)
        if _begins_traceback(line):
            if self._is_in_traceback:
                return self._last_line.startswith(_CHAINED)
            return self._logs_tracebacks if self._from_dialect else self.head.is_uncaught
        if self._exception:
            is_more = line == "" or line.startswith((*INDENTED, *_CHAINED))
            return is_more or continues_message(line, self._exception, ahead)
        if report := crash_report(line, ahead):
            if not self._logs(report, ahead):
                return False
            self._report = report
            report.lines.clear()  # ``add`` adds this line, too
            return True
        if line.startswith(_FAILURES):
            return False
        if self._from_dialect or line.startswith(INDENTED):
            return True
        return self.head.is_uncaught and (line == "" or self._is_in_traceback)

    @property
    def _last_line(self) -> str:
        return next((line for line in reversed(self.lines) if line), "")

    @property
    def _logs_tracebacks(self) -> bool:
        return self.head.takes_traceback and self.head.level not in ("DEBUG", "INFO")

    def _logs(self, report: CrashReport, ahead: Ahead) -> bool:
        """Return whether a logger wrote the exception below its record, as those of Java do."""
        if not (self._from_dialect and report.is_bare and self._logs_tracebacks) or self.head.exception:
            return False
        return self.head.level != "WARNING" or has_frame(ahead(1))

    def finished(self) -> LogLine:
        """Assign the lines: a traceback to ``exc_text``, everything else to the message."""
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()
        start = next((i for i, text in enumerate(self.lines) if _begins_traceback(text)), len(self.lines))
        head, trace = self.head, self.lines[start:]
        head.message = "\n".join([head.message, *self.lines[:start]] if head.message else self.lines[:start])
        if self._report is not None:
            head.exception = self._report.finished().exception
            trace = self._report.lines
        elif trace:
            head.exception = exception_in(trace, self._exception)
            head.message = head.message or _last_words(self._exception or trace[-1], head.exception)
            if head.level == "WARNING" and _begins_in_main(trace):
                head.level, head.is_uncaught = "ERROR", True
            if head.is_uncaught and is_out_of_memory(self._exception):
                head.level = "CRITICAL"
        head.exc_text = "\n".join(trace) or head.exc_text
        return head


def _begins_traceback(line: str) -> bool:
    return line.startswith(_TRACEBACKS) or (line.startswith("╭") and _TRACEBACK[:-1] in line)


def _begins_in_main(trace: list[str]) -> bool:
    """Return whether a traceback begins in the main module, unlike one of a caught exception."""
    first = next((line for line in trace if line.startswith("  File ")), "")
    return first.endswith((", in <module>", ", in _run_module_as_main"))


def _last_words(last: str, exception: dict[str, Any] | None) -> str:
    """Return the first line of the raised exception: a secret in it may end on a later line."""
    if exception is None:
        return last
    return f"{exception['type']}: {exception['message']}".partition("\n")[0].removesuffix(": ")
