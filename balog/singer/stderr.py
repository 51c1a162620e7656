"""Turn a tap's stderr into events, and join the lines of a traceback to their record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any, Generic, TypeVar, cast

from balog.event import MAX_CHANNEL_LENGTH, Event
from balog.payload import log_payload
from balog.singer.dialects import read_line, without_colours
from balog.singer.log_line import LogLine, exception_in
from balog.singer.log_patterns import Pattern

MAX_LINE = 256 * 1024
"""Bytes of a line that are read."""

_MAX_RECORD_LINES = 2000
_MAX_RECORD = 1024 * 1024  # characters; a longer record is split

_TRACEBACK = "Traceback (most recent call last):"
_GROUP = "  + Exception Group " + _TRACEBACK
_TRACEBACKS = (_TRACEBACK, _GROUP)
_FAILURES = (*_TRACEBACKS, "Exception in thread ", "Fatal Python error: ", "panic: ")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause", *_TRACEBACKS)
_INDENTED = (" ", "\t")


class LineAssembler:
    """Turns chunks of a program's stderr into events.

    A line that a dialect knows begins a record. A line that none knows continues the record before it, when that record
    came from a dialect or a traceback is under way; otherwise it is a record by itself. A traceback after a record of
    DEBUG or INFO is a record of its own, at ERROR: the program did not catch it. After one of WARNING it belongs to the
    record, which is an ERROR where the traceback begins in the program's main module.

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
        self._partial = b""
        self._cutting = False
        self._records: RecordAssembler[None] = RecordAssembler(patterns=patterns)

    def feed(self, data: bytes) -> list[Event]:
        """Add the next bytes, and return the events that they complete. A line is cut at 256 KiB."""
        events: list[Event] = []
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in lines:
            if self._cutting:  # the rest of a cut line
                self._cutting = False
                continue
            events += self._events(self._records.take(line, None))
        if self._cutting:
            self._partial = b""
        elif len(self._partial) > MAX_LINE:
            events += self._events(self._records.take(self._partial, None))
            self._partial, self._cutting = b"", True
        return events

    def flush(self) -> list[Event]:
        """Return the pending record, for a pause in the stream. An unfinished line stays."""
        return self._events(self._records.finish())

    def close(self) -> list[Event]:
        """Return the pending events at the end of the stream."""
        events: list[Event] = []
        if self._partial:
            events += self._events(self._records.take(self._partial, None))
            self._partial = b""
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
        self._record: _Record | None = None
        self._mark: _Mark | None = None

    def take(self, raw: bytes, mark: _Mark) -> list[tuple[_Mark, LogLine]]:
        """Add the next line, and return the records that it completes. A line is cut at 256 KiB."""
        line = without_colours(raw[:MAX_LINE].decode("utf-8", "replace").rstrip("\r"))
        if self._record is not None and self._record.awaits(line):
            self._record.add(line)
            return []
        head = read_line(line, self._zone, self._patterns)
        if head is None and self._record is not None and self._record.takes(line):
            self._record.add(line)
            return []
        if head is None and not line.strip():
            return []
        records = self.finish()
        if head is not None and head.event is not None:
            records.append((mark, head))
            return records
        self._mark = mark
        if head is not None:
            self._record = _Record(head, from_dialect=True)
        elif line.startswith(_FAILURES):
            self._record = _Record(LogLine(level="ERROR", is_uncaught=True), lines=[line])
        else:
            self._record = _Record(LogLine(message=line))
        return records

    def finish(self) -> list[tuple[_Mark, LogLine]]:
        """Return the pending record, if there is one."""
        if self._record is None:
            return []
        record, self._record = self._record, None
        return [(cast("_Mark", self._mark), record.finished())]


class _Record:
    """An unfinished record: its first line, and the following ones."""

    def __init__(self, head: LogLine, *, from_dialect: bool = False, lines: list[str] | None = None) -> None:
        self.head = head
        self.lines = lines or []
        self._from_dialect = from_dialect
        self._size = len(head.message)
        self._is_in_traceback = bool(lines) and self.lines[0].startswith(_TRACEBACKS)

    @property
    def _is_full(self) -> bool:
        return len(self.lines) >= _MAX_RECORD_LINES or self._size > _MAX_RECORD

    def add(self, line: str) -> None:
        """Add a line that continues the record."""
        self.lines.append(line)
        self._size += len(line) + 1
        self._is_in_traceback = self._is_in_traceback or line.startswith(_TRACEBACKS)

    @property
    def _is_whole(self) -> bool:
        """Return whether a following traceback is not this record's: its level logs none, or it already has one."""
        if not self._is_in_traceback:
            return self.head.level in ("DEBUG", "INFO") or not self.head.takes_traceback
        last = next((line for line in reversed(self.lines) if line), "")
        return not last.startswith(_CHAINED)

    def awaits(self, line: str) -> bool:
        """Return whether the line is the last one of an unfinished traceback."""
        last = self.lines[-1] if self.lines else ""
        return (
            self._is_in_traceback
            and not line.startswith(_INDENTED)
            and last.startswith((*_INDENTED, _TRACEBACK))
            and not last.lstrip().startswith("+-")  # the end of an exception group
            and line != ""
            and not self._is_full
            and not line.startswith("{")
        )

    def takes(self, line: str) -> bool:
        """Return whether a line without a dialect belongs to this record."""
        if self._is_full or self.head.metric is not None:
            return False
        if self._from_dialect:
            return not (line.startswith(_FAILURES) and self._is_whole)
        if line.startswith(_GROUP) and not self._is_in_traceback:
            return False
        if line.startswith(_INDENTED):
            return True
        if not self.head.is_uncaught:
            return False
        # The exception's line ends a traceback, unless another is chained to it.
        ended = self.lines[-1] != "" and not self.lines[-1].startswith((*_INDENTED, *_CHAINED))
        return not ended or line == "" or line.startswith(_CHAINED)

    def finished(self) -> LogLine:
        """Assign the lines: a traceback to ``exc_text``, everything else to the message."""
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()
        start = next((i for i, text in enumerate(self.lines) if text.startswith(_TRACEBACKS)), len(self.lines))
        head, trace = self.head, self.lines[start:]
        head.message = "\n".join([head.message, *self.lines[:start]] if head.message else self.lines[:start])
        if trace:
            head.exc_text = "\n".join(trace)
            head.exception = exception_in(trace)
            head.message = head.message or _last_words(trace, head.exception)
            if head.level == "WARNING" and _begins_in_main(trace):
                head.level, head.is_uncaught = "ERROR", True
        return head


def _begins_in_main(trace: list[str]) -> bool:
    """Return whether a traceback begins in the main module, unlike one of a caught exception."""
    first = next((line for line in trace if line.startswith("  File ")), "")
    return first.endswith((", in <module>", ", in _run_module_as_main"))


def _last_words(trace: list[str], exception: dict[str, Any] | None) -> str:
    """Return the line with the raised exception."""
    if exception is not None and trace[0] == _GROUP:
        return f"{exception['type']}: {exception['message']}".partition("\n")[0]
    return trace[-1]
