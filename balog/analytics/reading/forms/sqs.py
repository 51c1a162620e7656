"""Converts the output of ``aws sqs receive-message``: JSON documents with messages, whose bodies are events.

The documents may be concatenated, and formatted or not; their messages are read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from balog.analytics.reading.blocks import RAW_LIMIT, BadLine, Block, Damage, oversized
from balog.analytics.reading.forms.converter import EventLines, FormConverter, Origin, Part, pieces
from balog.analytics.reading.validation import try_decode
from balog.common.errors import split_refusal
from balog.event import MAX_EVENT_BYTES
from balog.topics.sqs.packing import claim_size, decode_body, unwrap

EARLY = "the document ends early"

_value = msgspec.json.Decoder(Raw).decode
_SPACE = re.compile(rb"[ \t\r\n]*")
_OPENING = re.compile(rb'\{\s*"Messages"\s*:\s*\[|\[')
_KEY = re.compile(rb',\s*"[^"\\]*"\s*:\s*')
_LONGEST_KEY = 1000
_PLACE = re.compile(r" \(byte (\d+)\)$")


def _measure() -> int:
    """Return the offset of msgspec's error positions from the end of a value: releases differ."""
    try:
        _value(b"{}x")
    except msgspec.DecodeError as error:
        if match := _PLACE.search(str(error)):
            return int(match[1]) - 2
    raise ImportError("this release of msgspec does not say where a value ends")


_OFF = _measure()
_TOP, _IN_LIST, _BEHIND_LIST = range(3)


class DocumentMessage(NamedTuple):
    """An object in a list ``Messages``, or a document without one: its offset in the file, and its text."""

    offset: int
    text: bytes


class _BrokenError(Exception):
    pass


class DocumentReader:
    """Yields messages one by one, so that neither the size of a document nor an invalid message affects the others.

    After an invalid part it continues at the next line that begins with ``{``, without indentation or with that of the
    invalid message.
    """

    def __init__(self) -> None:
        self._rest, self._offset = b"", 0
        # the part of a document in which the rest begins; whether its list has no name
        self._place, self._is_bare = _TOP, False
        self._resume: re.Pattern[bytes] | None = None  # the pattern to continue at

    @property
    def is_between(self) -> bool:
        """Whether all documents so far are complete."""
        return self._place == _TOP and not self._rest and self._resume is None

    def feed(self, data: bytes, offset: int) -> Iterator[DocumentMessage | BadLine]:
        """Read whole lines, which begin at ``offset`` of the file and follow the earlier ones."""
        if self._rest:
            data, offset = self._rest + data, self._offset
        yield from self._read(data, offset, is_last=False)

    def close(self) -> Iterator[DocumentMessage | BadLine]:
        """Read the rest. A document without its end is reported as ``EARLY``, last."""
        yield from self._read(self._rest, self._offset, is_last=True)
        if self._place != _TOP and self._resume is None:
            yield BadLine(self._offset, EARLY, b"")
        self._place, self._resume = _TOP, None

    def _read(self, data: bytes, offset: int, is_last: bool) -> Iterator[DocumentMessage | BadLine]:
        position = 0 if self._resume is None else self._find(self._resume, data, 0)
        while (position := _SPACE.match(data, position).end()) < len(data):  # type: ignore[union-attr]
            try:
                end, is_message = self._step(data, position, is_last)
            except _BrokenError as error:
                start, position = position, self._go_on(data, position)
                yield BadLine(offset + start, str(error), data[start : min(position, start + RAW_LIMIT)])
                continue
            if end is not None:
                if is_message:
                    yield DocumentMessage(offset + position, data[position:end])
                position = end
            elif len(data) - position <= MAX_EVENT_BYTES:
                break
            else:
                start, position = position, self._go_on(data, position)
                yield oversized(offset + start, data[start : start + RAW_LIMIT])
        if position < len(data):  # including its indentation
            position -= len(_indent(data, position))
        self._rest = data[position:]
        self._offset = offset + (position if self._rest else len(data.rstrip()))

    def _step(self, data: bytes, position: int, is_last: bool) -> tuple[int | None, bool]:
        """Return the end of the next token or value (None if more input is needed), and whether it is a message."""
        char = data[position : position + 1]
        if self._place == _TOP and (opening := _OPENING.match(data, position)):
            self._place, self._is_bare = _IN_LIST, char == b"["
            return opening.end(), False
        if self._place != _BEHIND_LIST and char == b"{":
            return _end(data, position, is_last), True
        if self._place == _IN_LIST and char in b",]":
            if char == b"]":
                self._place = _TOP if self._is_bare else _BEHIND_LIST
            return position + 1, False
        if self._place == _BEHIND_LIST and char == b"}":
            self._place = _TOP
            return position + 1, False
        if self._place == _BEHIND_LIST and (key := _KEY.match(data, position)):
            return _end(data, key.end(), is_last), False
        if self._place == _BEHIND_LIST and char == b"," and len(data) - position < _LONGEST_KEY and not is_last:
            return None, False
        raise _BrokenError("not JSON: expected a document" if self._place == _TOP else "not JSON: expected a message")

    def _go_on(self, data: bytes, position: int) -> int:
        """Return the position to continue at after an invalid part."""
        indent = _indent(data, position)
        inner = b"(?P<inner>%b)?" % re.escape(indent) if self._place == _IN_LIST and indent else b""
        # After a list, the invalid part may itself be the next document.
        return self._find(re.compile(rb"(?m)^" + inner + rb"\{"), data, position + (self._place != _BEHIND_LIST))

    def _find(self, start: re.Pattern[bytes], data: bytes, position: int) -> int:
        match = start.search(data, position)
        if match is None:
            self._resume = start
            return len(data)
        if not match.groupdict().get("inner"):
            self._place = _TOP
        self._resume = None
        return match.end() - 1


