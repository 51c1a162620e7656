"""One run of an engine: starts the threads, watches over them, and ends them in the right order."""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from balog.consumers.async_loop import AsyncLoop
from balog.consumers.calling import Caller
from balog.consumers.consumer import Consumer
from balog.consumers.delivery import Lane
from balog.consumers.desk import Desk
from balog.consumers.hook_calls import HookCalls
from balog.consumers.leases import LeaseKeeper
from balog.consumers.ledger import Ledger, memory_of
from balog.consumers.poller import Intake, Poller
from balog.consumers.routing import Router
from balog.consumers.scheduling import Schedule
from balog.consumers.settling import Settler
from balog.consumers.telling import FailureLines
from balog.consumers.workers import Crew
from balog.errors import BalogError, TopicError
from balog.event import FACILITY_VERSION
from balog.topics import Topic

if TYPE_CHECKING:
    from balog.consumers.engine import Counts, Engine, State

__all__ = ["Run"]

ASYNC_SHARE = 8
"""Calls of an async handler at once, for each thread."""

SETTLE_AT = 1000
"""Messages that are settled before their time."""

SETTLE_AT_QUEUES = 10
"""The same where some home is a queue: SQS takes ten a call."""

DEFAULT_NAME = "default_event_handler"
"""What the handler of unwanted events is called in logs, dead letters and the ledger."""

_TURN = 1.0
_GOODBYE = 10.0

log = logging.getLogger("balog.consumers")


