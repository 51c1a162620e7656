"""One SQS queue: its URL and attributes, and its batch calls with their rejected entries."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Generator, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from balog.common.backoff import Backoff
from balog.common.errors import MessageError, TopicError
from balog.event.batches import split
from balog.topics.sqs.account import Account
from balog.topics.sqs.errors import AwsError, short_code

MAX_LEASE = 12 * 3600
"""Seconds after the delivery for which SQS hides a message at most."""

LONGEST_POLL = 20
"""Seconds; SQS's limit."""

ENTRIES = 10
"""Messages in one call; SQS's limit."""

_REQUEST_BYTES = 256 * 1024
"""Bytes that every server accepts in one call; a larger message is sent alone."""

_ATTRIBUTES_FOR = 300.0
"""Seconds for which attributes of a queue are cached."""

_DEAD_RETENTION = 14 * 86400
"""Seconds; the longest retention of SQS."""

_ENTRY_TRIES = 6
_BACKOFF = Backoff(0.2)

_OF_MESSAGES = frozenset({"InvalidAttributeValue", "InvalidMessageContents", "InvalidParameterValue"})
_STALE = frozenset({"InvalidParameterValue", "MessageNotInflight", "ReceiptHandleIsInvalid"})
"""Codes for a receipt whose lease has expired, or can't be extended any more."""


Attributes = dict[str, dict[str, str]]


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


class OutgoingMessage(Struct, frozen=True):
    """A message to send; ``group`` and ``unique`` (the deduplication id) are for FIFO queues."""

    encoded: SqsMessage
    group: str
    unique: str


