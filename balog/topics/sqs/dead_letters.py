"""Dead letters of a queue, in the queue of its redrive policy or in one that balog creates."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from balog.common.errors import TopicError
from balog.topics.base import DeadLetter, GivenUp, read_names, write_names
from balog.topics.sqs.account import Account
from balog.topics.sqs.packing import Packing, lossy_attribute, number_attribute, read_attribute, read_receipt
from balog.topics.sqs.queue import OutgoingMessage, Queue, SqsMessage

_REASON, _ATTEMPTS, _GROUP = "balog.reason", "balog.attempts", "balog.group"
_CONSUMERS, _TRACEBACK, _TOPIC = "balog.consumers", "balog.traceback", "balog.topic"

_REASON_BYTES = 4096
_CONSUMERS_BYTES = 4096
_TRACEBACK_BYTES = 32_768
_SHORT_REASON_BYTES = 256

_NUMBER = re.compile("[0-9]{1,9}")

_MAX_NAME = 80
_SUFFIX = "-dead"


def dead_name(name: str) -> str:
    """Return the name of the dead-letter queue for a queue without a redrive policy."""
    stem = name.removesuffix(".fifo")
    end = _SUFFIX + name[len(stem) :]
    if len(stem) + len(end) > _MAX_NAME:
        stem = stem[: _MAX_NAME - len(end) - 9] + "-" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return stem + end


@dataclass(eq=False)
class DeadQueue:
    """The dead-letter queue of a queue.

    Args:
        source: the queue of the messages.
        create: create a dead-letter queue if the source has no redrive policy.
    """

    account: Account
    source: Queue
    packing: Packing
    create: bool
    _known: Queue | None = field(default=None, init=False)

    def queue(self) -> Queue:
        """Return the queue of the redrive policy, or balog's own, which may not exist yet.

        AWS has both queues in one account and region.
        """
        arn = str(self.source.redrive_policy().get("deadLetterTargetArn", ""))
        name = arn.rpartition(":")[2] or dead_name(self.source.name)
        if self._known is None or self._known.name != name:
            self._known = Queue(self.account, name, f"{self.source.label}, dead letters in {name}")
        return self._known

    def send(self, group: str, dead: Sequence[tuple[SqsMessage, GivenUp, str]]) -> None:
        """Send messages of a group with their failures, cut to the queue's limit.

        Args:
            dead: messages with their failure and a unique id.

        Raises:
            TopicError: a message can't be sent.
        """
        queue = self.queue()
        if self.create and not self.source.redrive_policy():
            queue.make(for_dead_letters=True)
        limit = queue.max_bytes()
        # Each has a group of its own: in a FIFO queue, no dead letter blocks another.
        queue.send(
            [OutgoingMessage(self._inscribe(entry, group, why, limit), unique, unique) for entry, why, unique in dead]
        )

    def count(self) -> int:
        """Return the approximate number of dead letters, with those of queues that share this dead-letter queue."""
        queue = self.queue()
        return sum(queue.counts()) if queue.exists() else 0

    def read(self, raw: dict[str, Any]) -> DeadLetter | None:
        """Read a dead letter; None for one of another queue."""
        attributes = raw.get("MessageAttributes") or {}
        arn = str(raw.get("Attributes", {}).get("DeadLetterQueueSourceArn", ""))
        source = read_attribute(attributes, _TOPIC) or arn.rpartition(":")[2]
        if source and source != self.source.name:
            return None
        received = self.packing.unpack(raw)
        attempts = read_attribute(attributes, _ATTEMPTS) or str(self.source.redrive_policy().get("maxReceiveCount", ""))
        problem = read_receipt(received).problem
        reason = read_attribute(attributes, _REASON) or "SQS moved it here: it was delivered too often without an ack"
        return DeadLetter(
            id=received.id,
            body=received.body,
            group=read_attribute(attributes, _GROUP) or "",
            reason=reason if not problem or problem in reason else f"{reason}; {problem}",
            attempts=int(attempts) if _NUMBER.fullmatch(attempts) else received.attempts,
            died=received.published,
            consumers=read_names(read_attribute(attributes, _CONSUMERS) or ""),
            traceback=read_attribute(attributes, _TRACEBACK) or "",
            token=str(raw["MessageId"]),
        )

    def _inscribe(self, message: SqsMessage, group: str, why: GivenUp, limit: int) -> SqsMessage:
        fields = {
            _TOPIC: lossy_attribute(self.source.name, _MAX_NAME),
            _GROUP: lossy_attribute(group, _SHORT_REASON_BYTES),
            _ATTEMPTS: number_attribute(why.received.attempts),
            _REASON: lossy_attribute(why.reason, _REASON_BYTES),
            _CONSUMERS: lossy_attribute(write_names(why.consumers, _CONSUMERS_BYTES), _CONSUMERS_BYTES),
            _TRACEBACK: lossy_attribute(why.traceback, _TRACEBACK_BYTES),
        }
        whole = self.packing.fit(_with(message, fields), limit)
        if whole.size <= limit:
            return whole
        bare = SqsMessage(whole.text, {name: value for name, value in whole.attributes.items() if name not in fields})
        reason = lossy_attribute(why.reason, _SHORT_REASON_BYTES)
        for attributes in ({**fields, _REASON: reason, _CONSUMERS: None, _TRACEBACK: None}, {}):
            tried = _with(bare, attributes)
            if tried.size <= limit:
                return tried
        compacted = self.packing.compact(bare, limit)
        if compacted.size <= limit:
            return compacted
        raise TopicError(
            f"{self.source.label}: a message of {bare.size} bytes does not fit its dead-letter queue, which takes "
            f"{limit}; raise that queue's MaximumMessageSize or set claim_check",
            retryable=False,
        )


def _with(message: SqsMessage, attributes: dict[str, dict[str, str] | None]) -> SqsMessage:
    present = {name: value for name, value in attributes.items() if value is not None}
    return SqsMessage(message.text, {**message.attributes, **present})
