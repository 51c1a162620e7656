"""Unfinished records and secrets of several lines: a message with a traceback or a crash report; a private key."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from balog.common.errors import redact_error
from balog.event import Level
from balog.log_lines.crash_reports import (
    INDENTED,
    Ahead,
    CrashReport,
    continues_message,
    crash_report,
    has_frame,
    is_out_of_memory,
)
from balog.log_lines.line import LogLine, exception_in, is_below_traceback

_TRACEBACK = "Traceback (most recent call last):"
_GROUP = "  + Exception Group " + _TRACEBACK
_TRACEBACKS = (_TRACEBACK, _GROUP)
FAILURES = (*_TRACEBACKS, "Exception in thread ")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause", *_TRACEBACKS)


class OpenRecord:
    """An unfinished record: its first line, and the following ones."""

    def __init__(self, head: LogLine, *, from_dialect: bool = False) -> None:
        self.head = head
        self.lines: list[str] = []
        self._from_dialect = from_dialect
        self._report: CrashReport | None = None
        self._is_in_traceback = False
        self._exception = ""  # the last line of the traceback, which ends it

    def add(self, line: str) -> None:
        """Add a line that continues the record."""
        if self._report is not None:
            self._report.add(line)
            return
        self.lines.append(line)
        if begins_traceback(line):
            self._is_in_traceback = True
        if line.startswith(_CHAINED) or begins_traceback(line):
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
            and (is_below_traceback(before) or begins_traceback(before))
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
        if begins_traceback(line):
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
        if line.startswith(FAILURES):
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
        start = next((i for i, text in enumerate(self.lines) if begins_traceback(text)), len(self.lines))
        head, trace = self.head, self.lines[start:]
        message = "\n".join([head.message, *self.lines[:start]] if head.message else self.lines[:start])
        if self._report is not None:
            return replace(
                head,
                message=message,
                exception=self._report.finished().exception,
                exc_text="\n".join(self._report.lines) or head.exc_text,
            )
        if not trace:
            return replace(head, message=message)
        exception = exception_in(trace, self._exception)
        level: Level = "ERROR" if head.level == "WARNING" and _begins_in_main(trace) else head.level
        is_uncaught = head.is_uncaught or level != head.level
        return replace(
            head,
            level="CRITICAL" if is_uncaught and is_out_of_memory(self._exception) else level,
            message=message or _last_words(self._exception or trace[-1], exception),
            exception=exception,
            exc_text="\n".join(trace) or head.exc_text,
            is_uncaught=is_uncaught,
        )


def begins_traceback(line: str) -> bool:
    """Return whether a line is the first of a traceback, also as rich draws it."""
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


_MAX_SECRET_LINES = 100
_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----(?!.{0,8192}-----END )", re.DOTALL)
_KEY_END = "-----END "
_KEY_LINE = re.compile(r"(?=[A-Za-z]{0,76}[0-9+/=])[A-Za-z0-9+/]{1,76}={0,2}")  # base64, not a word
_OPENING = re.compile(r"[=:]\s{0,4}[ \t]{0,64}[\"'`]|>\s{0,4}[ \t]{0,64}\Z")
_UNCLOSED = re.compile(r"([\"'`]{1,3})\[redacted\](?:</)?\Z|\[redacted\](</)\Z")


class OpenSecret:
    """A secret of several lines that a line begins: a private key, or a value in quotes or in an element of XML.

    All its lines are one record, because each line alone would not show that it is secret. The next record ends it.
    """

    def __init__(self, line: str) -> None:
        self._end = _KEY_END if _KEY.search(line) else ""
        if not self._end and _OPENING.search(line) and (value := _UNCLOSED.search(redact_error(f"{line}\nmore</"))):
            self._end = value[1] or value[2]
        self._left = _MAX_SECRET_LINES if self._end and not is_object(line) else 0

    @property
    def is_open(self) -> bool:
        """Whether the secret goes on."""
        return self._left > 0

    def holds(self, line: str, head: LogLine | None) -> bool:
        """Return whether the next line belongs to the secret.

        Args:
            line: the next line.
            head: of the record that it begins. It has a line of a private key if the lines were logged one by one.
        """
        if head is not None and not (self._end == _KEY_END and (_KEY_END in line or _KEY_LINE.fullmatch(head.message))):
            return False
        self._left = 0 if self._end in line else self._left - 1
        return True


def is_object(line: str) -> bool:
    """Return whether a line is a whole JSON object."""
    try:
        return line.startswith("{") and isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False
