"""Pollers: threads that receive messages, decode them and route them to consumers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from balog.common.errors import TopicError
from balog.consumers.hooks import Hook
from balog.consumers.ledgers.ledger import remembers
from balog.consumers.queueing.delivery import MessageDelivery
from balog.consumers.routing import Subscription
from balog.consumers.running.run_context import PAUSES, RunContext

LAST_WAIT = 1.0
"""Seconds to wait for messages where an empty topic ends the run: the shortest wait for which SQS asks all servers."""

LEAST_QUEUE_LEASE = 2 * LAST_WAIT
"""Seconds. A lease counts from the request, because the answer may be read late: half of it must outlast the wait."""

log = logging.getLogger("balog.consumers")


class Poller:
    """Receives from one topic while there is room.

    Attributes:
        saw_nothing: set when a receive returned nothing. The main thread clears it.
    """

    def __init__(self, subscription: Subscription, context: RunContext, name: str) -> None:
        self._subscription = subscription
        self._context = context
        self.saw_nothing = threading.Event()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        try:
            self._poll()
        except BaseException as error:
            self._context.fail(error)

    def _poll(self) -> None:
        schedule, topic = self._context.schedule, self._subscription.topic
        failures = 0
        most = self._context.settings.lease / 2 if self._context.is_patient else LAST_WAIT
        longest_wait = min(topic.poll_timeout, most)
        # Where a receive is cheap and exact, the first one to find nothing does not wait, so that acks are not delayed.
        wait = 0.0 if topic.keeps_groups else longest_wait
        while room := schedule.wait_for_room(self._subscription):
            try:
                deliveries = self._receive(room, wait)
            except TopicError as error:
                failures += 1
                self._pause(error, failures, is_topic=True)
                continue
            failures = 0
            if deliveries:
                wait = 0.0 if topic.keeps_groups else longest_wait
                schedule.admit(deliveries)
            else:
                wait = longest_wait
                schedule.note_empty(self._subscription, is_last=not self._context.is_patient)
                self.saw_nothing.set()
                if not self._context.is_patient:
                    self._context.wake_main()
                if deliveries is None:
                    schedule.sleep(longest_wait)

    def _pause(self, error: TopicError, failures: int, *, is_topic: bool = False) -> bool:
        """Wait before the next try, or raise the error if no wait helps. Return False when the run stops meanwhile."""
        context = self._context
        if not context.is_patient or not error.retryable:
            raise error
        delay = PAUSES.delay(failures)
        log.warning("%s; trying again in %g s", error, delay)
        if is_topic:
            context.hooks.call(Hook.unreachable, self._subscription.name, error)
        return context.schedule.sleep(delay)

    def _receive(self, limit: int, wait: float) -> list[MessageDelivery] | None:
        """Receive, route and look up messages; None if the topic does not exist."""
        context, subscription = self._context, self._subscription
        settings, failure_log = context.settings, context.failure_log
        received, until = subscription.receive(settings.group, limit, wait, settings.lease)
        if received is not None and not context.hooks.is_empty:
            context.hooks.call(Hook.after_receive, subscription.name, received)
        if not received:
            return None if received is None else []
        deliveries = context.schedule.hold(subscription, received, until)
        for delivery in deliveries:
            routed = delivery.route(settings.unwanted)
            if routed.error is not None:
                is_event = routed.event is not None
                failure_log.not_routed(subscription.name, delivery.id, routed.error, is_event=is_event)
        self._look_up(deliveries)
        return deliveries

    def _look_up(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Ask the ledger what was done before; a run that stops while it is unreachable releases the messages."""
        context = self._context
        if not remembers(context.ledger):
            for delivery in deliveries:
                delivery.count_deliveries()
            return None
        asked = [delivery for delivery in deliveries if delivery.may_be_known]
        failures = 0
        while asked:
            try:
                return self._learn(asked)
            except TopicError as error:
                failures += 1
                if not self._pause(error, failures):
                    return None
        return None

    def _learn(self, asked: Sequence[MessageDelivery]) -> None:
        ledger, group = self._context.ledger, self._context.settings.group
        known = ledger.known(group, [delivery.id for delivery in asked])
        void = [entry for delivery in asked for entry in delivery.learn(known.get(delivery.id, {}))]
        if void:
            ledger.record(group, void)
