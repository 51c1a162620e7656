"""RECORD messages, one by one or by the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from balog.event import format_timestamp
from balog.tap.errors import RecordError

_encoder = msgspec.json.Encoder(decimal_format="number")

Refuse = Callable[[Any, RecordError], None]


def raise_refusal(record: Any, error: RecordError) -> None:
    """Raise the error of a record that cannot be written."""
    raise error


class Writer(Protocol):
    """Writes the records of one stream; see ``Output.records``."""

    def __call__(self, record: dict[str, Any]) -> bool:
        """Write a record. Return False if it could not be written and was passed to ``refuse``."""

    def page(self, records: Sequence[dict[str, Any]]) -> int:
        """Write several records, faster than one by one. Return the number of written ones."""


class RecordWriter:
    """Writes RECORD messages; see ``Writer``."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        stream: str,
        version: int | None,
        has_time: bool,
        refuse: Refuse | None = None,
    ) -> None:
        self._write = write
        self._stream = stream
        self._refuse = refuse or raise_refusal
        name = _encoder.encode(stream)
        self._head = b'{"type":"RECORD","stream":%b,"record":' % name
        self._tail = b"}\n" if version is None else b',"version":%d}\n' % version
        self._has_time = has_time

    def __call__(self, record: dict[str, Any]) -> bool:
        """See ``Writer``."""
        try:
            line = _encoder.encode(record)
        except (TypeError, ValueError, RecursionError, ArithmeticError) as error:
            self._refuse(record, RecordError(self._stream, unwritable(error)))
            return False
        self._write(self._head + line + (self._tail if not self._has_time else self._timed()))
        return True

    def page(self, records: Sequence[dict[str, Any]]) -> int:
        """See ``Writer``."""
        head, tail = self._head, self._timed() if self._has_time else self._tail
        encode = _encoder.encode
        try:
            self._write(b"".join([head + encode(record) + tail for record in records]))
        except (TypeError, ValueError, RecursionError, ArithmeticError):
            return sum(map(self, records))  # find the one that fails
        return len(records)

    def _timed(self) -> bytes:
        return b',"time_extracted":"%b"' % format_timestamp(time.time_ns()).encode() + self._tail


def unwritable(error: Exception) -> str:
    """Return why a record cannot be encoded, without its values, which the error's own text can have."""
    if isinstance(error, UnicodeError):
        return "has half of a surrogate pair in a text, which UTF-8 can't write"
    if isinstance(error, RecursionError):
        return "is nested too deep"
    return "has a value that JSON can't write"
