"""The claim check pattern: S3 stores a body that is too large for the queue, and the message has a pointer to it.

The form is that of Amazon's extended client libraries (Java, Python …), so that their users read ours and we theirs.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct

from balog.common.errors import ConfigError, TopicError
from balog.event import MAX_EVENT_BYTES
from balog.topics.sqs.account import Account
from balog.topics.sqs.errors import BAD_CREDENTIALS, AwsError

MAX_BODY_BYTES = 2 * MAX_EVENT_BYTES
"""The largest body: larger than an event, so that an event that is too large becomes a dead letter with its bytes."""

_MAX_KEY_BYTES = 1024
"""S3's limit."""

_OF_THE_BUCKET = BAD_CREDENTIALS | {"AllAccessDisabled", "ExpiredToken", "InvalidBucketName", "NoSuchBucket"}
"""Error codes that concern the bucket; others may concern one object."""

_POINTER = "software.amazon.payloadoffloading.PayloadS3Pointer"
_OLD_POINTER = "com.amazon.sqs.javamessaging.MessageS3Pointer"

log = logging.getLogger("balog.topics")


class Pointer(Struct, frozen=True):
    """The location of a body."""

    s3BucketName: str
    s3Key: str


class Lost(Exception):
    """A body can't be read. ``certain`` means that a retry does not help."""

    def __init__(self, reason: str, certain: bool = True) -> None:
        super().__init__(reason)
        self.certain = certain


_pointer = msgspec.json.Decoder(tuple[str, Pointer])


def write_pointer(pointer: Pointer) -> str:
    """Return the text to send instead of a body."""
    return msgspec.json.encode((_POINTER, pointer)).decode()


def read_pointer(text: str) -> Pointer | None:
    """Parse a pointer; None for any other text."""
    try:
        name, pointer = _pointer.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return pointer if name in (_POINTER, _OLD_POINTER) else None


class ClaimCheck:
    """Bodies in one bucket. No other bucket is ever read, even if a message names one.

    Args:
        url: ``s3://BUCKET/PREFIX``; the prefix is optional.

    Raises:
        ConfigError: not such a URL.
    """

    def __init__(self, account: Account, url: str) -> None:
        scheme, _, location = url.partition("://")
        bucket, _, prefix = location.partition("/")
        if scheme != "s3" or not bucket or "@" in bucket or "?" in url:
            raise ConfigError("claim_check is not s3://BUCKET/PREFIX")
        self.url = url
        self.bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._account = account

    def keep(self, queue: str, text: str, where: str) -> Pointer:
        """Store a text in the bucket, under a new key.

        Raises:
            TopicError: S3 rejected it or is out of reach.
        """
        pointer = Pointer(self.bucket, f"{self._prefix}{queue}/{uuid4()}")
        self._call("put_object", where, Key=pointer.s3Key, Body=text.encode())
        return pointer

    def fetch(self, pointer: Pointer, where: str) -> str:
        """Return the text at a pointer.

        Raises:
            Lost: it is in another bucket, too large, not text, or missing; or S3 denies access, which it also does
                for a missing object if the caller may not list the bucket.
            TopicError: S3 is out of reach, has no such bucket, or rejects the credentials.
        """
        if pointer.s3BucketName != self.bucket:
            raise Lost(f"its body is in the bucket {pointer.s3BucketName!r:.80}, and only {self.bucket} is read")
        if not _is_key(pointer.s3Key):
            raise Lost(f"its body is said to be at {pointer.s3Key!r:.80}, which is no key of an object")
        url = f"s3://{self.bucket}/{pointer.s3Key:.200}"
        try:
            answer = self._call("get_object", where, Key=pointer.s3Key)
        except AwsError as error:
            if error.retryable or error.code in _OF_THE_BUCKET or not 400 <= error.status < 500:
                raise
            if error.status == 404:
                raise Lost(f"its body is no longer at {url}, or never was") from None
            reply = f"S3 says {error.code or error.status}"
            raise Lost(f"its body at {url} may not be read, or is not there: {reply}", certain=False) from None
        if answer["ContentLength"] > MAX_BODY_BYTES:
            answer["Body"].close()
            raise Lost(f"its body at {url} has {answer['ContentLength']} bytes; at most {MAX_BODY_BYTES} are read")
        try:
            return str(self._account.read(answer["Body"], "s3", where), "utf-8")
        except UnicodeDecodeError:
            raise Lost(f"its body at {url} is not UTF-8 text") from None

    def drop(self, key: str, where: str) -> None:
        """Delete a body. A failure is only logged, because the message is already deleted."""
        try:
            self._call("delete_object", where, Key=key)
        except TopicError as error:
            log.warning("s3://%s/%s stays: %s", self.bucket, key, error)

    def _call(self, operation: str, where: str, **parameters: Any) -> dict[str, Any]:
        return self._account.call("s3", operation, f"{where}, claim check", Bucket=self.bucket, **parameters)


def _is_key(key: str) -> bool:
    """Return whether a key is valid in S3. A request for a key with dots as a folder could leave the bucket."""
    return 0 < len(key.encode()) <= _MAX_KEY_BYTES and not {".", ".."} & set(key.split("/"))
