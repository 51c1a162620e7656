"""The settler: threads that ack, release and dead-letter messages, many at once.

The ledger's entries are written first. A kill at any moment leaves either a settled message, or one that is delivered
again with everything on record that its consumers had done by then.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence

from balog.common.errors import TopicError
from balog.consumers.hooks import Hook
from balog.consumers.ledgers.ledger import LedgerEntry
from balog.consumers.queueing.delivery import MessageDelivery
from balog.consumers.routing import Subscription
from balog.consumers.running.run_context import PAUSES, RunContext
from balog.topics import GivenUp
from balog.topics.base import uptime

LISTED_TYPES = 20
"""How many payload types of unwanted events are counted by their names."""

log = logging.getLogger("balog.consumers")


class Settler:
    """Settles the deliveries that the schedule concluded.

    Args:
        threads: the number of settling threads, for backends that accept few messages per call.

    Attributes:
        kept: hashes of the ids of unwanted events that were returned to their topics.
        counts: settled messages by result, the names of the counters of ``EngineStats``.
        unwanted_types: unwanted messages by payload type.
    """

    def __init__(self, context: RunContext, threads: int) -> None:
        self._context = context
        self._settlements = context.schedule.settlements
        self._group = context.settings.group
        self._lock = threading.Lock()
        self._unrecorded: list[LedgerEntry] = []
        self.kept: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.unwanted_types: Counter[str] = Counter()
        self._nap = threading.Event()
        self.threads = [
            threading.Thread(target=self._run, name=f"balog-settler-{number}", daemon=True)
            for number in range(1, 1 + threads)
        ]

    def skip_pauses(self) -> None:
        """Do not wait between tries any more: the run is about to end."""
        self._nap.set()

    def _run(self) -> None:
        failures = 0
        while (batch := self._settlements.wait()) is not None:
            concluded, early = batch
            with self._lock:
                self._unrecorded += early
            try:
                self._settle(concluded)
                failures = 0
            except TopicError as error:
                if self._nap.is_set():
                    log.warning("%s; what was in flight comes back when its lease runs out", error)
                    return
                self._context.schedule.put_back(concluded)
                failures += 1
                delay = PAUSES.delay(failures)
                if self._context.is_patient and error.retryable:
                    log.warning("%s; trying again in %g s", error, delay)
                else:
                    self._context.fail(error)
                self._nap.wait(delay)
            except BaseException as error:
                self._context.fail(error)
                return

    def _settle(self, concluded: Sequence[MessageDelivery]) -> None:
        with self._lock:
            early, self._unrecorded = self._unrecorded, []
        entries = list(early)
        must_last = bool(early)
        parts: dict[Subscription, tuple[list[MessageDelivery], ...]] = {}
        for delivery in concluded:
            subscription = delivery.subscription
            acked, released, dead = parts.setdefault(subscription, ([], [], []))
            is_released = delivery.is_left or delivery.delay is not None
            part = released if is_released else dead if delivery.gave_up else acked
            part.append(delivery)
            # Where every event is one message, an ack is record enough; after a replay, an old dead letter is another.
            is_single = subscription.topic.keeps_ids and not delivery.message.generation.replay
            if delivery.entries and not (part is acked and is_single):
                entries += delivery.entries
                must_last = must_last or part is not acked
        if entries:
            try:
                self._context.ledger.record(self._group, entries, durable=must_last)
            except TopicError:
                with self._lock:
                    self._unrecorded += early
                raise
            for delivery in concluded:
                delivery.take_entries()
        for subscription, (acked, released, dead) in parts.items():
            if acked:
                self._ack(subscription, acked)
            self._release(subscription, released)
            if dead:
                self._dead_letter(subscription, dead)

    def _ack(self, subscription: Subscription, deliveries: Sequence[MessageDelivery]) -> None:
        messages = [delivery.message for delivery in deliveries]
        hooks = self._context.hooks
        if not hooks.is_empty:
            hooks.call(Hook.before_ack, subscription.name, messages)
        acked = subscription.topic.ack(self._group, messages)
        if acked < len(messages):  # another process gets them, and must know
            successes = [delivery.entry(name) for delivery in deliveries for name in delivery.done]
            self._context.ledger.record(self._group, successes)
        self._check(subscription, "acks", len(messages), acked)
        duplicates = sum(delivery.is_duplicate and delivery.unwanted_type is None for delivery in deliveries)
        with self._lock:
            unwanted = self._count_unwanted(deliveries)
            self.counts.update(duplicates=duplicates, succeeded=len(deliveries) - unwanted - duplicates)
        self._context.schedule.remove(deliveries)
        if not hooks.is_empty:
            hooks.call(Hook.after_ack, subscription.name, messages)

    def _count_unwanted(self, deliveries: Sequence[MessageDelivery]) -> int:
        types = [delivery.unwanted_type for delivery in deliveries if delivery.unwanted_type is not None]
        for name in types:
            is_listed = name in self.unwanted_types or len(self.unwanted_types) < LISTED_TYPES
            self.unwanted_types[name if is_listed else "other types"] += 1
        return len(types)

    def _release(self, subscription: Subscription, deliveries: Sequence[MessageDelivery]) -> None:
        """Release messages, the failed ones first, because others of their key may follow them."""
        groups: dict[tuple[float, bool], list[MessageDelivery]] = {}
        for delivery in sorted(deliveries, key=lambda delivery: not delivery.has_failed):
            groups.setdefault((delivery.delay or 0.0, delivery.has_failed), []).append(delivery)
        for (delay, attempted), some in groups.items():
            with subscription.lease_lock:
                # A queue may accept the receipt of an earlier delivery, and would take the message from its next owner.
                is_exact, now = subscription.topic.keeps_groups, uptime()
                messages = [delivery.message for delivery in some if is_exact or delivery.leased_until > now]
                changed = subscription.topic.release(self._group, messages, delay, attempted=attempted)
                self._check(subscription, "releases", len(some), changed)
                kept = [each for each in some if each.unwanted_type is not None and not each.tasks and not each.is_left]
                self.kept.update(hash((subscription.name, delivery.message.id)) for delivery in kept)
                with self._lock:
                    self._count_unwanted(kept)
                self._context.schedule.remove(some)

    def _dead_letter(self, subscription: Subscription, deliveries: Sequence[MessageDelivery]) -> None:
        given_up = [_give_up(delivery) for delivery in deliveries]
        changed = subscription.topic.dead_letter_each(self._group, given_up)
        self._check(subscription, "dead letters", len(deliveries), changed)
        with self._lock:
            self._count_unwanted(deliveries)
            self.counts["dead"] += len(deliveries)
        self._context.schedule.remove(deliveries)
        for delivery, each in zip(deliveries, given_up):
            arguments = subscription.name, each.received, delivery.event, each.reason, each.consumers
            self._context.hooks.call(Hook.dead, *arguments)

    def _check(self, subscription: Subscription, what: str, asked: int, changed: int) -> None:
        if changed < asked:
            log.info(
                "%d of %d %s in %s came too late: those messages are delivered again",
                *(asked - changed, asked, what, subscription.name),
            )


def _give_up(delivery: MessageDelivery) -> GivenUp:
    consumers = tuple(name for name in delivery.gave_up if name)
    split = [text.partition("\n") for text in delivery.gave_up.values()]
    reason, trace = "; ".join(line for line, _, _ in split), "\n".join(rest for _, _, rest in split if rest)
    return GivenUp(delivery.message, reason, consumers, trace)