class Queue:
    """A queue by name, which may not exist yet. Thread-safe, with a cache of its attributes.

    Args:
        label: its name in errors.
    """

    def __init__(self, account: Account, name: str, label: str) -> None:
        self.name = name
        self.label = label
        self.is_fifo = name.endswith(".fifo")
        self._account = account
        self._url: str | None = None
        self._settings: tuple[float, dict[str, str]] = (-math.inf, {})

    def exists(self) -> bool:
        """Return whether the queue exists."""
        try:
            self._address()
        except AwsError as error:
            if error.code == "QueueDoesNotExist":
                return False
            raise
        return True

    def make(self, *, for_dead_letters: bool = False) -> None:
        """Create the queue if it is missing; an existing queue is not changed."""
        if self.exists():
            return
        attributes = {"MessageRetentionPeriod": str(_DEAD_RETENTION)} if for_dead_letters else {}
        if self.is_fifo:
            attributes["FifoQueue"] = "true"
        try:
            self._account.call("sqs", "create_queue", self.label, QueueName=self.name, Attributes=attributes)
        except AwsError as error:
            if error.code != "QueueNameExists":  # another process created it, with other attributes
                raise

    def settings(self) -> dict[str, str]:
        """Return attributes that rarely change, up to 5 minutes old: MaximumMessageSize, RedrivePolicy, QueueArn …"""
        at, known = self._settings
        if time.monotonic() - at > _ATTRIBUTES_FOR:
            known = self._ask_attributes(["All"])
            self._settings = (time.monotonic(), known)
        return known

    def max_bytes(self) -> int:
        """Return the largest size of a message in bytes, including attributes."""
        return int(self.settings().get("MaximumMessageSize", _REQUEST_BYTES))

    def redrive_policy(self) -> dict[str, Any]:
        """Return the queue's redrive policy; empty without one."""
        try:
            policy = json.loads(self.settings().get("RedrivePolicy") or "{}")
        except ValueError:
            return {}
        return policy if isinstance(policy, dict) else {}

    def counts(self) -> tuple[int, int, int]:
        """Return SQS's approximate counts of messages that are ready, in flight and delayed, up to a minute old."""
        names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        attributes = self._ask_attributes(names)
        ready, in_flight, delayed = (int(attributes.get(name, 0)) for name in names)
        return ready, in_flight, delayed

    def receive(self, limit: int, wait: int, lease: float) -> list[dict[str, Any]]:
        """Receive up to ten messages, as boto3 returns them.

        Args:
            wait: whole seconds, up to 20.
            lease: seconds.
        """
        answer = self._call(
            "receive_message",
            MaxNumberOfMessages=min(limit, ENTRIES),
            WaitTimeSeconds=min(wait, LONGEST_POLL),
            VisibilityTimeout=max(seconds(lease), 1),
            AttributeNames=["ApproximateReceiveCount", "SentTimestamp", "MessageGroupId", "DeadLetterQueueSourceArn"],
            MessageAttributeNames=["All"],
        )
        messages: list[dict[str, Any]] = answer.get("Messages") or []
        return messages

    def send(self, outgoing: Sequence[OutgoingMessage]) -> None:
        """Send messages in order, in batches of SQS's limits.

        Raises:
            AwsError: some were rejected; those before them are in the queue.
        """
        for batch in split(outgoing, lambda message: message.encoded.size, _REQUEST_BYTES, ENTRIES):
            self._send(batch)

    def delete(self, handles: Sequence[str]) -> list[bool]:
        """Delete received messages; return for each whether its receipt was valid, as far as the server reports it."""
        return self._settle("delete_message_batch", [{"ReceiptHandle": handle} for handle in handles])

    def hide(self, handles: Sequence[str], lease: float) -> list[bool]:
        """Hide received messages for ``lease`` seconds from now, 0 to show them; returns as ``delete`` does."""
        timeout = seconds(lease)
        return self._settle(
            "change_message_visibility_batch",
            [{"ReceiptHandle": handle, "VisibilityTimeout": timeout} for handle in handles],
        )

    def browse(self, lease: float, gone: Collection[str]) -> Generator[list[dict[str, Any]], None, None]:
        """Receive all available messages once, and release those whose handles are not in ``gone`` at the end."""
        seen: set[str] = set()
        held: list[str] = []
        try:
            # With a wait, SQS asks all of its servers; without one, it may miss messages.
            while messages := self.receive(ENTRIES, 1, lease):
                held += [raw["ReceiptHandle"] for raw in messages]
                fresh = [raw for raw in messages if raw["MessageId"] not in seen]
                if not fresh:  # the first ones are redelivered: all were seen
                    break
                seen.update(raw["MessageId"] for raw in fresh)
                yield fresh
        finally:
            with suppress(TopicError):  # their leases expire
                self.hide([handle for handle in held if handle not in gone], 0.0)

    def _send(self, batch: list[OutgoingMessage]) -> None:
        entries: list[dict[str, Any]] = []
        for each in batch:
            entry: dict[str, Any] = {"MessageBody": each.encoded.text, "MessageAttributes": each.encoded.attributes}
            if self.is_fifo:
                entry.update(MessageGroupId=each.group, MessageDeduplicationId=each.unique)
            entries.append(entry)
        refused = self._batch("send_message_batch", entries)
        for code, text in refused.values():
            reason = f"{self.label}: {len(refused)} of {len(entries)} messages not accepted: {code}: {text}"
            if code in _OF_MESSAGES:
                raise MessageError(reason)
            raise AwsError(reason, code, retryable=False)

    def _settle(self, operation: str, entries: list[dict[str, Any]]) -> list[bool]:
        changed: list[bool] = []
        for start in range(0, len(entries), ENTRIES):
            part = entries[start : start + ENTRIES]
            try:
                refused = self._batch(operation, part)
            except AwsError as error:  # some servers reject the whole call for one invalid receipt
                if error.code not in _STALE:
                    raise
                if len(part) > 1:
                    for entry in part:
                        changed += self._settle(operation, [entry])
                    continue
                refused = {0: (error.code, "")}
            for code, text in refused.values():
                if code not in _STALE:
                    raise AwsError(f"{self.label}: {code}: {text}", code, retryable=False)
            changed += [number not in refused for number in range(len(part))]
        return changed

    def _batch(self, operation: str, entries: list[dict[str, Any]]) -> dict[int, tuple[str, str]]:
        """Make one call, retry the entries that SQS failed on, and return the rejected ones with their reasons."""
        refused: dict[int, tuple[str, str]] = {}
        left = dict(enumerate(entries))
        for trial in range(_ENTRY_TRIES):
            answer = self._call(operation, Entries=[{"Id": str(number), **entry} for number, entry in left.items()])
            failed: dict[int, dict[str, Any]] = {}
            for entry in answer.get("Failed") or ():
                number, code = int(entry["Id"]), short_code(str(entry.get("Code", "")))
                text = str(entry.get("Message", ""))[:300]
                if not entry.get("SenderFault", True) or "Throttl" in code:
                    failed[number] = left[number]
                    last = f"{code}: {text}"
                else:
                    refused[number] = (code, text)
            if not failed:
                return refused
            left = failed
            if trial < _ENTRY_TRIES - 1:
                time.sleep(_BACKOFF.delay(trial + 1))
        raise AwsError(f"{self.label}: {len(left)} of {len(entries)} messages not accepted: {last}; try again")

    def _ask_attributes(self, names: list[str]) -> dict[str, str]:
        attributes: dict[str, str] = self._call("get_queue_attributes", AttributeNames=names).get("Attributes", {})
        return attributes

    def _address(self) -> str:
        if self._url is None:
            answer = self._account.call("sqs", "get_queue_url", self.label, QueueName=self.name)
            self._url = str(answer["QueueUrl"])
        return self._url

    def _call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        try:
            return self._account.call("sqs", operation, self.label, QueueUrl=self._address(), **parameters)
        except AwsError as error:
            if error.code == "QueueDoesNotExist":  # deleted since
                self._url, self._settings = None, (-math.inf, {})
            raise


def seconds(lease: float) -> int:
    """Return seconds rounded up to whole ones, within SQS's limits."""
    return min(max(math.ceil(lease), 0), MAX_LEASE)
