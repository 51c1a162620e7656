"""Secrets that go over several lines of stderr: private keys, and values in quotes or in elements of XML."""

from __future__ import annotations

import re

import msgspec

from balog.common.errors import redact_error
from balog.log_lines.line import LogLine

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
