"""Converts the output of ``aws sqs receive-message``: JSON documents with messages, whose bodies are events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from balog.analytics.reading.blocks import BadLine, Block, Damage
from balog.analytics.reading.forms.base import EventLines, FormConverter, Origin, pieces
from balog.analytics.reading.forms.documents import EARLY, DocumentMessage, DocumentReader
from balog.errors import split_refusal
from balog.topics.sqs.codec import claim_size, decode_body, unwrap

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
                for found in self._reader.feed(piece, offset):
                    self._take(found, lines)
                    if lines.is_full:
                        yield lines
                        lines = EventLines()
            if lines.is_full:
                yield lines
                lines = EventLines()
        if lines:
            yield lines

    def reject(self, bad: BadLine) -> Iterator[EventLines | BadLine]:
        """End the document that has a line of more than 16 MiB, and continue at the next document."""
        yield from self.close(None)
        yield bad

    def close(self, damage: Damage | None) -> Iterator[EventLines | BadLine]:
        """Convert the rest."""
        lines = EventLines()
        if damage is not None and damage.tail:
            for found in self._reader.feed(damage.tail, damage.offset):
                self._take(found, lines)
        for found in self._reader.close():
            self._take(found, lines)
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
        try:
            messages = _message.decode_lines(piece)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if len(messages) != len(texts) - (not texts[-1]):
            return False
        for text, message in zip(texts, messages):
            self._take_body(message.Body, message.MessageAttributes, offset, lines)
            offset += len(text) + 1
        return True

    def _take(self, found: DocumentMessage | BadLine, lines: EventLines) -> None:
        if isinstance(found, BadLine):
            lines.reject(*found)
            return
        offset, text = found
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
        elif (
            document.Messages is not UNSET
        ):  # it is not the first member, or the reader would have returned the messages one by one
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