class Run:
    """The threads of one run, and the main loop.

    Main waits on a pipe: for a stop, for an error, for time to pass, and, in a run that ends when nothing is left, for
    that. It alone starts and ends threads, and is free to hear signals.

    Args:
        consumers: with the names of their topics.
        until_empty: end when nothing is left, and let no trouble pass.
    """

    def __init__(self, engine: Engine, consumers: Sequence[tuple[str, Consumer]], until_empty: bool) -> None:
        self._engine = engine
        self._until_empty = until_empty
        self._hooks = HookCalls(engine.hooks)
        self._lines = FailureLines()
        self._backoff = engine.backoff(until_empty)
        self._error: BaseException | None = None
        self._alive = time.monotonic()
        self._told_waiting = False
        self._wake_read = self._wake_write = -1
        self._loop = AsyncLoop()
        self._lanes = self._make_lanes(consumers)
        self.topics: list[Topic] = [lane.topic for lane in self._lanes]
        self._owns_ledger = engine.ledger is None
        self._ledger = engine.ledger if engine.ledger is not None else _default_ledger(engine)
        self._schedule = Schedule(
            self._lanes,
            prefetch=engine.batch,
            settle_at=SETTLE_AT if all(topic.keeps_groups for topic in self.topics) else SETTLE_AT_QUEUES,
            wake_main=self._wake,
            wake_loop=self._loop.wake,
            memory=memory_of(self._ledger),
        )
        self._caller = Caller(self._schedule, self._ledger, engine.group, self._hooks, self._lines, self._fail)
        self._loop.serve(self._schedule, self._caller)
        self._settler = Settler(
            self._schedule,
            self._ledger,
            self._hooks,
            engine.group,
            not until_empty,
            self._fail,
            1 if all(topic.keeps_groups for topic in self.topics) else engine.pollers,
        )
        self._keeper = LeaseKeeper(self._schedule, engine.group, engine.lease)
        self._pollers = self._make_pollers()

    # -- seen from outside ----------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Have the run end. May be called from anywhere, a signal handler too."""
        self._schedule.stopping = True
        self._wake()

    def counts(self) -> Counts:
        """Give what was done so far."""
        from balog.consumers.engine import Counts

        done, settler = self._schedule, self._settler
        return Counts(done.received, settler.succeeded, done.failed, settler.dead, settler.unwanted, settler.duplicates)

    def state(self) -> State:
        """Give a snapshot."""
        from balog.consumers.engine import State

        schedule = self._schedule
        return State(
            running=True,
            draining=schedule.stopping,
            alive=self._alive,
            in_flight=schedule.held,
            calls=schedule.running,
            hung=schedule.hung,
            hung_limit=self._engine.concurrency,
            last_receive={lane.name: lane.last_receive for lane in self._lanes},
            trouble={lane.name: lane.trouble for lane in self._lanes},
        )

    # -- making ---------------------------------------------------------------------------------------------------

    def _make_lanes(self, consumers: Sequence[tuple[str, Consumer]]) -> list[Lane]:
        engine = self._engine
        by_topic: dict[str, list[Consumer]] = {}
        for name, consumer in consumers:
            by_topic.setdefault(name, []).append(consumer)
        lanes = []
        for name, ours in sorted(by_topic.items()):
            desks = {one.name: self._desk(one, partial(engine.operator.process_event, one)) for one in ours}
            default = None
            if engine.default_event_handler is not None:
                handler = engine.default_event_handler
                default = self._desk(Consumer(handler, name, name=DEFAULT_NAME), handler)
            lanes.append(Lane(engine.topics.topic(name), desks, Router(ours), default))
        return lanes

    def _desk(self, consumer: Consumer, call: Callable[..., object]) -> Desk:
        limit = self._engine.max_attempts if consumer.retries is None else consumer.retries + 1
        cap = consumer.concurrency
        if cap is None and consumer.is_async:
            cap = self._async_cap
        return Desk(consumer, call, limit, consumer.backoff or self._backoff, cap)

    @property
    def _async_cap(self) -> int:
        threads = self._engine.concurrency
        return threads * ASYNC_SHARE if threads > 1 else 1

    def _make_pollers(self) -> list[Poller]:
        engine = self._engine
        intake = Intake(
            schedule=self._schedule,
            ledger=self._ledger,
            hooks=self._hooks,
            lines=self._lines,
            group=engine.group,
            batch=engine.batch,
            lease=engine.lease,
            max_attempts=engine.max_attempts,
            backoff=self._backoff,
            is_patient=not self._until_empty,
            fail=self._fail,
            wake_main=self._wake,
        )
        return [
            Poller(lane, intake, f"balog-poller-{lane.name}-{number}")
            for lane in self._lanes
            for number in range(1, 1 + (1 if lane.topic.one_receiver else engine.pollers))
        ]

    # -- running --------------------------------------------------------------------------------------------------

    def run(self, signal_wake: int | None) -> None:
        """Handle events until the end.

        Args:
            signal_wake: a file descriptor that becomes readable when a signal comes.

        Raises:
            BaseException: what ended the run early.
        """
        self._warn_of_versions()
        self._check_topics()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._hooks.call(self._hooks.started, self._engine)
        crew = Crew(self._schedule, self._caller, self._loop, self._engine.concurrency, self._async_cap)
        try:
            for thread in self._settler.threads:
                thread.start()
            self._keeper.thread.start()
            crew.start()
            for poller in self._pollers:
                poller.thread.start()
            self._watch(signal_wake)
        except BaseException as error:
            self._fail(error)
        finally:
            self._end(signal_wake)
            self._hooks.call(self._hooks.stopped, self._engine)
            write, self._wake_write = self._wake_write, -1
            os.close(write)
            os.close(self._wake_read)
        if self._error is not None:
            raise self._error

    def _warn_of_versions(self) -> None:
        """Warn of consumers that never get what this release writes: the first balog's events had a version below 1."""
        for consumer in self._engine.hub.consumers:
            conditions = consumer.conditions
            if not (consumer.matches_its_own_way or conditions.meet_version(FACILITY_VERSION)):
                log.warning(
                    "consumer %s gets no event that this release writes: its version %s is a condition on the facility"
                    " layer, which is at %s; leave it out, or say payload_version for the version of the payload",
                    *(consumer.name, " and ".join(conditions.version or ()), FACILITY_VERSION),
                )

    def _check_topics(self) -> None:
        try:
            missing = [topic.name for topic in self.topics if not topic.exists()]
        except TopicError as error:
            if self._until_empty or not error.retryable:
                raise
            return  # a server that is away, which pollers tell of and wait for
        if self._until_empty and len(missing) == len(self.topics):
            raise TopicError(
                f"no topic {', '.join(missing)} in {self._engine.topics.url}; "
                "it is made when something is first published to it"
            )
        for name in missing:
            log.info("waiting for topic %s", name)

    def _watch(self, signal_wake: int | None) -> None:
        while not self._schedule.stopping:
            self._turn(signal_wake)
            if self._until_empty and not self._schedule.stopping and self._is_empty():
                return

    def _turn(self, signal_wake: int | None, longest: float = _TURN) -> None:
        """Do what is due, then wait for something to happen."""
        rest = self._schedule.run_timers()
        for call in self._schedule.take_overdue():
            self._caller.overrun(call)
        hung, limit = self._schedule.hung, self._engine.concurrency
        if hung > limit and not self._schedule.stopping:
            self._fail(
                BalogError(
                    f"{hung} handlers hang beyond their timeout, more than the {limit} that may; find out what they "
                    "wait for, and start again"
                )
            )
        self._lines.sum_up()
        self._alive = time.monotonic()
        watched = [self._wake_read] if signal_wake is None else [self._wake_read, signal_wake]
        readable, _, _ = select.select(watched, (), (), longest if rest is None else min(rest, longest))
        for descriptor in readable:
            with suppress(BlockingIOError):
                os.read(descriptor, 4096)

    def _is_empty(self) -> bool:
        if self._schedule.held or not all(poller.saw_nothing for poller in self._pollers):
            return False
        states = [topic.group_state(self._engine.group) for topic in self.topics if topic.exists()]
        if not self._schedule.held and not any(state.pending for state in states):
            return True
        for poller in self._pollers:
            poller.saw_nothing = False
        in_flight = sum(state.in_flight for state in states)
        if in_flight and not self._told_waiting:
            log.info("waiting for %d messages that another consumer holds or held when it died", in_flight)
            self._told_waiting = True
        return False

    # -- ending ---------------------------------------------------------------------------------------------------

    def _end(self, signal_wake: int | None) -> None:
        schedule = self._schedule
        schedule.stop()
        deadline = time.monotonic() + self._engine.drain
        while schedule.running and (rest := deadline - time.monotonic()) > 0:
            self._turn(signal_wake, min(rest, _TURN))
        left = schedule.close()
        if left:
            log.warning("%d calls did not end within %g s; their events are given back", left, self._engine.drain)
        self._loop.stop()
        for poller in self._pollers:  # what they receive now is given back
            if poller.thread.is_alive():
                poller.thread.join(_GOODBYE)
        self._settler.hurry()
        schedule.end()
        for thread in self._settler.threads:
            if thread.is_alive():
                thread.join(max(_GOODBYE, self._engine.drain))
        self._keeper.end()
        if self._keeper.thread.is_alive():
            self._keeper.thread.join(_GOODBYE)
        self._lines.sum_up(at_once=True)
        if self._owns_ledger:
            self._ledger.close()

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self.stop()

    def _wake(self) -> None:
        with suppress(BlockingIOError, OSError):  # it is about to wake, or gone
            os.write(self._wake_write, b"\0")


def _default_ledger(engine: Engine) -> Ledger:
    from balog.consumers.ledgers import default_ledger

    return default_ledger(engine.topics.url, engine.group)
