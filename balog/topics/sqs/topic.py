"""A queue as a topic."""

from __future__ import annotations

import hashlib
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any, ClassVar, Literal

from balog.errors import TopicError
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
from balog.topics.sqs.codec import REDRIVE, Parcel, number_attribute
from balog.topics.sqs.dead_letters import DeadQueue, Death
from balog.topics.sqs.packing import Packing, Receipt, message_group, read_receipt, token
from balog.topics.sqs.queue import ENTRIES, LONGEST_POLL, Outgoing, Queue

__all__ = ["SqsFifoTopic", "SqsTopic"]

_SHORT_POLL = 0.2
"""Seconds between two looks where less than a second is left to wait, which is SQS's smallest."""

_LOOK = 15.0
"""Seconds for which a message that is only looked at is hidden, if nobody gives it back."""

_REDRIVE_LEASE = 120.0
_REDRIVE_RATE = 500.0
"""Letters a second that a redrive sends back at most: who failed on them is to have a chance."""

_UNREAD_TRIES = 3
"""Deliveries after which a body that S3 does not let us read counts as lost; its policy may be mended until then."""

log = logging.getLogger("balog.topics")


class SqsTopic(Topic):
    """A standard queue: messages come at least once, in no order, and all groups are the same one.

    Each delivery counts as an attempt, whatever a release says. Leases and delays are whole seconds, rounded up, and
    end 12 hours after the delivery. ``publish`` stores ten messages at a time; when it raises, the first ones may be
    in the queue. Counts are SQS's own, approximate and up to a minute old. It has no positions to seek and does not
    tell how many bytes it holds, nor since when: these are 0 and None.

    Args:
        queue: where the messages are.
        dead: where its dead letters are.
        packing: how they are carried.
        create: make the queue when it is first published to.
    """

    keeps_groups: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = False
    one_receiver: ClassVar[bool] = False  # a FIFO queue keeps a key back while earlier ones of it are in hand
    keeps_ids: ClassVar[bool] = False
    counts_attempts: ClassVar[bool] = False
    patience: ClassVar[float] = 5.0

    def __init__(self, queue: Queue, dead: DeadQueue, packing: Packing, create: bool) -> None:
        self.name = queue.name
        self._queue = queue
        self._dead = dead
        self._packing = packing
        self._create = create

    def exists(self) -> bool:
        """Return whether SQS has such a queue."""
        return self._queue.exists()

    def close(self) -> None:
        """Do nothing: the connections are the home's."""

    # -- publishing -----------------------------------------------------------------------------------------------

    def publish(self, messages: Iterable[Message]) -> int:
        """Send messages, in order, and return their number; SQS does not tell which of them it held already."""
        packed = [(message, self._packing.pack(message.id, message.body, message.key)) for message in messages]
        if not packed:
            return 0
        if self._create:
            self._queue.make()
        limit = self._queue.max_bytes()
        for _, parcel in packed:  # all are looked at before the first is sent
            self._packing.check(parcel, limit)
        self._queue.send(
            [
                Outgoing(self._packing.fit(parcel, limit), message_group(message.key), token(message.id))
                for message, parcel in packed
            ]
        )
        return len(packed)

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Receive up to ten messages, the limit of SQS."""
        check_name("group", group)
        deadline = time.monotonic() + wait
        while True:
            left = deadline - time.monotonic()
            found = self._queue.receive(limit, min(round(max(left, 0.0)), LONGEST_POLL), lease)
            received = self._unpack(found)
            left = deadline - time.monotonic()
            if received or left <= 0:
                return received
            if left < 0.5:
                time.sleep(min(left, _SHORT_POLL))

    def _unpack(self, found: Sequence[dict[str, Any]]) -> list[Received]:
        """Read messages; one whose body can't be had for now stays hidden until its lease is over."""
        received: list[Received] = []
        trouble: TopicError | None = None
        for raw in found:
            try:
                received.append(self._packing.unpack(raw, _UNREAD_TRIES))
            except Lost as lost:
                log.warning("%s: message %s is left for later: %s", self._queue.label, raw["MessageId"], lost)
            except TopicError as error:
                trouble = error
        if trouble is not None:
            if not received:
                raise trouble
            log.warning("%s; the message is left for later", trouble)
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
        """Send messages to the dead-letter queue, ten at a time whatever they died of, then delete them."""
        changed = 0
        for start in range(0, len(given_up), ENTRIES):  # what takes long must not outlast the lease
            part = given_up[start : start + ENTRIES]
            held = self._hide([one.received for one in part], DEFAULT_LEASE)  # a stale receipt has no say
            dead: list[tuple[Parcel, Death, str]] = []
            handles: list[str] = []
            for one in itertools.compress(part, held):
                receipt = read_receipt(one.received)
                why = f"{receipt.problem}; {one.reason}" if receipt.problem else one.reason
                death = Death(group, why, one.received.attempts, one.consumers, one.traceback)
                # One death, one id: the message's own could have died here before, and a FIFO queue drops what it
                # saw in the last five minutes.
                unique = hashlib.sha256(receipt.handle.encode()).hexdigest()
                dead.append((self._packing.repack(one.received, receipt), death, unique))
                handles.append(receipt.handle)
            if dead:
                self._dead.bury(dead)
                changed += sum(self._queue.delete(handles))
        return changed

    def _hide(self, received: Sequence[Received], lease: float) -> list[bool]:
        return self._queue.hide([read_receipt(message).handle for message in received], lease)

    # -- dead letters ---------------------------------------------------------------------------------------------

    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Return dead letters, of all groups, which are one; they are hidden while they are read."""
        check_name("group", group)
        letters: list[DeadLetter] = []
        queue = self._dead.queue()
        if not queue.exists():
            return letters
        with closing(queue.browse(_LOOK, set())) as pages:
            for raw in itertools.chain.from_iterable(pages):
                letter = self._dead.read(raw)
                if letter is not None:
                    letters.append(letter)
                if len(letters) >= limit:
                    break
        return sorted(letters, key=lambda letter: letter.died)

    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Send dead letters back, ten at a time and no more than 500 a second, each as a new message of its old id."""
        check_name("group", group)
        queue = self._dead.queue()
        if not queue.exists():
            return 0
        back = looked = 0
        gone: set[str] = set()
        with closing(queue.browse(_REDRIVE_LEASE, gone)) as pages:
            for page in pages:
                begin = time.monotonic()
                outgoing: list[Outgoing] = []
                handles: list[str] = []
                spent: list[Receipt] = []
                for raw in page:
                    if limit is not None and looked >= limit:
                        break
                    letter = self._dead.read(raw)
                    if letter is None:
                        continue
                    looked += 1
                    body = decide(letter)
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

    def _revive(self, raw: dict[str, Any], body: bytes) -> tuple[Outgoing, Receipt | None]:
        """Return what to send for a letter, and the receipt of a body that is no longer needed then."""
        message = self._packing.unpack(raw)
        receipt = read_receipt(message)
        mended = body != message.body
        if mended:
            limit = self._queue.max_bytes()
            parcel = self._packing.pack(message.id, body, message.key)
            self._packing.check(parcel, limit)
            parcel = self._packing.fit(parcel, limit)
        else:
            parcel = self._packing.squeeze(self._packing.repack(message, receipt), self._queue.max_bytes())
        marked = Parcel(parcel.text, {**parcel.attributes, REDRIVE: number_attribute(int(time.time() * 1000))})
        if marked.size <= self._queue.max_bytes():
            parcel = marked
        # The letter's own id: sent twice by a kill it is one in a FIFO queue, and it is not taken for the message
        # that was published first.
        return Outgoing(parcel, message_group(message.key), str(raw["MessageId"])), receipt if mended else None

    # -- looking --------------------------------------------------------------------------------------------------

    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Look at some messages, whose deliveries grow by one, and which are hidden meanwhile; none is the newest."""
        seen: list[Received] = []
        with closing(self._queue.browse(_LOOK, set())) as pages:
            for page in pages:
                seen += [self._packing.unpack(raw) for raw in page]
                if len(seen) >= limit:
                    break
        return seen[:limit]

    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Refuse: a queue has no positions."""
        error = TopicError(f"{self._queue.label}: a queue has no positions to seek; publish old messages again")
        error.retryable = False
        raise error

    def group_state(self, group: str) -> GroupState:
        """Return SQS's counts; what was released with a delay is counted as in flight until it is over."""
        check_name("group", group)
        ready, in_flight, delayed = self._queue.counts()
        return GroupState(group, 0, ready, in_flight, delayed, self._dead.count())

    def describe(self) -> TopicState:
        """Return SQS's counts, and one group that stands for all."""
        state = self.group_state("balog")
        return TopicState(self.name, state.pending, 0, None, [state])


class SqsFifoTopic(SqsTopic):
    """A FIFO queue, ``NAME.fifo``: the order of one key, and of all without a key, is kept.

    A message in hand, or released with a delay, holds up those of its key behind it, and no others. What is published
    again under its id within five minutes is dropped. A receipt is stale as soon as its lease is over.
    """
