"""An SQS queue as a topic."""

from __future__ import annotations

import hashlib
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any, ClassVar, Literal

from msgspec.structs import replace

from balog.common.errors import TopicError
from balog.topics.base import (
    DEFAULT_LEASE,
    DeadLetter,
    GivenUp,
    GroupState,
    Message,
    Received,
    Topic,
    TopicState,
    check_name,
)
from balog.topics.sqs.claim_check import Lost
from balog.topics.sqs.dead_letters import DeadQueue
from balog.topics.sqs.packing import REDRIVE, Packing, Receipt, message_group, number_attribute, read_receipt, token
from balog.topics.sqs.queue import ENTRIES, OutgoingMessage, Queue, SqsMessage

_LOOK = 15.0
"""Seconds for which ``peek`` hides a message, unless it is released earlier."""

_REDRIVE_LEASE = 120.0
_REDRIVE_RATE = 500.0
"""Limit of redriven dead letters a second, to spare the handlers that failed on them."""

_UNREAD_TRIES = 3
"""Deliveries after which an unreadable body in S3 counts as lost; until then, its policy may be fixed."""

log = logging.getLogger("balog.topics")


class SqsTopic(Topic):
    """A standard queue: at-least-once delivery without an order, shared by all groups.

    Every delivery counts as an attempt, even after ``release(attempted=False)``. Leases and delays are whole seconds,
    rounded up, and end 12 hours after the delivery. ``publish`` stores ten messages at a time; if it raises, the first
    ones may be stored. SQS's counts are approximate and up to a minute old. The queue has no positions to seek. Its
    bytes and its oldest time are unknown, and reported as None.

    Args:
        queue: the queue of the messages.
        dead: the queue of its dead letters.
        packing: converts messages for the queue and back.
        create: whether the first published message creates the queue.
    """

    keeps_groups: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = False
    one_receiver: ClassVar[bool] = False  # a FIFO queue holds a key back while earlier messages of it are in flight
    keeps_ids: ClassVar[bool] = False
    counts_attempts: ClassVar[bool] = False
    poll_timeout: float = 5.0

    def __init__(
        self, queue: Queue, dead: DeadQueue, packing: Packing, create: bool, poll_timeout: float = poll_timeout
    ) -> None:
        self.name = queue.name
        self.poll_timeout = poll_timeout
        self._queue = queue
        self._dead = dead
        self._packing = packing
        self._create = create

    def exists(self) -> bool:
        """Return whether the queue exists."""
        return self._queue.exists()

    def close(self) -> None:
        """Do nothing: the connections belong to the backend."""

    # -- publishing -----------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> int:
        """Send messages in order, and return their number; SQS does not report which ones are new."""
        packed = [(message, self._packing.pack(message.id, message.body, message.key)) for message in messages]
        if not packed:
            return 0
        if self._create:
            self._queue.make()
        limit = self._queue.max_bytes()
        for _, encoded in packed:  # all are checked before the first is sent
            self._packing.check(encoded, limit)
        self._queue.send(
            [
                OutgoingMessage(self._packing.fit(encoded, limit), message_group(message.key), token(message.id))
                for message, encoded in packed
            ]
        )
        return len(packed)

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Receive up to ten messages, the limit of SQS; it waits for whole seconds, at most 20."""
        check_name("group", group)
        return self._unpack(self._queue.receive(limit, round(wait), lease))

    def _unpack(self, messages: Sequence[dict[str, Any]]) -> list[Received]:
        """Convert messages; one with a temporarily unreadable body stays hidden until its lease expires."""
        received: list[Received] = []
        failure: TopicError | None = None
        for raw in messages:
            try:
                received.append(self._packing.unpack(raw, _UNREAD_TRIES))
            except Lost as lost:
                log.warning("%s: message %s is left for later: %s", self._queue.label, raw["MessageId"], lost)
            except TopicError as error:
                failure = error
        if failure is not None:
            if not received:
                raise failure
            log.warning("%s; the message is left for later", failure)
        return received

    # -- settling -------------------------------------------------------------------------------------------------

    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Delete messages, then the objects that had their bodies."""
        receipts = [read_receipt(message) for message in received]
        deleted = self._queue.delete([receipt.handle for receipt in receipts])
        for receipt in itertools.compress(receipts, deleted):
            self._packing.drop(receipt)
        return sum(deleted)

    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Release messages. SQS counts the delivery as an attempt even if no handler ran."""
        return sum(self._hide(received, delay))

    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Extend leases to ``lease`` seconds from now, up to 12 hours after the delivery."""
        return sum(self._hide(received, max(lease, 1.0)))

    def dead_letter_each(self, group: str, given_up: Sequence[GivenUp]) -> int:
        """Send messages to the dead-letter queue, ten at a time, then delete them."""
        changed = 0
        for start in range(0, len(given_up), ENTRIES):  # a long call must not outlast the lease
            part = given_up[start : start + ENTRIES]
            held = self._hide([failure.received for failure in part], DEFAULT_LEASE)  # drops stale receipts
            dead: list[tuple[SqsMessage, GivenUp, str]] = []
            handles: list[str] = []
            for failure in itertools.compress(part, held):
                receipt = read_receipt(failure.received)
                why = f"{receipt.problem}; {failure.reason}" if receipt.problem else failure.reason
                # An id for each dead letter: the message may have been dead-lettered before, and a FIFO queue drops an
                # id that it received in the last five minutes.
                unique = hashlib.sha256(receipt.handle.encode()).hexdigest()
                dead.append((self._packing.repack(failure.received, receipt), replace(failure, reason=why), unique))
                handles.append(receipt.handle)
            if dead:
                self._dead.send(group, dead)
                changed += sum(self._queue.delete(handles))
        return changed

    def _hide(self, received: Sequence[Received], lease: float) -> list[bool]:
        return self._queue.hide([read_receipt(message).handle for message in received], lease)

    # -- dead letters ---------------------------------------------------------------------------------------------

    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Return the dead letters of all groups. They are hidden from others meanwhile."""
        check_name("group", group)
        queue = self._dead.queue()
        if not queue.exists():
            return []
        with closing(queue.browse(_LOOK, set())) as pages:
            read = map(self._dead.read, itertools.chain.from_iterable(pages))
            dead_letters = [*itertools.islice(filter(None, read), max(limit, 0))]
        return sorted(dead_letters, key=lambda dead_letter: dead_letter.died)

    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Redrive dead letters, ten at a time and at most 500 a second, each as a new message with its old id."""
        check_name("group", group)
        queue = self._dead.queue()
        if not queue.exists():
            return 0
        back = looked = 0
        gone: set[str] = set()
        with closing(queue.browse(_REDRIVE_LEASE, gone)) as pages:
            for page in pages:
                begin = time.monotonic()
                outgoing: list[OutgoingMessage] = []
                handles: list[str] = []
                spent: list[Receipt] = []
                read = ((raw, self._dead.read(raw)) for raw in page)
                own = ((raw, dead_letter) for raw, dead_letter in read if dead_letter is not None)
                for raw, dead_letter in itertools.islice(own, None if limit is None else max(limit - looked, 0)):
                    looked += 1
                    body = decide(dead_letter)
                    if body is not None:
                        sent, receipt = self._revive(raw, body)
                        outgoing.append(sent)
                        handles.append(raw["ReceiptHandle"])
                        if receipt is not None:
                            spent.append(receipt)
                self._queue.send(outgoing)
                queue.delete(handles)
                gone.update(handles)
                for receipt in spent:
                    self._packing.drop(receipt)
                back += len(outgoing)
                if limit is not None and looked >= limit:
                    break
                time.sleep(max(len(outgoing) / _REDRIVE_RATE - (time.monotonic() - begin), 0.0))
        return back

    def _revive(self, raw: dict[str, Any], body: bytes) -> tuple[OutgoingMessage, Receipt | None]:
        """Return the message for a dead letter, and the receipt of a body that is no longer needed then."""
        message = self._packing.unpack(raw)
        receipt = read_receipt(message)
        mended = body != message.body
        if mended:
            limit = self._queue.max_bytes()
            encoded = self._packing.pack(message.id, body, message.key)
            self._packing.check(encoded, limit)
            encoded = self._packing.fit(encoded, limit)
        else:
            encoded = self._packing.compact(self._packing.repack(message, receipt), self._queue.max_bytes())
        marked = SqsMessage(encoded.text, {**encoded.attributes, REDRIVE: number_attribute(int(time.time() * 1000))})
        if marked.size <= self._queue.max_bytes():
            encoded = marked
        # The dead letter's id: a FIFO queue then drops a second redrive after a crash, and does not drop the first
        # one as a duplicate of the original message.
        return OutgoingMessage(encoded, message_group(message.key), str(raw["MessageId"])), receipt if mended else None

    # -- looking --------------------------------------------------------------------------------------------------

    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Return some messages in no order. They are hidden meanwhile, and this counts as a delivery."""
        with closing(self._queue.browse(_LOOK, set())) as pages:
            received = itertools.islice(itertools.chain.from_iterable(pages), max(limit, 0))
            return [self._packing.unpack(raw) for raw in received]

    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Raise TopicError: a queue has no positions."""
        reason = f"{self._queue.label}: a queue has no positions to seek; publish old messages again"
        raise TopicError(reason, retryable=False)

    def group_state(self, group: str) -> GroupState:
        """Return SQS's counts; messages released with a delay count as in flight."""
        check_name("group", group)
        ready, in_flight, delayed = self._queue.counts()
        return GroupState(group, 0, ready, in_flight, delayed, self._dead.count())

    def describe(self) -> TopicState:
        """Return SQS's counts, with one group for all."""
        state = self.group_state("balog")
        return TopicState(self.name, state.pending, None, None, [state])


class SqsFifoTopic(SqsTopic):
    """A FIFO queue, ``NAME.fifo``: messages of one key keep their order, and so do those without a key.

    A message in flight, or released with a delay, blocks the following messages of its key. SQS drops an id that is
    published again within five minutes. A receipt is stale when its lease expires.
    """
