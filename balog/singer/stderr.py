"""A tap's stderr as events: bytes in, events out, with tracebacks of many lines joined to the record they belong to."""

from __future__ import annotations

import re
from datetime import tzinfo
from typing import Any, Generic, TypeVar, cast

from balog.event import MAX_CHANNEL_LENGTH, Event
from balog.payload import log_payload
from balog.singer.dialects import LogLine, read_line

__all__ = ["MAX_LINE", "LineAssembler", "RecordAssembler", "channel_of", "payload_of"]

MAX_LINE = 256 * 1024
"""Bytes of a line that are read."""

_MAX_RECORD_LINES = 2000
_MAX_RECORD = 1024 * 1024  # characters; what is over it begins a record of its own

_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION_LINE = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause", _TRACEBACK)


class LineAssembler:
    """Turns chunks of a program's stderr into events.

    A line that a dialect knows begins a record. A line that none knows continues the record before it, when that record
    came from a dialect or a traceback is under way; otherwise it is a record by itself.

    Args:
        application: the program's name: the first part of each event's channel, and ``application`` in its context.
        context: further keys of every event's context.
    """

    def __init__(self, application: str, context: dict[str, Any] | None = None) -> None:
        self.application = application
        self.context: dict[str, Any] = {"application": application, **(context or {})}
        self._partial = b""
        self._cutting = False
        self._records: RecordAssembler[None] = RecordAssembler()

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes; give the events that they complete. A line over 256 KiB is cut there."""
        events: list[Event] = []
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in lines:
            if self._cutting:  # the rest of a line whose beginning was taken already
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
        """Give the record in hand, as when nothing more came for a while. An unfinished line stays."""
        return self._events(self._records.finish())

    def close(self) -> list[Event]:
        """Give all that is left: the stream has ended."""
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
    """Give the channel of a record: the application, and below it the logger unless that is the application itself."""
    channel = application
    if line.logger and line.logger != "root":
        under = line.logger == channel or line.logger.startswith(channel + ".")
        channel = line.logger if under else f"{channel}.{line.logger}"
    return channel[:MAX_CHANNEL_LENGTH]


def payload_of(line: LogLine) -> dict[str, Any]:
    """Give the payload of a record: its metric, else a ``log``."""
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
    """

    def __init__(self, zone: tzinfo | None = None) -> None:
        self._zone = zone
        self._record: _Record | None = None
        self._mark: _Mark | None = None

    def take(self, raw: bytes, mark: _Mark) -> list[tuple[_Mark, LogLine]]:
        """Take the next line; give the records that it completes. What is beyond 256 KiB of it is left out."""
        line = raw[:MAX_LINE].decode("utf-8", "replace").rstrip("\r")
        head = read_line(line, self._zone)
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
        elif line.startswith(_TRACEBACK):
            self._record = _Record(LogLine(level="ERROR"), lines=[line])
        else:
            self._record = _Record(LogLine(message=line))
        return records

    def finish(self) -> list[tuple[_Mark, LogLine]]:
        """Give the record in hand, if there is one."""
        if self._record is None:
            return []
        record, self._record = self._record, None
        return [(cast("_Mark", self._mark), record.finished())]


class _Record:
    """A record under way: its head, and the lines that followed."""

    def __init__(self, head: LogLine, *, from_dialect: bool = False, lines: list[str] | None = None) -> None:
        self.head = head
        self.lines = lines or []
        self._from_dialect = from_dialect
        self._size = len(head.message)

    def add(self, line: str) -> None:
        """Take a line that continues the record."""
        self.lines.append(line)
        self._size += len(line) + 1

    def takes(self, line: str) -> bool:
        """Tell whether a line that no dialect knows belongs to this record."""
        if len(self.lines) >= _MAX_RECORD_LINES or self._size > _MAX_RECORD or self.head.metric is not None:
            return False
        if self._from_dialect or line.startswith((" ", "\t")):
            return True
        if not any(text.startswith(_TRACEBACK) for text in self.lines[:1]):
            return False
        # A bare traceback: its exception line ends it, unless another is chained to it.
        ended = self.lines[-1] != "" and not self.lines[-1].startswith((" ", "\t", *_CHAINED))
        return not ended or line == "" or line.startswith(_CHAINED)

    def finished(self) -> LogLine:
        """Put the lines where they belong: a traceback to ``exc_text``, everything else to the message."""
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()
        start = next((i for i, text in enumerate(self.lines) if text.startswith(_TRACEBACK)), len(self.lines))
        head, trace = self.head, self.lines[start:]
        head.message = "\n".join([head.message, *self.lines[:start]] if head.message else self.lines[:start])
        if trace:
            head.exc_text = "\n".join(trace)
            head.exception = _exception_in(trace)
            head.message = head.message or trace[-1]
        return head


def _exception_in(trace: list[str]) -> dict[str, Any] | None:
    """Give type and message from the text of a traceback: the last line that is not indented, and what follows it."""
    for index in range(len(trace) - 1, 0, -1):
        match = _EXCEPTION_LINE.match(trace[index])
        if match and trace[index - 1].startswith((" ", "\t")):
            message = "\n".join([match["message"] or "", *trace[index + 1 :]])
            return {"type": match["type"], "message": message.rstrip()}
    return None
