"""The logs of a run: stderr in the dialects of taps, and LOG messages of stdout."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from pathlib import Path
from typing import Any

import msgspec

from balog.event import Event
from balog.log_lines.line import LogLine
from balog.log_lines.stderr import LineSplitter, RecordAssembler
from balog.tap.verify.leaks import Leaks

_FRAME = re.compile(r'^\s*File "([^"\n]+)", line (\d+)', re.MULTILINE)
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
_STANDARD = re.compile(r"/lib(?:64)?/python3[^/]*/|^<")


def place_of(trace: str) -> str:
    """Return ``FILE:LINE`` of the innermost frame in the tap's own code, else of the innermost in any other library.

    The tap's own code is outside of the installed packages, or in a package whose name has the word tap. A file of a
    package is relative to the packages, another below the current folder to that; else its path has two parts.
    """
    frames = _FRAME.findall(trace)
    for is_own in (_is_own, _INSTALLED.search, lambda path: True):
        for path, line in reversed(frames):
            if is_own(path):
                return f"{_short(path)}:{line}"
    return ""


def _is_own(path: str) -> bool:
    _, installed, rest = path.rpartition("-packages/")
    if installed:
        return "tap" in re.split(r"[^a-z]+", rest.partition("/")[0].lower())
    return not _STANDARD.search(path) and "/bin/" not in path


def _short(path: str) -> str:
    _, installed, rest = path.rpartition("-packages/")
    if installed:
        return rest
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return "/".join(Path(path).parts[-2:])


_MAX_READ = 32 * 1024 * 1024
_MAX_KEPT = 256 * 1024
_MAX_EXCERPT = 4096
_MAX_LATE = 200
_MAX_NAMES = 10_000
_MAX_FAILURES = 100
_FAILED = re.compile(
    r"fail|abort|truncat|incomplete|interrupt|timed? ?out|giv(?:e|ing) up|gave up|could ?n[o']t|cannot|can't|unable|"
    r"exceed|refused|denied|unauthori[sz]ed|forbidden|unavailable|exception|skipp|stopp|"
    r"(?:http|status|code|answer(?:ed)?|return(?:ed)?|got)[ :=]{1,3}[45]\d\d\b|\b[45]\d\d (?:client|server) error",
    re.IGNORECASE,
)
"""Words of an ERROR line that report a failure."""

_GAVE_UP = re.compile(
    r"giv(?:e|es|ing) up|gave up|abort(?:ed|ing)|incomplete (?:sync|stream|data|read|result)|"
    r"partial(?:ly)? (?:sync|read)|not all (?:records|rows|pages)|skip(?:ped|ping|s) (?:the )?(?:rest|remain)|"
    r"(?:stopp|end|cutt?)(?:ed|ing) (?:early|at page|the (?:sync|stream)|sync)|"
    r"(?:rest|remain\w*)[^.]{0,40}(?:skipped|lost|dropped|not (?:be )?(?:read|synced))|"
    r"truncat\w+ (?:the )?(?:sync|stream|output|response|result)|"
    r"(?:sync|stream|output|response|result)s? (?:is|was) truncated",
    re.IGNORECASE,
)
"""Words of a WARNING line that report records which are not read."""

_REASON = re.compile(
    r"error|invalid|missing|required|must|expect|no such|not found|does not|do not|unrecogni[sz]ed|usage:|malformed|"
    r"json|terminated|decode|pars(?:e|ing)|wrong|bad|unknown|undefined|empty|null",
    re.IGNORECASE,
)
"""Words of a line below ERROR that explain why a run fails."""


class Logs:
    """Parses log lines and counts them: levels, metrics, failures, and excerpts of the text.

    Args:
        leaks: searches the lines for secrets.

    Attributes:
        bytes: size of stderr; only the first 32 MiB are read.
        lines: number of lines of stderr.
        levels: number of records by level; plain text counts as INFO.
        tracebacks: number of tracebacks that no logger wrote, including those after a line at INFO or WARNING.
        failures: the first messages at ERROR or CRITICAL with an exception or with words of failure.
        gave_up: the first messages at WARNING that report records which are not read.
        has_reason: whether a line explains a failure: at ERROR or CRITICAL, or by its words.
        counted: the sum of the counter ``record_count`` by its tag ``endpoint`` or ``stream``; "" has neither.
        metrics: number of metrics by name.
        last: the last message, without secrets.
        last_error: the last message at ERROR or CRITICAL; "" if there was none.
        last_exception: the last line of the last bare traceback; "" if there was none.
        place: the file and line of the tap in the last traceback; "" if there was none.
    """

    def __init__(self, leaks: Leaks) -> None:
        self._leaks = leaks
        self._splitter = LineSplitter()
        self._records: RecordAssembler[None] = RecordAssembler()
        self.bytes = 0
        self.lines = 0
        self.levels: Counter[str] = Counter()
        self.tracebacks = 0
        self.failures: list[str] = []
        self.gave_up: list[str] = []
        self.has_reason = False
        self.counted: Counter[str] = Counter()
        self.metrics: Counter[str] = Counter()
        self.last = ""
        self.last_error = ""
        self.last_exception = ""
        self.place = ""
        self._text: list[str] = []
        self._kept = 0
        self._late: deque[str] = deque(maxlen=_MAX_LATE)

    def feed(self, data: bytes) -> None:
        """Parse the next bytes of stderr."""
        before, self.bytes = self.bytes, self.bytes + len(data)
        if before >= _MAX_READ:
            return
        for line in self._splitter.feed(data):
            self._line(line)

    def close(self) -> None:
        """Parse the rest of stderr."""
        for line in self._splitter.close():
            self._line(line)
        for _, record in self._records.finish():
            self._take(record)

    def add_event(self, event: Event) -> None:
        """Add an event of a LOG message or of stderr."""
        payload = event.payload
        metric = payload if payload.get("cls_type") == "metric" else None
        message = payload.get("message")
        exception = payload.get("exc_text")
        if isinstance(exception, str):
            self.place = place_of(exception) or self.place
        text = message if isinstance(message, str) else ""
        has_exception = bool(exception or payload.get("exception"))
        self._note(str(event.level or ""), text, metric, is_traceback=bool(exception), has_exception=has_exception)
        self._keep(bytes(event.raw_payload).decode("utf-8", "replace"))

    @property
    def in_place(self) -> str:
        """The place as the end of a clause: `` (in tap_foo/client.py:31)``; "" if it is unknown."""
        return f" (in {self.place})" if self.place else ""

    def mentions(self, name: str) -> bool:
        """Return whether an excerpt contains a name."""
        forms = {name, json.dumps(name)[1:-1]}  # a line can have a name as JSON escapes it
        return any(form in text for text in self.excerpts for form in forms)

    @property
    def excerpts(self) -> list[str]:
        """The first 256 KiB of log text and the last 200 pieces."""
        return [*self._text, *self._late]

    def _line(self, line: bytes) -> None:
        self.lines += 1
        self._leaks.search_line(line, "stderr", self.lines)
        for _, record in self._records.take(line, None):
            self._take(record)

    def _take(self, record: LogLine) -> None:
        if record.event is not None:
            self.add_event(record.event)
            return
        text = record.exc_text or ""
        if text:
            self.place = place_of(text) or self.place
        # The interpreter reports a failed __del__ so, and goes on.
        is_ignored = record.is_uncaught and "Exception ignored" in f"{record.message}{self.last}"
        if record.is_uncaught and not is_ignored:
            self.tracebacks += 1
            self.last_exception = self._leaks.redact((text or record.message).splitlines()[-1])
        self._note(
            "WARNING" if is_ignored else record.level,
            record.message,
            record.metric,
            is_traceback=record.is_uncaught,
            has_exception=bool(text or record.exception),
        )
        self._keep(record.message)
        if record.fields:
            self._keep(repr(record.fields))

    def _note(
        self, level: str, message: str, metric: dict[str, Any] | None, *, is_traceback: bool, has_exception: bool
    ) -> None:
        self.levels[level] += 1
        if metric is not None:
            self._metric(metric)
            return
        is_error = level in ("ERROR", "CRITICAL")
        message = message[:_MAX_EXCERPT]
        has_failed = _FAILED.search(message) is not None
        if message and not is_traceback:
            self.last = self._leaks.redact(message)
            self.last_error = self.last if is_error else self.last_error
        if message:
            self.has_reason = self.has_reason or is_error or has_failed or bool(_REASON.search(message))
        if level == "WARNING" and len(self.gave_up) < _MAX_FAILURES and _GAVE_UP.search(message):
            self.gave_up.append(self._leaks.redact(message))
        if is_error and (has_exception or has_failed) and len(self.failures) < _MAX_FAILURES:
            self.failures.append(self._leaks.redact(message))

    def _metric(self, metric: dict[str, Any]) -> None:
        name, tags = str(metric.get("metric")), metric.get("tags")
        if name not in self.metrics and len(self.metrics) >= _MAX_NAMES:
            return
        self.metrics[name] += 1
        if name == "record_count" and isinstance(tags, dict):
            stream = str(tags.get("stream", tags.get("endpoint", "")))
            if stream not in self.counted and len(self.counted) >= _MAX_NAMES:
                return
            self.counted[stream] += int(metric.get("value") or 0)
        self._keep(msgspec.json.encode(tags).decode() if tags else "")

    def _keep(self, text: str) -> None:
        text = text[:_MAX_EXCERPT]
        if self._kept < _MAX_KEPT:
            self._text.append(text)
            self._kept += len(text)
        else:
            self._late.append(text)
