"""Count a Singer stream's records and their bytes by stream, without parsing the records."""

from __future__ import annotations

import re

from balog.broker.messages.message_prefixes import read_head

_USUAL_HEAD = re.compile(rb'\{"type": ?"RECORD", ?"stream": ?"[^"\\]*"')


class RecordCounter:
    """Counts RECORD messages, and the bytes of their lines with the newline.

    Most streams come as long runs of lines that begin alike, ``{"type": "RECORD", "stream": "users"``. A block that is
    one such run is counted by counting that beginning; any other block line by line.

    Attributes:
        streams: records so far by stream, in the order of their first record.
        bytes: bytes of those records' lines, by the same streams.
    """

    def __init__(self) -> None:
        self.streams: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self._run = b""
        self._stream = ""
        self._last: str | None = None

    @property
    def total(self) -> int:
        """Number of records of all streams."""
        return sum(self.streams.values())

    def count(self, block: bytes) -> None:
        """Count the whole lines in a block; the last one may lack its newline."""
        if self._run and block.endswith(b"\n") and block.startswith(self._run):
            records = block.count(b"\n" + self._run) + 1
            if records == block.count(b"\n"):
                self._add(self._stream, records, len(block))
                return
        lines = block.split(b"\n")
        last = lines.pop()
        for line in lines:
            self._count_line(line, len(line) + 1)
        if last:
            self._count_line(last, len(last))

    def lengthen(self, size: int) -> None:
        """Add bytes to the last counted line if that was a record, for a line too long to buffer."""
        if self._last is not None:
            self.bytes[self._last] += size

    def _count_line(self, line: bytes, size: int) -> None:
        self._last = None
        if self._run and line.startswith(self._run):
            self._add(self._stream, 1, size)
            return
        match = _USUAL_HEAD.match(line)
        if match:
            head = match[0]
            self._run = head
            self._stream = head[head.rindex(b'"', 0, -1) + 1 : -1].decode("utf-8", "replace")
            self._add(self._stream, 1, size)
            return
        if not line:
            return
        read = read_head(line)
        if read is not None and read.type.upper() == "RECORD":
            self._add(read.stream, 1, size)

    def _add(self, stream: str, records: int, size: int) -> None:
        self.streams[stream] = self.streams.get(stream, 0) + records
        self.bytes[stream] = self.bytes.get(stream, 0) + size
        self._last = stream
