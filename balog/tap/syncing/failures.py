"""Failed streams, reported as one line on stderr each and as an event with the exception as data."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from balog.recording.fallback_encoding import safe_str
from balog.tap.errors import SyncError
from balog.tap.streams import Stream


def report_failures(log: Any, failures: Iterable[SyncError]) -> None:
    """Write ``CRITICAL contacts: message`` to stderr for each failure, with secrets redacted, and log it."""
    failures = list(failures)
    if not failures:
        return
    from balog.recording.configuration import current
    from balog.redaction import Redactor

    redactor = current().redactor or Redactor()
    for failure in failures:
        log.critical("%s", failure, exc_info=failure.__cause__)
        sys.stderr.write(redactor.redact_text(f"CRITICAL {failure}\n"))
    sys.stderr.flush()


def reason_of(stream: Stream, error: BaseException) -> str:
    """Return an error as one line, without the stream's name at its start.

    A message of a single word, such as that of a ``KeyError``, gets the error's type before it.
    """
    text = " ".join(safe_str(error).split()).removeprefix(f"{stream.name}: ")
    if isinstance(error, SystemExit):
        return f"its source ended the process ({text or 0})"
    return text if " " in text else f"{type(error).__name__}{text and ': '}{text}"
