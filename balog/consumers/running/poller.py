"""Pollers: threads that receive messages, decode them and route them to consumers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from balog.common.backoff import Backoff, BackoffSequence
from balog.common.errors import EventError, TopicError
from balog.consumers.error_text import error_line
from balog.consumers.ledgers.ledger import LedgerEntry, remembers
from balog.consumers.queueing.attempts import Calls, read
from balog.consumers.queueing.delivery import HandlerTask, MessageDelivery, Subscription
from balog.consumers.routing import causes
from balog.consumers.running.run_context import RunContext
from balog.event import decode
from balog.topics.lease_clock import uptime

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds between tries while a topic or the ledger is out of reach."""

LAST_WAIT = 1.0
"""Seconds to wait for messages where an empty topic ends the run: the shortest wait for which SQS asks all servers."""

KEEP_SECONDS = 300.0
"""Seconds that an unwanted event stays away after it was returned to its topic."""

log = logging.getLogger("balog.consumers")


class Poller:
    """Receives from one topic while there is room.

    Attributes:
        saw_nothing: the last receive returned nothing. The main thread resets it.
    """

    def __init__(self, subscription: Subscription, context: RunContext, name: str) -> None:
        self._subscription = subscription
        self._context = context
        self._exists = False
        self.saw_nothing = False
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        try:
            self._poll()
        except BaseException as error:
            self._context.fail(error)

    def _poll(self) -> None:
        schedule, topic = self._context.schedule, self._subscription.topic
        delays = BackoffSequence(Backoff(FIRST_PAUSE, LONGEST_PAUSE))
        longest_wait = topic.poll_timeout if self._context.is_patient else min(topic.poll_timeout, LAST_WAIT)
        # Where a receive is cheap and exact, the first one to find nothing does not wait, so that acks are not delayed.
        wait = 0.0 if topic.keeps_groups else longest_wait
        while room := schedule.wait_for_room(self._subscription):
            try:
                received = self._receive(room, wait)
            except TopicError as error:
                self._exists = False
                self._subscription.error = str(error)
                if not self._context.is_patient or not error.retryable:
                    raise
                delay = delays.next()
                log.warning("%s; trying again in %g s", error, delay)
                self._context.hooks.call(self._context.hooks.unreachable, topic.name, error)
                schedule.sleep(delay)
                continue
            delays.reset()
            if received:
                wait = 0.0 if topic.keeps_groups else longest_wait
                schedule.admit(received)
            else:
                wait = longest_wait
                schedule.note_empty(self._subscription, is_last=not self._context.is_patient)
                self.saw_nothing = True
                if not self._context.is_patient:
                    self._context.wake_main()
                if not self._exists:
                    schedule.sleep(longest_wait)

    def _receive(self, limit: int, wait: float) -> list[MessageDelivery]:
        context, subscription = self._context, self._subscription
        hooks, topic = context.hooks, subscription.topic
        if not self._exists:
            self._exists = topic.exists()
            if not self._exists:
                return []
        until = uptime() + context.settings.lease
        received = topic.receive(context.settings.group, limit, wait, context.settings.lease)
        subscription.error = ""
        hooks.call(hooks.after_receive, subscription.name, received)
        if not received:
            return []
        deliveries = context.schedule.hold(subscription, received, until)
        for delivery in deliveries:
            self._route(delivery)
        self._look_up(deliveries)
        return deliveries

    # -- reading ------------------------------------------------------------------------------------------------------

    def _route(self, delivery: MessageDelivery) -> None:
        """Decode a message and make a task for each consumer that wants it."""
        message, subscription = delivery.message, self._subscription
        if message.is_tombstone:
            delivery.unwanted_type = "tombstone"
            return
        try:
            event = decode(message.body)
        except EventError as error:
            delivery.gave_up[""] = f"not an event: {error}"
            self._context.failure_log.not_an_event(subscription.name, message.id, error)
            return
        delivery.event = event
        delivery.id = event.header.id
        try:
            for consumer in subscription.router.wanting(event):
                delivery.tasks.append(
                    HandlerTask(delivery, subscription.handlers[consumer.name], consumer.key_of(event))
                )
        except BaseException as error:  # a consumer's own match_event
            delivery.tasks = []
            delivery.gave_up[""] = f"cannot be routed to a handler: {error_line(error)}"
            self._context.failure_log.not_routed(subscription.name, delivery.id, error)
            return
        if not delivery.tasks:
            delivery.unwanted_type = event.cls_type or "no type"
            if subscription.default is not None:
                if subscription.default.name not in causes(event):
                    delivery.tasks.append(HandlerTask(delivery, subscription.default, None))
            elif self._context.settings.unwanted == "keep":
                delivery.delay = KEEP_SECONDS
            elif self._context.settings.unwanted == "dead":
                delivery.gave_up[""] = f"no consumer wants it: {delivery.unwanted_type[:100]}"

    # -- what was done before -----------------------------------------------------------------------------------------

    def _look_up(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Look up which consumers have handled which event, and how often the others were called."""
        context = self._context
        if not remembers(context.ledger):
            for delivery in deliveries:
                before = delivery.message.attempts - 1
                delivery.calls = {name: Calls(before, 0, before) for name in delivery.wanted_by}
        elif asked := [delivery for delivery in deliveries if delivery.may_be_known]:
            self._ask(asked)

    def _ask(self, asked: Sequence[MessageDelivery]) -> None:
        """Ask the ledger, and wait while it is unreachable. A run that stops meanwhile releases the messages."""
        context = self._context
        delays = BackoffSequence(Backoff(FIRST_PAUSE, LONGEST_PAUSE))
        while True:
            try:
                return self._learn(asked)
            except TopicError as error:
                if not context.is_patient or not error.retryable:
                    raise
                delay = delays.next()
                log.warning("%s; trying again in %g s", error, delay)
                if not context.schedule.sleep(delay):
                    return None

    def _learn(self, asked: Sequence[MessageDelivery]) -> None:
        context = self._context
        known = context.ledger.known(context.settings.group, [delivery.id for delivery in asked])
        void: list[LedgerEntry] = []
        for delivery in asked:
            wanted_by, is_first = delivery.wanted_by, delivery.message.attempts == 1
            for name, text in known.get(delivery.id, {}).items():
                consumer, entry = name.removeprefix(self._subscription.ledger_prefix), read(text)
                if consumer == name or not entry.holds_for(delivery.message.generation):
                    continue
                if entry.is_success:
                    delivery.done.add(consumer)
                elif consumer not in wanted_by:
                    continue
                elif is_first:  # of another message with the same event, sent twice
                    void.append(delivery.entry(consumer, Calls()))
                elif entry.calls is not None:
                    delivery.calls[consumer] = entry.calls
                else:
                    delivery.gave_up[consumer] = entry.gave_up or ""
        if void:
            context.ledger.record(context.settings.group, void)
