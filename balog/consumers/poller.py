"""Pollers: threads that receive from topics and read what came."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from balog.backoff import Backoff, BackoffSequence
from balog.consumers.attempts import Calls, read
from balog.consumers.delivery import Delivery, Lane, Task
from balog.consumers.hook_calls import HookCalls
from balog.consumers.ledger import Entry, Ledger, memory_of
from balog.consumers.scheduling import Schedule
from balog.consumers.telling import FailureLines
from balog.consumers.verdicts import describe
from balog.errors import EventError, TopicError
from balog.event import decode

__all__ = ["Intake", "Poller"]

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds between tries while a topic or the ledger is out of reach."""

LAST_PATIENCE = 1.0
"""Seconds to wait for messages where having none ends the run: the shortest for which SQS asks all of its servers."""

log = logging.getLogger("balog.consumers")


@dataclass(frozen=True)
class Intake:
    """What all pollers of a run share."""

    schedule: Schedule
    ledger: Ledger
    hooks: HookCalls
    lines: FailureLines
    group: str
    batch: int
    lease: float
    max_attempts: int
    backoff: Backoff
    is_patient: bool
    """What may pass is waited out; else it is an error, as in a run that ends when nothing is left."""
    fail: Callable[[BaseException], None]
    wake_main: Callable[[], object]


