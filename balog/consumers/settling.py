"""The settler: threads that ack, release and dead-letter what was handled, many messages at once.

What the ledger must know is written first. So a kill at any moment leaves either a message that comes again with all
that its consumers had done by then on record, or one that is settled.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from balog.backoff import Backoff, BackoffSequence
from balog.consumers.delivery import Delivery, Lane
from balog.consumers.hook_calls import HookCalls
from balog.consumers.ledger import Entry, Ledger
from balog.consumers.scheduling import Schedule
from balog.errors import TopicError
from balog.topics import GivenUp

__all__ = ["Settler"]

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds between tries while a topic or the ledger is out of reach."""

log = logging.getLogger("balog.consumers")


class Settler:
    """Settles what the schedule concluded.

    Args:
        is_patient: what may pass is waited out.
        fail: ends the run with an error.
        threads: how many settle at once, for homes that take few messages a call.

    Attributes:
        succeeded: messages that were acked since all who wanted them succeeded; ``unwanted``: those that nobody wanted;
            ``duplicates``: those whose consumers had all succeeded before; ``dead``: those that were dead-lettered.
    """

    def __init__(
        self,
        schedule: Schedule,
        ledger: Ledger,
        hooks: HookCalls,
        group: str,
        is_patient: bool,
        fail: Callable[[BaseException], None],
        threads: int,
    ) -> None:
        self.succeeded = self.unwanted = self.duplicates = self.dead = 0
        self._schedule = schedule
        self._ledger = ledger
        self._hooks = hooks
        self._group = group
        self._is_patient = is_patient
        self._fail = fail
        self._lock = threading.Lock()
        self._unrecorded: list[Entry] = []
        self._nap = threading.Event()
        self.threads = [
            threading.Thread(target=self._run, name=f"balog-settler-{number}", daemon=True)
            for number in range(1, 1 + threads)
        ]

    def hurry(self) -> None:
        """Wait for nothing any more: the run is about to end."""
        self._nap.set()

    def _run(self) -> None:
        delays = BackoffSequence(Backoff(FIRST_PAUSE, LONGEST_PAUSE))
        while (found := self._schedule.wait_to_settle()) is not None:
            concluded, early = found
            with self._lock:
                self._unrecorded += early
            try:
                self._settle(concluded)
                delays.reset()
            except TopicError as error:
                if self._nap.is_set():
                    log.warning("%s; what was in hand comes back when its lease runs out", error)
                    return
                self._schedule.settle_again([one for one in concluded if one.message.receipt in one.lane.held])
                delay = delays.next()
                if self._is_patient and error.retryable:
                    log.warning("%s; trying again in %g s", error, delay)
                else:
                    self._fail(error)
                self._nap.wait(delay)
            except BaseException as error:
                self._fail(error)
                return

    def _settle(self, concluded: Sequence[Delivery]) -> None:
        with self._lock:
            early, self._unrecorded = self._unrecorded, []
        entries = list(early)
        must_last = bool(early)
        for delivery in concluded:
            if delivery.entries and _needs_record(delivery):
                entries += delivery.entries
                must_last = must_last or not _is_acked(delivery)
        if entries:
            try:
                self._ledger.record(self._group, entries, durable=must_last)
            except TopicError:
                with self._lock:
                    self._unrecorded += early
                raise
            for delivery in concluded:
                delivery.entries = []
        for lane, deliveries in _grouped(concluded, lambda delivery: delivery.lane):
            acked: list[Delivery] = []
            released: list[Delivery] = []
            dead: list[Delivery] = []
            for delivery in deliveries:
                kind = (
                    released if delivery.is_left or delivery.delay is not None else dead if delivery.gave_up else acked
                )
                kind.append(delivery)
            if acked:
                self._ack(lane, acked)
            self._release(lane, released)
            if dead:
                self._dead_letter(lane, dead)

    def _ack(self, lane: Lane, deliveries: Sequence[Delivery]) -> None:
        messages = [delivery.message for delivery in deliveries]
        self._hooks.call(self._hooks.before_ack, lane.name, messages)
        self._check(lane, "acks", len(messages), lane.topic.ack(self._group, messages))
        unwanted = sum(delivery.is_unwanted for delivery in deliveries)
        duplicates = sum(delivery.is_duplicate and not delivery.is_unwanted for delivery in deliveries)
        with self._lock:
            self.unwanted += unwanted
            self.duplicates += duplicates
            self.succeeded += len(deliveries) - unwanted - duplicates
        self._schedule.settled(deliveries)
        self._hooks.call(self._hooks.after_ack, lane.name, messages)

    def _release(self, lane: Lane, deliveries: Sequence[Delivery]) -> None:
        """Give messages back; those that failed first, since others of their key may come behind them."""
        ordered = sorted(deliveries, key=lambda delivery: not delivery.has_failed)
        for (delay, attempted), some in _grouped(ordered, lambda one: (one.delay or 0.0, one.has_failed)):
            messages = [delivery.message for delivery in some]
            with lane.io:
                changed = lane.topic.release(self._group, messages, delay, attempted=attempted)
                self._check(lane, "releases", len(messages), changed)
                self._schedule.settled(some)

    def _dead_letter(self, lane: Lane, deliveries: Sequence[Delivery]) -> None:
        given_up = [_give_up(delivery) for delivery in deliveries]
        changed = lane.topic.dead_letter_each(self._group, given_up)
        self._check(lane, "dead letters", len(deliveries), changed)
        with self._lock:
            self.dead += len(deliveries)
        self._schedule.settled(deliveries)
        for delivery, one in zip(deliveries, given_up):
            self._hooks.call(self._hooks.dead, lane.name, one.received, delivery.event, one.reason, one.consumers)

    def _check(self, lane: Lane, what: str, asked: int, changed: int) -> None:
        if changed < asked:
            log.info(
                "%d of %d %s in %s came too late: others have those messages", asked - changed, asked, what, lane.name
            )


def _is_acked(delivery: Delivery) -> bool:
    return not (delivery.is_left or delivery.delay is not None or delivery.gave_up)


def _needs_record(delivery: Delivery) -> bool:
    # Where no message is ever two, an ack alone is record enough; after a replay an older dead letter is a second one.
    return not (_is_acked(delivery) and delivery.lane.topic.keeps_ids and not delivery.message.generation.replay)


def _give_up(delivery: Delivery) -> GivenUp:
    consumers = tuple(name for name in delivery.gave_up if name)
    split = [text.partition("\n") for text in delivery.gave_up.values()]
    reason, trace = "; ".join(line for line, _, _ in split), "\n".join(rest for _, _, rest in split if rest)
    return GivenUp(delivery.message, reason, consumers, trace)


def _grouped(deliveries: Iterable[Delivery], key: Callable[[Delivery], Any]) -> list[tuple[Any, list[Delivery]]]:
    groups: dict[Any, list[Delivery]] = {}
    for delivery in deliveries:
        groups.setdefault(key(delivery), []).append(delivery)
    return list(groups.items())
