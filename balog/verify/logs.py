"""What a tap told while it ran: its stderr in the dialects of taps, and LOG messages on stdout."""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import Any

import msgspec

from balog.event import Event
from balog.singer.dialects import LogLine
from balog.singer.stderr import MAX_LINE, RecordAssembler
from balog.verify.leaks import Leaks

__all__ = ["Logs"]

_MOST_READ = 32 * 1024 * 1024
_MOST_KEPT = 256 * 1024
_MOST_OF_ONE = 4096
_MOST_LATE = 200
_MOST_NAMES = 10_000
_MOST_FAILURES = 100
_FAILED = re.compile(
    r"fail|abort|truncat|incomplete|interrupt|timed? ?out|giv(?:e|ing) up|gave up|could ?n[o']t|cannot|can't|unable|"
    r"exceed|refused|denied|unauthori[sz]ed|forbidden|unavailable|exception|skipp|stopp|"
    r"(?:http|status|code|answer(?:ed)?|return(?:ed)?|got)[ :=]{1,3}[45]\d\d\b|\b[45]\d\d (?:client|server) error",
    re.IGNORECASE,
)
"""Words by which a line at ERROR says that something was not done."""


class Logs:
    """Reads what is told, and holds counts of it: levels, metrics, the first and the last lines.

    Attributes:
        bytes: of stderr; only the first 32 MiB are read.
        lines: of stderr.
        levels: how many records of each level; plain text is INFO.
        tracebacks: those that no logger wrote: the interpreter's own, also after a line at INFO or WARNING.
        failures: records at ERROR or CRITICAL that say that something failed: with an exception, or in such words.
        counted: values of the counter ``record_count`` by its tag ``endpoint`` or ``stream``; "" has neither.
        metrics: how often each metric came, by its name.
        last: the last record with words, without secrets.
        last_error: the last at ERROR or CRITICAL; "" when there was none.
        last_exception: the last line of the last bare traceback; "" when there was none.
    """

    def __init__(self, leaks: Leaks, output: str = "stderr") -> None:
        self._leaks = leaks
        self._output = output
        self._partial = b""
        self._cutting = False
        self._records: RecordAssembler[None] = RecordAssembler()
        self.bytes = 0
        self.lines = 0
        self.levels: Counter[str] = Counter()
        self.tracebacks = 0
        self.failures: list[str] = []
        self.counted: Counter[str] = Counter()
        self.metrics: Counter[str] = Counter()
        self.last = ""
        self.last_error = ""
        self.last_exception = ""
        self._text: list[str] = []
        self._kept = 0
        self._late: deque[str] = deque(maxlen=_MOST_LATE)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of stderr."""
        before, self.bytes = self.bytes, self.bytes + len(data)
        if before >= _MOST_READ:
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            if self._cutting:
                self._cutting = False
            else:
                self._line(line)
        if self._cutting:
            self._partial = b""
        elif len(self._partial) > MAX_LINE:
            self._line(self._partial)
            self._partial, self._cutting = b"", True

    def close(self) -> None:
        """Take what is left."""
        if self._partial and not self._cutting:
            self._line(self._partial)
            self._partial = b""
        for _, record in self._records.finish():
            self._take(record)

    def add_event(self, event: Event) -> None:
        """Take an event that came in a LOG message, or on stderr."""
        payload = event.payload
        metric = payload if payload.get("cls_type") == "metric" else None
        message = payload.get("message")
        exception = payload.get("exc_text")
        text = message if isinstance(message, str) else ""
        self._note(str(event.level or ""), text, metric, exception=bool(exception))
        self._note_failure(str(event.level or ""), text, has_exception=bool(exception or payload.get("exception")))
        self._keep(bytes(event.raw_payload).decode("utf-8", "replace"))

    def mentions(self, name: str) -> bool:
        """Return whether something that was told names this."""
        return any(name in text for text in self.heard)

    @property
    def heard(self) -> list[str]:
        """The first 256 KiB that were told, and the last 200 pieces."""
        return [*self._text, *self._late]

    def _line(self, line: bytes) -> None:
        self.lines += 1
        self._leaks.look(line, self._output, self.lines)
        for _, record in self._records.take(line, None):
            self._take(record)

    def _take(self, record: LogLine) -> None:
        if record.event is not None:
            self.add_event(record.event)
            return
        text = record.exc_text or ""
        if record.is_uncaught:
            self.tracebacks += 1
            self.last_exception = self._leaks.hide((text or record.message).splitlines()[-1])
        self._note(record.level, record.message, record.metric, exception=record.is_uncaught)
        self._note_failure(record.level, record.message, has_exception=bool(text or record.exception))
        self._keep(record.message)
        if record.fields:
            self._keep(repr(record.fields))

    def _note(self, level: str, message: str, metric: dict[str, Any] | None, *, exception: bool) -> None:
        self.levels[level] += 1
        if metric is not None:
            self._metric(metric)
        if message and not exception and metric is None:
            self.last = self._leaks.hide(message)
            if level in ("ERROR", "CRITICAL"):
                self.last_error = self.last

    def _note_failure(self, level: str, message: str, *, has_exception: bool) -> None:
        is_failure = level in ("ERROR", "CRITICAL") and (has_exception or _FAILED.search(message))
        if is_failure and len(self.failures) < _MOST_FAILURES:
            self.failures.append(self._leaks.hide(message))

    def _metric(self, metric: dict[str, Any]) -> None:
        name, tags = str(metric.get("metric")), metric.get("tags")
        if name not in self.metrics and len(self.metrics) >= _MOST_NAMES:
            return
        self.metrics[name] += 1
        if name == "record_count" and isinstance(tags, dict):
            stream = str(tags.get("stream", tags.get("endpoint", "")))
            if stream not in self.counted and len(self.counted) >= _MOST_NAMES:
                return
            self.counted[stream] += int(metric.get("value") or 0)
        self._keep(msgspec.json.encode(tags).decode() if tags else "")

    def _keep(self, text: str) -> None:
        text = text[:_MOST_OF_ONE]
        if self._kept < _MOST_KEPT:
            self._text.append(text)
            self._kept += len(text)
        else:
            self._late.append(text)
