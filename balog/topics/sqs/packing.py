"""Convert messages to SQS messages and back: text and attributes, base64 outside SQS's character set, bodies in S3.

Messages of other publishers are decoded, too: plain bodies, and SNS notifications, whose message is in an envelope.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from balog.common.errors import EventError, MessageError, TopicError
from balog.event import decode as decode_event
from balog.topics.base import Generation, Received
from balog.topics.sqs.claim_check import MAX_BODY_BYTES, ClaimCheck, Lost, Pointer, read_pointer, write_pointer
from balog.topics.sqs.queue import Attributes, SqsMessage

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

# Characters outside of XML 1.0's Char, which SQS rejects, and the carriage return, which an XML parser (in SQS's older
# protocol) turns into a newline. UTF-8 itself has no surrogates.
_REFUSED = re.compile(rb"[\x00-\x08\x0b-\x1f]|\xef\xbf[\xbe\xbf]")
_REFUSED_TEXT = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")


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


_NO_KEY = "balog"
"""The message group of messages without a key: their order is kept, too."""

_REDRIVE = re.compile(r"\d{1,18}", re.ASCII)
_TOKEN = re.compile(r"[!-~]{1,128}")  # valid group and deduplication ids of SQS


class Receipt(Struct, frozen=True, omit_defaults=True):
    """The data for settling a message: SQS's handle, and the original text and attributes if they differ from the body.

    ``text`` is the body if that is a pointer, ``size`` and ``encoding`` are from the attributes, ``key`` is that of the
    object in S3, ``problem`` is why the body could not be read.
    """

    handle: str
    text: str = ""
    size: int = 0
    encoding: str = ""
    key: str = ""
    problem: str = ""


_receipt = msgspec.json.Decoder(Receipt)


def read_receipt(received: Received) -> Receipt:
    """Read a receipt of :meth:`Packing.unpack`.

    Raises:
        TopicError: not a receipt of a queue.
    """
    if not received.receipt.startswith("{"):
        return Receipt(received.receipt)
    try:
        return _receipt.decode(received.receipt)
    except msgspec.DecodeError:
        reason = f"message {received.id}: {received.receipt!r:.100} is not a receipt of a queue"
        raise TopicError(reason, retryable=False) from None


def token(text: str) -> str:
    """Return a text as a group or deduplication id, hashed if SQS does not accept it."""
    return text if _TOKEN.fullmatch(text) else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def message_group(key: str | None) -> str:
    """Return the message group of a key in a FIFO queue."""
    return token(key) if key else _NO_KEY


@dataclass(eq=False)
class Packing:
    """Converts the messages of one queue.

    Args:
        queue: its name, for the names of objects.
        label: its name in errors.
        claims: stores bodies that are too large for the queue; None rejects them.
    """

    queue: str
    label: str
    claims: ClaimCheck | None

    def pack(self, id: str, body: bytes, key: str | None) -> SqsMessage:
        """Return the SQS message for a message of any size.

        Raises:
            TopicError: SQS can't transport the id or key.
        """
        text, attributes = encode_body(body)
        attributes[ID] = text_attribute("message id", id)
        if key:
            attributes[KEY] = text_attribute("message key", key)
        return SqsMessage(text, attributes)

    def check(self, message: SqsMessage, limit: int) -> None:
        """Check that a message can be sent to a queue with a limit of ``limit`` bytes.

        Raises:
            MessageError: the message is too large.
        """
        size = message.size
        if size <= limit:
            return
        who = f"{self.label}: message {read_attribute(message.attributes, ID)}"
        if self.claims is None:
            raise MessageError(
                f"{who} has {size} bytes and the queue takes {limit}; open the topics with claim_check=s3://BUCKET/PREFIX"
            )
        if size > MAX_BODY_BYTES:
            raise MessageError(f"{who} has {size} bytes; at most {MAX_BODY_BYTES} can be sent")

    def fit(self, message: SqsMessage, limit: int) -> SqsMessage:
        """Return the message, or one with a pointer to its body in S3.

        Raises:
            TopicError: S3 rejected it or is out of reach.
        """
        if self.claims is None or message.size <= limit or claim_size(message.attributes) is not None:
            return message
        pointer = self.claims.keep(self.queue, message.text, self.label)
        size = number_attribute(len(message.text.encode()))
        return SqsMessage(write_pointer(pointer), {**message.attributes, CLAIM_SIZE: size})

    def compact(self, message: SqsMessage, limit: int) -> SqsMessage:
        """Return a message without its id and key if it is too large with them; messages of other senders have none."""
        if message.size <= limit:
            return message
        own = (ID, KEY)
        return SqsMessage(message.text, {name: value for name, value in message.attributes.items() if name not in own})

    def unpack(self, raw: Mapping[str, Any], max_attempts: int = 0) -> Received:
        """Convert a received message of SQS.

        Args:
            max_attempts: number of deliveries to wait for a body that S3 does not return. After them, or if the body is
                lost for certain, the message's own text is its body, and the receipt has the reason.

        Raises:
            Lost: S3 may still return the body.
            TopicError: S3 is out of reach.
        """
        system = raw.get("Attributes", {})
        attempts = int(system.get("ApproximateReceiveCount", 1))
        attributes: Attributes
        text, attributes, sns_id = unwrap(raw["Body"], raw.get("MessageAttributes") or {})
        size = claim_size(attributes)
        pointer = None if size is None else read_pointer(text)
        body_text, problem = text, ""
        if pointer is not None:
            try:
                body_text = self._fetch(pointer)
            except Lost as lost:
                if not lost.certain and attempts < max_attempts:
                    raise
                problem = str(lost)
        body = text.encode("utf-8", "surrogatepass")
        if not problem:
            try:
                body = decode_body(body_text, attributes)
            except ValueError as error:
                problem = str(error)
        receipt = raw["ReceiptHandle"]
        if pointer is not None or problem:
            held = Receipt(
                receipt,
                text=text if pointer is not None else "",
                size=size or 0,
                encoding=read_attribute(attributes, ENCODING) or "",
                key=pointer.s3Key if pointer is not None and not problem else "",
                problem=problem,
            )
            receipt = msgspec.json.encode(held).decode()
        id = read_attribute(attributes, ID)
        key = read_attribute(attributes, KEY)
        if key is None and id is None:  # of another publisher: the group is its only key
            key = system.get("MessageGroupId")
        redrive = read_attribute(attributes, REDRIVE) or ""
        return Received(
            id=id or event_id(body) or sns_id or str(raw["MessageId"]),
            body=body,
            receipt=receipt,
            attempts=attempts,
            published=int(system.get("SentTimestamp", 0)) / 1000,
            key=key,
            generation=Generation(0, int(redrive) if _REDRIVE.fullmatch(redrive) else 0),
        )

    def repack(self, received: Received, receipt: Receipt) -> SqsMessage:
        """Return the SQS message to send a received one to another queue; its body's object in S3 stays."""
        message = self.pack(received.id, received.body, received.key)
        if not (receipt.text or receipt.problem):
            return message
        attributes = {name: value for name, value in message.attributes.items() if name != ENCODING}
        if receipt.encoding:
            attributes[ENCODING] = text_attribute("encoding", receipt.encoding)
        if receipt.size:
            attributes[CLAIM_SIZE] = number_attribute(receipt.size)
        return SqsMessage(receipt.text or received.body.decode("utf-8", "replace"), attributes)

    def drop(self, receipt: Receipt) -> None:
        """Delete the S3 object of a message that was deleted for good, if it has one."""
        if receipt.key and self.claims is not None:
            self.claims.drop(receipt.key, self.label)

    def _fetch(self, pointer: Pointer) -> str:
        if self.claims is None:
            raise Lost(f"its body is in the bucket {pointer.s3BucketName!r:.80}, and no claim_check is set")
        return self.claims.fetch(pointer, self.label)
