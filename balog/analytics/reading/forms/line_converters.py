"""Converters of forms of lines: the first archives, captured Singer streams, and captures of stderr.

The first archives have ``time⇥channel⇥payload`` (see ``balog.topics.archives``), stderr has the dialects of
``balog.log_lines.dialects``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timezone
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from balog.analytics.reading.blocks import RAW_LIMIT, BadLine, Block, Damage
from balog.analytics.reading.forms.converter import EventLines, LineConverter, Origin, time_of, write_line, write_time
from balog.analytics.reading.validation import AnyObject, count_events, normalize_line, try_decode
from balog.common.errors import EventError
from balog.event import MAX_CHANNEL_LENGTH
from balog.log_lines.line import LogLine
from balog.log_lines.stderr import RecordAssembler, channel_of, payload_of
from balog.singer.messages import LogMessage, parse_log, to_event
from balog.topics.archives import read_time

_check_object = msgspec.json.Decoder(AnyObject).decode
_RFC3339 = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


class OldConverter(LineConverter):
    """Converts each line to an event of facility 0.0.1, which has no level; a line of JSON is read as an event."""

    def convert(self, piece: bytes, offset: int, lines: EventLines) -> None:
        """Convert each line."""
        for line in piece.split(b"\n"):
            start, offset = offset, offset + len(line) + 1
            if not line.strip():
                continue
            when, _, rest = line.partition(b"\t")
            channel, tab, payload = rest.partition(b"\t")
            if not tab or line[:1] == b"{":
                lines.add(line, start, line)
                continue
            try:
                # Checked separately: a payload that closes its object early must not overwrite the header.
                _check_object(payload)
                event = b'{"schema":"0.0.1","header":{"id":"%b","channel":%b,"timestamp":"%b"},"payload":%b}' % (
                    self.origin.make_id(start, line).encode(),
                    _quote(channel),
                    when if _RFC3339.fullmatch(when) else _time(when),
                    payload.rstrip(b"\r"),
                )
            except EventError as error:
                lines.reject(start, str(error), line)
            except UnicodeError:
                lines.reject(start, "$: not UTF-8", line)
            except msgspec.ValidationError:
                lines.reject(start, "$.payload: expected an object", line)
            except (msgspec.DecodeError, RecursionError) as error:
                lines.reject(start, f"$.payload: not JSON: {error}", line)
            else:
                lines.add(event, start, line)


@lru_cache(maxsize=4096)
def _quote(text: bytes) -> bytes:
    return msgspec.json.encode(text.decode())


@lru_cache(maxsize=4096)
def _time(text: bytes) -> bytes:
    return write_time(read_time(text.decode("ascii").strip())).encode()


class _Type(Struct, gc=False):
    type: str


class _Log(Struct, gc=False):
    type: str
    level: Any = None
    value: Raw = Raw(b"")


_types = msgspec.json.Decoder(_Type)
_logs = msgspec.json.Decoder(_Log)
_OTHERS = frozenset({"RECORD", "SCHEMA", "STATE", "ACTIVATE_VERSION", "BATCH"})
_KNOWN = _OTHERS | {"LOG"}


class SingerConverter(LineConverter):
    """Converts LOG messages: a value that is an event as it is, other JSON with ``balog.singer.messages.to_event``.

    It skips all other messages and rejects other lines.
    """

    def convert(self, piece: bytes, offset: int, lines: EventLines) -> None:
        """Convert the LOG messages."""
        texts = piece.split(b"\n")
        messages = try_decode(_logs.decode_lines, piece) or []
        if messages and {message.type for message in messages} <= _OTHERS:
            return
        if len(messages) != len(texts) - (not texts[-1]):  # some lines are not messages
            messages = []
        whole = _events(messages)
        for number, text in enumerate(texts):
            if whole and number < len(whole) and (event := whole[number]):
                lines.add(event, offset, text)
            elif not (messages and number < len(messages) and messages[number].type in _OTHERS) and text.strip():
                self.take(text, offset, lines)
            offset += len(text) + 1

    def reject(self, bad: BadLine) -> Iterator[EventLines | BadLine]:
        """Skip a line that is too long and, by its beginning, is not a LOG message."""
        if b'"RECORD"' not in bad.raw[:200] and b'"STATE"' not in bad.raw[:200]:
            yield bad

    def take(self, line: bytes, offset: int, lines: EventLines) -> None:
        """Convert one line."""
        log = parse_log(line)
        if log is None:
            if problem := _problem(line):
                lines.reject(offset, problem, line)
            return
        try:
            lines.add(self._event(log, line, offset), offset, line)
        except EventError as error:
            lines.reject(offset, str(error), line)

    def _event(self, log: LogMessage, line: bytes, offset: int) -> bytes:
        value = bytes(log.value)
        if b'"header"' in value:
            with suppress(EventError):
                return normalize_line(value)
        origin = self.origin
        event, _ = to_event(log, channel=origin.application)
        when = time_of(value)
        return write_line(
            origin.make_id(offset, line, is_timeless=when is None),
            event.header.channel[:MAX_CHANNEL_LENGTH],
            write_time(when) if when else origin.time,
            log.level,
            origin.context,
            event.raw_payload,
        )


def is_message(line: bytes) -> bool:
    """Return whether a line is a Singer message."""
    message = try_decode(_types.decode, line)
    return message is not None and message.type.upper() in _KNOWN


def _events(messages: list[_Log]) -> list[bytes] | None:
    """Return the values that are events, and b"" for other messages; None if a value only resembles an event."""
    values = [
        bytes(message.value) if message.type == "LOG" and b'"header"' in bytes(message.value) else b""
        for message in messages
    ]
    events = [event for event in values if event]
    return values if events and count_events(memoryview(b"\n".join([*events, b""]))) == len(events) else None


def _problem(line: bytes) -> str | None:
    """Return why a line is not a Singer message, or None if it is one."""
    try:
        _types.decode(line)
    except msgspec.ValidationError:
        return "$.type: no Singer message"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"not JSON: {error}"
    return None


_Mark = tuple[int, bytes]


class StderrConverter(LineConverter):
    """Converts each record to an event, and each other line to an event; it rejects nothing.

    A record without a time gets that of the last record that has one. Messages of a Singer stream that went to the same
    file (``2>&1``) are read as such.
    """

    def __init__(self, origin: Origin) -> None:
        super().__init__(origin)
        self._records: RecordAssembler[_Mark] = RecordAssembler(timezone.utc)
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

    def reject(self, bad: BadLine) -> Iterator[Block | EventLines | BadLine]:
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
