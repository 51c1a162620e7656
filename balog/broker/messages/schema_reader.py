"""Read the SCHEMA messages of a stream for events: each one that differs from the stream's last one."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

MAX_SCHEMA_BYTES = 256 * 1024
"""A longer SCHEMA line is not read."""

MAX_STREAMS = 10_000


class _SchemaMessage(Struct):
    stream: str
    schema: Raw
    key_properties: list[str] | None = None


_message = msgspec.json.Decoder(_SchemaMessage)


class SchemaReader:
    """Remembers the last SCHEMA of each stream by its hash."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def read(self, line: bytes) -> dict[str, Any] | None:
        """Return the payload of an event ``stream_schema``; None if the stream has this SCHEMA, or it can't be read."""
        if len(line) > MAX_SCHEMA_BYTES:
            return None
        try:
            message = _message.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        seen = hash(line)
        if self._seen.get(message.stream) == seen or not bytes(message.schema).startswith(b"{"):
            return None
        if len(self._seen) < MAX_STREAMS or message.stream in self._seen:
            self._seen[message.stream] = seen
        return {
            "cls_type": "stream_schema",
            "version": "1.0.0",
            "stream": message.stream,
            "schema": message.schema,
            "key_properties": message.key_properties or [],
        }
