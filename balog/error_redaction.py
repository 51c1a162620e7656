"""Remove secrets from the text of an error."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from balog.redaction import Redactor


@functools.cache
def _redactor() -> Redactor:
    from balog.redaction import Redactor  # at the first error: it takes time to import

    return Redactor()


def redact_error(text: str) -> str:
    """Return the text of an error without secrets, by the built-in rules.

    For every text of an error that leaves the process or is stored: lines on stderr, reasons, tracebacks. Redact it
    before it is cut, because half a secret is not recognized.
    """
    return _redactor().redact_text(text)
