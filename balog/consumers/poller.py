"""Pollers: threads that receive from topics and read what came."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from balog.consumers.consumer import Backoff
from balog.consumers.delivery import Delivery, Lane, Task
from balog.consumers.hook_calls import HookCalls
from balog.consumers.ledger import Ledger
from balog.consumers.scheduling import Schedule
from balog.consumers.suspects import read_begun
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
        pause = FIRST_PAUSE
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
                log.warning("%s; trying again in %g s", error, pause)
                schedule.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
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
        except Exception as error:  # a team's own match_event
            self._cannot_route(delivery, error)
            return
        if not delivery.tasks:
            delivery.is_unwanted = True
            if lane.default is not None and not _is_caused_by(delivery, lane.default.name):
                delivery.tasks.append(Task(delivery, lane.default, None))

    def _cannot_route(self, delivery: Delivery, error: Exception) -> None:
        delivery.tasks = []
        attempt, limit = delivery.message.attempts, self._intake.max_attempts
        if attempt >= limit:
            then = "dead-lettered"
            delivery.gave_up[""] = f"can't be told who wants it: {describe(error)}"
        else:
            first, longest = self._intake.backoff
            delivery.delay = min(first * 2.0 ** min(attempt - 1, 60), longest)
            delivery.has_failed = True
            then = f"again in {delivery.delay:g} s"
        self._intake.lines.not_routed(self._lane.name, delivery.id, attempt, limit, then, error)

    # -- what was done before -------------------------------------------------------------------------------------

    def _look_up(self, deliveries: Sequence[Delivery]) -> None:
        """Find out which consumers are through with which event."""
        asked = [delivery for delivery in deliveries if self._may_be_known(delivery)]
        if not asked:
            return
        intake = self._intake
        pause = FIRST_PAUSE
        while True:
            try:
                known = intake.ledger.known(intake.group, [delivery.id for delivery in asked])
                break
            except TopicError as error:
                if not intake.is_patient or not error.retryable:
                    raise
                log.warning("%s; trying again in %g s", error, pause)
                if not intake.schedule.sleep(pause):
                    return  # it is given back as it came
                pause = min(pause * 2, LONGEST_PAUSE)
        for delivery in asked:
            for consumer, gave_up in known.get(delivery.id, {}).items():
                if not gave_up:
                    delivery.done.add(consumer)
                elif (times := read_begun(gave_up)) is not None:
                    delivery.begun_by[consumer] = times
                elif delivery.message.attempts > 1 and any(task.desk.name == consumer for task in delivery.tasks):
                    delivery.gave_up[consumer] = gave_up  # a first attempt, after all, is that of a redriven letter

    def _may_be_known(self, delivery: Delivery) -> bool:
        if not delivery.tasks:
            return False
        # Where no message is ever two, only an earlier delivery has something to say; or, of a redriven letter, those
        # consumers that succeeded.
        return not self._lane.topic.keeps_ids or delivery.message.attempts > 1 or len(delivery.tasks) > 1


def _is_caused_by(delivery: Delivery, consumer: str) -> bool:
    assert delivery.event is not None  # noqa: S101
    cause = delivery.event.header.context.get("caused_by")
    return isinstance(cause, dict) and isinstance(cause.get("consumers"), list) and consumer in cause["consumers"]