class Poller:
    """Receives from one topic as long as there is room.

    Attributes:
        saw_nothing: the last receive gave nothing, and nobody has reset this since.
    """

    def __init__(self, lane: Lane, intake: Intake, name: str) -> None:
        self._lane = lane
        self._intake = intake
        self._exists = False
        self.saw_nothing = False
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        try:
            self._poll()
        except BaseException as error:
            self._intake.fail(error)

    def _poll(self) -> None:
        schedule, topic = self._intake.schedule, self._lane.topic
        delays = BackoffSequence(Backoff(FIRST_PAUSE, LONGEST_PAUSE))
        patience = topic.patience if self._intake.is_patient else min(topic.patience, LAST_PATIENCE)
        # Where asking is cheap and the answer exact, the first that comes back empty is one that did not wait: what is
        # done is acked then.
        wait = 0.0 if topic.keeps_groups else patience
        while schedule.wait_for_room():
            try:
                received = self._receive(wait)
            except TopicError as error:
                self._exists = False
                self._lane.trouble = str(error)
                if not self._intake.is_patient or not error.retryable:
                    raise
                delay = delays.next()
                log.warning("%s; trying again in %g s", error, delay)
                schedule.sleep(delay)
                continue
            delays.reset()
            if received:
                wait = 0.0 if topic.keeps_groups else patience
                schedule.admit(received)
            else:
                wait = patience
                schedule.ebb(self._lane, is_last=not self._intake.is_patient)
                self.saw_nothing = True
                if not self._intake.is_patient:
                    self._intake.wake_main()
                if not self._exists:
                    schedule.sleep(patience)

    def _receive(self, wait: float) -> list[Delivery]:
        intake, lane = self._intake, self._lane
        hooks, topic = intake.hooks, lane.topic
        if not self._exists:
            self._exists = topic.exists()
            if not self._exists:
                return []
        hooks.call(hooks.before_receive, lane.name)
        asked = time.monotonic()
        received = topic.receive(intake.group, intake.batch, wait, intake.lease)
        lane.last_receive = time.time()
        lane.trouble = ""
        hooks.call(hooks.after_receive, lane.name, received)
        if not received:
            return []
        deliveries = intake.schedule.hold(lane, received, asked)
        for delivery in deliveries:
            self._read(delivery)
        self._look_up(deliveries)
        return deliveries

    # -- reading --------------------------------------------------------------------------------------------------

    def _read(self, delivery: Delivery) -> None:
        """Decode a message and find out who wants it."""
        message, lane = delivery.message, self._lane
        try:
            event = decode(message.body)
        except EventError as error:
            delivery.gave_up[""] = f"not an event: {error}"
            self._intake.lines.not_an_event(lane.name, message.id, error)
            return
        delivery.event = event
        delivery.id = event.header.id
        try:
            for consumer in lane.router.wanting(event):
                delivery.tasks.append(Task(delivery, lane.desks[consumer.name], consumer.key_of(event)))
        except BaseException as error:  # a team's own match_event
            delivery.tasks = []
            delivery.routing_error = error
            return
        if not delivery.tasks:
            delivery.is_unwanted = True
            if lane.default is not None and not _is_caused_by(delivery, lane.default.name):
                delivery.tasks.append(Task(delivery, lane.default, None))

    def _cannot_route(self, delivery: Delivery, error: BaseException) -> None:
        calls = delivery.calls.get("", Calls())
        attempt, limit = calls.spent + 1, self._intake.max_attempts
        if attempt >= limit:
            then = "dead-lettered"
            delivery.gave_up[""] = f"can't be told who wants it: {describe(error)}"
        else:
            delivery.delay = self._intake.backoff.delay(attempt)
            delivery.has_failed = True
            delivery.note_calls("", calls._replace(failed=calls.failed + 1, explained=delivery.message.attempts))
            then = f"again in {delivery.delay:g} s"
        self._intake.lines.not_routed(self._lane.name, delivery.id, attempt, limit, then, error)

    # -- what was done before -------------------------------------------------------------------------------------

    def _look_up(self, deliveries: Sequence[Delivery]) -> None:
        """Find out which consumers are through with which event, and how often the others were called."""
        intake = self._intake
        if memory_of(intake.ledger) == "none":
            for delivery in deliveries:
                before = delivery.message.attempts - 1
                delivery.calls = {name: Calls(before, 0, before) for name in delivery.wanted_by}
        elif (asked := [delivery for delivery in deliveries if self._may_be_known(delivery)]) and (
            not self._ask(lambda: self._learn(asked))
        ):
            return  # they are given back as they came
        for delivery in deliveries:
            if delivery.routing_error is not None:
                self._cannot_route(delivery, delivery.routing_error)
                delivery.routing_error = None  # its traceback leads to what is in hand

    def _ask(self, question: Callable[[], None]) -> bool:
        """Ask the ledger, and wait while it is out of reach; False when the run stops before it answers."""
        intake = self._intake
        delays = BackoffSequence(Backoff(FIRST_PAUSE, LONGEST_PAUSE))
        while True:
            try:
                question()
                return True
            except TopicError as error:
                if not intake.is_patient or not error.retryable:
                    raise
                delay = delays.next()
                log.warning("%s; trying again in %g s", error, delay)
                if not intake.schedule.sleep(delay):
                    return False

    def _learn(self, asked: Sequence[Delivery]) -> None:
        intake = self._intake
        known = intake.ledger.known(intake.group, [delivery.id for delivery in asked])
        void: list[Entry] = []
        for delivery in asked:
            wanted_by, is_first = delivery.wanted_by, delivery.message.attempts == 1
            for consumer, text in known.get(delivery.id, {}).items():
                entry = read(text)
                if not entry.holds_for(delivery.message.generation):
                    continue
                if entry.is_success:
                    delivery.done.add(consumer)
                elif consumer not in wanted_by:
                    continue
                elif is_first:  # of another message with the same event, which somebody sent once more
                    void.append(delivery.calls_entry(consumer, Calls()))
                elif entry.calls is not None:
                    delivery.calls[consumer] = entry.calls
                else:
                    delivery.gave_up[consumer] = entry.gave_up or ""
        if void:
            intake.ledger.record(intake.group, void)

    def _may_be_known(self, delivery: Delivery) -> bool:
        if not delivery.wanted_by:
            return False
        # Where no message is ever two, only an earlier delivery has something to say; or, of a redriven letter, those
        # consumers that succeeded, with it or in a replay since it died.
        message = delivery.message
        is_single = self._lane.topic.keeps_ids and not message.generation.replay
        return not is_single or message.attempts > 1 or len(delivery.tasks) > 1


def _is_caused_by(delivery: Delivery, consumer: str) -> bool:
    assert delivery.event is not None  # noqa: S101
    cause = delivery.event.header.context.get("caused_by")
    return isinstance(cause, dict) and isinstance(cause.get("consumers"), list) and consumer in cause["consumers"]
