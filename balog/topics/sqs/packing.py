"""Convert messages to SQS messages and back, with large bodies in S3."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from balog.common.errors import MessageError, TopicError
from balog.topics.base import Generation, Received
from balog.topics.sqs import codec
from balog.topics.sqs.claim_check import MAX_BODY_BYTES, ClaimCheck, Lost, Pointer, read_pointer, write_pointer
from balog.topics.sqs.codec import Attributes, SqsMessage, read_attribute

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
        text, attributes = codec.encode_body(body)
        attributes[codec.ID] = codec.text_attribute("message id", id)
        if key:
            attributes[codec.KEY] = codec.text_attribute("message key", key)
        return SqsMessage(text, attributes)

    def check(self, message: SqsMessage, limit: int) -> None:
        """Check that a message can be sent to a queue with a limit of ``limit`` bytes.

        Raises:
            MessageError: the message is too large.
        """
        size = message.size
        if size <= limit:
            return
        who = f"{self.label}: message {read_attribute(message.attributes, codec.ID)}"
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
        if self.claims is None or message.size <= limit or codec.claim_size(message.attributes) is not None:
            return message
        pointer = self.claims.keep(self.queue, message.text, self.label)
        size = codec.number_attribute(len(message.text.encode()))
        return SqsMessage(write_pointer(pointer), {**message.attributes, codec.CLAIM_SIZE: size})

    def compact(self, message: SqsMessage, limit: int) -> SqsMessage:
        """Return a message without its id and key if it is too large with them; messages of other senders have none."""
        if message.size <= limit:
            return message
        own = (codec.ID, codec.KEY)
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
        text, attributes, sns_id = codec.unwrap(raw["Body"], raw.get("MessageAttributes") or {})
        size = codec.claim_size(attributes)
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
                body = codec.decode_body(body_text, attributes)
            except ValueError as error:
                problem = str(error)
        receipt = raw["ReceiptHandle"]
        if pointer is not None or problem:
            held = Receipt(
                receipt,
                text=text if pointer is not None else "",
                size=size or 0,
                encoding=read_attribute(attributes, codec.ENCODING) or "",
                key=pointer.s3Key if pointer is not None and not problem else "",
                problem=problem,
            )
            receipt = msgspec.json.encode(held).decode()
        id = read_attribute(attributes, codec.ID)
        key = read_attribute(attributes, codec.KEY)
        if key is None and id is None:  # of another publisher: the group is its only key
            key = system.get("MessageGroupId")
        redrive = read_attribute(attributes, codec.REDRIVE) or ""
        return Received(
            id=id or codec.event_id(body) or sns_id or str(raw["MessageId"]),
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
        attributes = {name: value for name, value in message.attributes.items() if name != codec.ENCODING}
        if receipt.encoding:
            attributes[codec.ENCODING] = codec.text_attribute("encoding", receipt.encoding)
        if receipt.size:
            attributes[codec.CLAIM_SIZE] = codec.number_attribute(receipt.size)
        return SqsMessage(receipt.text or received.body.decode("utf-8", "replace"), attributes)

    def drop(self, receipt: Receipt) -> None:
        """Delete the S3 object of a message that was deleted for good, if it has one."""
        if receipt.key and self.claims is not None:
            self.claims.drop(receipt.key, self.label)

    def _fetch(self, pointer: Pointer) -> str:
        if self.claims is None:
            raise Lost(f"its body is in the bucket {pointer.s3BucketName!r:.80}, and no claim_check is set")
        return self.claims.fetch(pointer, self.label)
