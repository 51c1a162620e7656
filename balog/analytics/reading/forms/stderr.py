"""Converts captures of stderr, in the dialects of ``balog.singer.dialects``."""

from __future__ import annotations

from collections.abc import Iterator

from balog.analytics.reading.blocks import RAW_LIMIT, BadLine, Block, Damage
from balog.analytics.reading.forms.base import EventLines, LineConverter, Origin
from balog.analytics.reading.forms.event_lines import write_line, write_time
from balog.analytics.reading.forms.singer import SingerConverter, is_message
from balog.errors import EventError
from balog.singer.log_line import LogLine
from balog.singer.stderr import RecordAssembler, channel_of, payload_of

_Mark = tuple[int, bytes]


class StderrConverter(LineConverter):
    """Converts each record to an event, and each other line to an event; it rejects nothing.

    A record without a time gets that of the last record that has one. Messages of a Singer stream that went to the same
    file (``2>&1``) are read as such.
    """

    def __init__(self, origin: Origin) -> None:
        super().__init__(origin)
        self._records: RecordAssembler[_Mark] = RecordAssembler(origin.zone)
        self._singer = SingerConverter(origin)
        self._time: str | None = None

    def convert(self, piece: bytes, offset: int, lines: EventLines) -> None:
        """Convert lines; the last record waits until it is complete."""
        for line in piece.split(b"\n"):
            if line.startswith(b'{"type"') and is_message(line):
                self._finish(lines)
                self._singer.take(line, offset, lines)
            else:
                for mark, record in self._records.take(line, (offset, line)):
                    self._add(mark, record, lines)
            offset += len(line) + 1

    def reject(self, bad: BadLine) -> Iterator[EventLines | BadLine]:
        """Convert the beginning of a line that is too long."""
        yield from self.feed(Block(bad.offset, memoryview(bad.raw.replace(b"\n", b" ") + b"\n")))

    def close(self, damage: Damage | None) -> Iterator[EventLines | BadLine]:
        """Convert the last record, and report the damage after it."""
        lines = EventLines()
        self._finish(lines)
        if damage is not None:
            lines.reject(damage.offset, damage.reason, damage.tail[:RAW_LIMIT])
        if lines:
            yield lines

    def _finish(self, lines: EventLines) -> None:
        for mark, record in self._records.finish():
            self._add(mark, record, lines)

    def _add(self, mark: _Mark, record: LogLine, lines: EventLines) -> None:
        offset, line = mark
        if record.event is not None:
            lines.add(line, offset, line)
            return
        if record.timestamp is not None:
            self._time = write_time(record.timestamp)
        origin = self.origin
        try:
            event = write_line(
                origin.make_id(offset, line, is_timeless=record.timestamp is None),
                channel_of(record, origin.application),
                self._time or origin.time,
                record.level,
                origin.context,
                payload_of(record),
            )
        except EventError as error:
            lines.reject(offset, str(error), line)
        else:
            lines.add(event, offset, line)