def _indent(data: bytes, position: int) -> bytes:
    """Return the indentation before a position, or b"" if there is anything else."""
    indent = data[data.rfind(b"\n", 0, position) + 1 : position]
    return indent if indent.isspace() else b""


def _end(data: bytes, position: int, is_last: bool) -> int | None:
    """Return the end of a JSON value, or None if more input is needed."""
    try:
        _value(memoryview(data)[position:])
    except msgspec.DecodeError as error:
        reason = str(error)
        match = _PLACE.search(reason)
        at = position + int(match[1]) if match else len(data)
        if "trailing characters" in reason:
            return at - _OFF
        if at < len(data):
            raise _BrokenError(f"not JSON: {_PLACE.sub('', reason).removeprefix('JSON is malformed: ')}") from None
    except RecursionError:
        raise _BrokenError("not JSON that can be read: nested too deeply") from None
    else:
        return len(data)
    if is_last:
        raise _BrokenError(EARLY)
    return None


_Attributes = dict[str, dict[str, Any]]


class _Message(Struct):
    Body: str
    MessageAttributes: _Attributes | None = None


class _Document(Struct):
    Body: str | UnsetType = UNSET
    MessageAttributes: _Attributes | None = None
    Messages: list[Raw] | UnsetType | None = UNSET
    header: Raw | UnsetType = UNSET
    ResponseMetadata: Raw | UnsetType = UNSET


_message = msgspec.json.Decoder(_Message)
_document = msgspec.json.Decoder(_Document).decode


class SqsConverter(FormConverter):
    """Extracts the event from each message, and from SNS's envelope in it.

    A document that is itself an event is also accepted, even over several lines.
    """

    def __init__(self, origin: Origin) -> None:
        super().__init__(origin)
        self._reader = DocumentReader()

    def feed(self, block: Block) -> Iterator[EventLines]:
        """Convert the next block: line by line if each line is a message, otherwise by documents."""
        lines = EventLines()
        for piece, offset in pieces(block):
            if not self._take_lines(piece, offset, lines):
                for entry in self._reader.feed(piece, offset):
                    self._take(entry, lines)
                    if lines.is_full:
                        yield lines
                        lines = EventLines()
            if lines.is_full:
                yield lines
                lines = EventLines()
        if lines:
            yield lines

    def reject(self, bad: BadLine) -> Iterator[Part]:
        """End the document that has a line of more than 16 MiB, and continue at the next document."""
        yield from self.close(None)
        yield bad

    def close(self, damage: Damage | None) -> Iterator[Part]:
        """Convert the rest."""
        lines = EventLines()
        if damage is not None and damage.tail:
            for entry in self._reader.feed(damage.tail, damage.offset):
                self._take(entry, lines)
        for entry in self._reader.close():
            self._take(entry, lines)
        if damage is not None:
            offset, raw = damage.offset + len(damage.tail), b""
            if lines.bad and lines.bad[-1].reason == EARLY:  # the damage is the reason
                offset, _, raw = lines.bad.pop()
            lines.reject(offset, damage.reason, raw)
        if lines:
            yield lines

    def _take_lines(self, piece: bytes, offset: int, lines: EventLines) -> bool:
        """Convert a message from each line; return False, without effect, if a line is anything else."""
        if not self._reader.is_between:
            return False
        texts = piece.split(b"\n")
        messages = try_decode(_message.decode_lines, piece)
        if messages is None or len(messages) != len(texts) - (not texts[-1]):
            return False
        for text, message in zip(texts, messages):
            self._take_body(message.Body, message.MessageAttributes, offset, lines)
            offset += len(text) + 1
        return True

    def _take(self, entry: DocumentMessage | BadLine, lines: EventLines) -> None:
        if isinstance(entry, BadLine):
            lines.reject(*entry)
            return
        offset, text = entry
        try:
            document = _document(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason, where = split_refusal(error)
            lines.reject(offset, f"{where}: {reason}", text)
            return
        if document.header is not UNSET:
            lines.add(_in_one_line(text), offset, text)
        elif document.Body is not UNSET:
            self._take_body(document.Body, document.MessageAttributes, offset, lines)
        elif document.Messages is not UNSET:
            # It is not the first member, or the reader would have returned the messages one by one.
            for message in document.Messages or ():
                self._take(DocumentMessage(offset, bytes(message)), lines)
        elif document.ResponseMetadata is UNSET and text.strip(b"{} \t\r\n"):  # there may have been no messages
            lines.reject(offset, "no SQS message: it has neither Body nor Messages", text)

    def _take_body(self, text: str, attributes: _Attributes | None, offset: int, lines: EventLines) -> None:
        text, attributes, _ = unwrap(text, attributes or {})
        try:
            if attributes and claim_size(attributes) is not None:
                raise ValueError("its body is in S3; receive it with a balog consumer, which fetches that")
            body = decode_body(text, attributes)
        except ValueError as error:
            lines.reject(offset, f"$.Body: {error}", text.encode("utf-8", "replace"))
        else:
            lines.add(_in_one_line(body), offset, body)


def _in_one_line(text: bytes) -> bytes:
    if b"\n" not in text and b"\r" not in text:
        return text
    try:
        return msgspec.json.format(text, indent=-1)
    except (msgspec.DecodeError, RecursionError):  # the reader of the line finds the same error
        return text.replace(b"\n", b" ").replace(b"\r", b" ")
