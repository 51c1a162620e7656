"""Singer messages on stdout, whole lines in their order, written in large pieces."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["Output"]

_PIECE = 64 * 1024


class Output:
    """Writes messages. What was written is at the reader's after ``flush``; a STATE flushes.

    Args:
        state_file: each state's value is written there, whole or not at all, before its message goes out.
    """

    def __init__(self, state_file: str | os.PathLike[str] | None = None) -> None:
        self._buffer = bytearray()
        self._encoder = msgspec.json.Encoder(decimal_format="number")
        self._state_file = state_file

    def schema(self, stream: str, schema: dict[str, Any], keys: list[str], bookmarks: list[str]) -> None:
        """Write a SCHEMA."""
        self._message(
            {
                "type": "SCHEMA",
                "stream": stream,
                "schema": schema,
                "key_properties": keys,
                **({"bookmark_properties": bookmarks} if bookmarks else {}),
            }
        )

    def records(self, stream: str, version: int | None = None) -> Callable[[dict[str, Any]], None]:
        """Give the function that writes a record of a stream: made once, called for each."""
        name = self._encoder.encode(stream)
        head = b'{"type":"RECORD","stream":%b,"record":' % name
        tail = b"}\n" if version is None else b',"version":%d}\n' % version
        buffer, encode = self._buffer, self._encoder.encode_into

        def write(record: dict[str, Any]) -> None:
            buffer.extend(head)
            encode(record, buffer, -1)
            buffer.extend(tail)
            if len(buffer) >= _PIECE:
                self.flush()

        return write

    def activate_version(self, stream: str, version: int) -> None:
        """Write an ACTIVATE_VERSION."""
        self._message({"type": "ACTIVATE_VERSION", "stream": stream, "version": version})

    def state(self, value: dict[str, Any]) -> None:
        """Write a STATE, and all that was written before it."""
        self._message({"type": "STATE", "value": value})
        self.flush()

    def flush(self) -> None:
        """Hand over what was written."""
        sys.stdout.buffer.write(self._buffer)
        sys.stdout.buffer.flush()
        self._buffer.clear()

    def _message(self, message: dict[str, Any]) -> None:
        self._encoder.encode_into(message, self._buffer, -1)
        self._buffer += b"\n"
