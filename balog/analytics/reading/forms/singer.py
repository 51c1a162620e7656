"""Converts a captured Singer stream: its LOG messages are events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw, Struct

from balog.analytics.reading.blocks import BadLine
from balog.analytics.reading.forms.base import EventLines, LineConverter
from balog.analytics.reading.forms.event_lines import time_of, write_line, write_time
from balog.analytics.reading.validation import count_events, normalize_line
from balog.errors import EventError
from balog.event import MAX_CHANNEL_LENGTH
from balog.singer.messages import LogMessage, parse_log, to_event


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
        try:
            messages = _logs.decode_lines(piece)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            messages = []
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
        when = time_of(value, origin.zone)
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
    try:
        return _types.decode(line).type.upper() in _KNOWN
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _events(messages: list[_Log]) -> list[bytes] | None:
    """Return the values that are events, and b"" for other messages; None if a value only resembles an event."""
    found = [
        bytes(message.value) if message.type == "LOG" and b'"header"' in bytes(message.value) else b""
        for message in messages
    ]
    events = [event for event in found if event]
    return found if events and count_events(memoryview(b"\n".join([*events, b""]))) == len(events) else None


def _problem(line: bytes) -> str | None:
    """Return why a line is not a Singer message, or None if it is one."""
    try:
        _types.decode(line)
    except msgspec.ValidationError:
        return "$.type: no Singer message"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"not JSON: {error}"
    return None
