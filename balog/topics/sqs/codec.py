"""Encode messages as text and attributes, and as base64 outside SQS's character set.

Messages of other publishers are decoded, too: plain bodies, and SNS notifications, whose message is in an envelope.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from balog.common.errors import EventError, MessageError
from balog.event import decode as decode_event

ID = "balog.id"
KEY = "balog.key"
REDRIVE = "balog.redrive"
"""The number of the redrive that brought a message back."""

ENCODING = "balog.encoding"
CLAIM_SIZE = "ExtendedPayloadSize"
"""Amazon's extended client library marks a body that is in S3 by this attribute, whose value is its size in bytes."""

OLD_CLAIM_SIZE = "SQSLargePayloadSize"
"""The same, as the library's first release wrote it; its current one reads both."""

EMPTY = "="
"""The base64 of nothing; SQS has no empty bodies."""

Attributes = dict[str, dict[str, str]]

# Characters outside of XML 1.0's Char, which SQS rejects, and the carriage return, which an XML parser (in SQS's older
# protocol) turns into a newline. UTF-8 itself has no surrogates.
_REFUSED = re.compile(rb"[\x00-\x08\x0b-\x1f]|\xef\xbf[\xbe\xbf]")
_REFUSED_TEXT = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")


class SqsMessage(Struct, frozen=True):
    """An encoded message: the text of its body and its attributes."""

    text: str
    attributes: Attributes

    @property
    def size(self) -> int:
        """Size in bytes by SQS's rules: the body, and each attribute's name, type and value."""
        size = len(self.text.encode())
        for name, attribute in self.attributes.items():
            size += len(name) + sum(len(part.encode()) for part in attribute.values())
        return size


class _Envelope(Struct):
    """The envelope of SNS without raw message delivery (SNS guide, message formats)."""

    Type: str
    MessageId: str
    TopicArn: str
    Message: str
    MessageAttributes: dict[str, dict[str, str]] = {}


_envelope = msgspec.json.Decoder(_Envelope)


def encode_body(body: bytes) -> tuple[str, Attributes]:
    """Return the text for a body, and the attribute with its encoding; None if the text is the body itself."""
    if body and _REFUSED.search(body) is None:
        try:
            return str(body, "utf-8"), {}
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode() or EMPTY, {ENCODING: _string("base64")}


def decode_body(text: str, attributes: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the body of a text.

    Raises:
        ValueError: the text is not what the attributes say.
    """
    encoding = read_attribute(attributes, ENCODING)
    if encoding is None:
        return text.encode("utf-8", "surrogatepass")
    if encoding != "base64":
        raise ValueError(f"its encoding {encoding!r:.40} is not base64")
    try:
        return base64.b64decode(b"" if text == EMPTY else text.encode("ascii", "replace"), validate=True)
    except binascii.Error as error:
        raise ValueError(f"it should be base64: {error}") from None


def text_attribute(what: str, value: str) -> dict[str, str]:
    """Return a message attribute for a text that must arrive unchanged.

    Raises:
        MessageError: the text is empty, or has characters that SQS does not accept.
    """
    if not _is_text(value):
        raise MessageError(
            f"the {what} {value!r:.100} can't be sent by SQS: expected printable characters, at least one"
        )
    return _string(value)


def lossy_attribute(value: str, limit: int) -> dict[str, str] | None:
    """Return a message attribute of a readable text, cut to ``limit`` bytes; None for an empty text."""
    printable = _REFUSED_TEXT.sub(lambda match: match[0].encode("unicode_escape").decode(), value)
    cut = printable.encode()[:limit].decode("utf-8", "ignore")
    return _string(cut) if cut else None


def number_attribute(value: int) -> dict[str, str]:
    """Return a message attribute of a number."""
    return {"DataType": "Number", "StringValue": str(value)}


def read_attribute(attributes: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    """Return an attribute's text; None if it is missing or binary."""
    value = attributes.get(name, {}).get("StringValue")
    return value if isinstance(value, str) else None


def claim_size(attributes: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Return the size in bytes of a body in S3; None if the body is in the message."""
    text = read_attribute(attributes, CLAIM_SIZE) or read_attribute(attributes, OLD_CLAIM_SIZE)
    return int(text) if text is not None and re.fullmatch("[0-9]{1,15}", text) else None


def unwrap(text: str, attributes: Attributes) -> tuple[str, Attributes, str | None]:
    """Return the message inside an SNS envelope; any other message as it is.

    Returns:
        the text and attributes that were published, and SNS's id of them, which stays the same when SNS delivers again.
    """
    if ID in attributes or not text.lstrip().startswith("{") or '"TopicArn"' not in text:
        return text, attributes, None
    try:
        envelope = _envelope.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return text, attributes, None
    if envelope.Type != "Notification":
        return text, attributes, None
    published = {
        name: {"DataType": attribute.get("Type", "String"), "StringValue": attribute["Value"]}
        for name, attribute in envelope.MessageAttributes.items()
        if _is_text(attribute.get("Value", ""))
    }
    return envelope.Message, published, envelope.MessageId if _is_text(envelope.MessageId) else None


def event_id(body: bytes) -> str | None:
    """Return the id of the event in a body; None for other bodies."""
    try:
        return decode_event(body).header.id
    except EventError:
        return None


def _is_text(value: str) -> bool:
    return bool(value) and _REFUSED_TEXT.search(value) is None


def _string(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}
