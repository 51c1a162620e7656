"""One run of an engine: starts its threads, supervises them, and ends them in the right order."""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from balog.common.errors import BalogError, ConfigError, TopicError, TopicNotFoundError
from balog.consumers.consumer import Consumer
from balog.consumers.hooks import Hook, HookCalls
from balog.consumers.ledgers.ledger import Ledger, remembers
from balog.consumers.queueing.calls import HandlerCall
from balog.consumers.queueing.scheduling import GRACE, Schedule
from balog.consumers.routing import ConsumerRouter, Handler, Subscription
from balog.consumers.running.async_loop import AsyncLoop
from balog.consumers.running.caller import HandlerCaller, HandlerWorkerPool
from balog.consumers.running.failure_log import FailureLog
from balog.consumers.running.leases import LeaseKeeper
from balog.consumers.running.listing import unmet_version
from balog.consumers.running.poller import LEAST_QUEUE_LEASE, Poller
from balog.consumers.running.run_context import RunContext
from balog.consumers.running.settings import EngineSettings
from balog.consumers.running.settler import Settler
from balog.consumers.stats import EngineState, EngineStats
from balog.event.facility import KNOWN_VERSIONS
from balog.topics import Topic

ASYNC_SHARE = 8
"""Concurrent calls of an async handler for each thread."""

SETTLE_AT = 1000
"""Messages that are settled without waiting for more."""

SETTLE_AT_QUEUES = 10
"""The same with SQS queues, which settle ten messages per call."""

DEFAULT_NAME = "default_event_handler"
"""The name of the handler of unwanted events in logs, dead letters and the ledger."""

MAX_TURN = 1.0
"""Seconds that the main loop waits at most."""

JOIN_TIMEOUT = 10.0
"""Seconds to wait for each thread that should end."""

log = logging.getLogger("balog.consumers")


class EngineRun:
    """The threads of one run, and the main loop.

    The main thread waits on a pipe: for a stop, for an error, for a timer, and, in a run that ends when nothing is
    left, for that. Only the main thread starts and ends threads, and it is free to handle signals.

    Args:
        settings: the engine's; passed to hooks as the engine.
        consumers: the consumers with the names of their topics.
        until_empty: end when nothing is left, and do not wait for a topic that can't be reached.
    """

    def __init__(self, settings: EngineSettings, consumers: Sequence[tuple[str, Consumer]], until_empty: bool) -> None:
        self._settings = settings
        self._consumers = consumers
        self._until_empty = until_empty
        self._drain = settings.drain
        self._hooks = HookCalls(settings.hooks)
        self._failure_log = FailureLog()
        self._backoff = settings.backoff(until_empty)
        self._error: BaseException | None = None
        self._alive = time.monotonic()
        self._has_logged_waiting = False
        self._wake_read = self._wake_write = -1
        self._subscriptions = self._subscribe()
        self.topics: list[Topic] = [subscription.topic for subscription in self._subscriptions]
        self._ledger = settings.ledger if settings.ledger is not None else _default_ledger(settings)
        has_queues = not all(topic.keeps_groups for topic in self.topics)
        if has_queues and settings.lease < LEAST_QUEUE_LEASE:
            least = f"expected at least {LEAST_QUEUE_LEASE:g} s"
            raise ConfigError(f"a lease of {settings.lease:g} s is too short for SQS; {least}")
        self._schedule = Schedule(
            self._subscriptions,
            threads=settings.concurrency,
            batch=settings.batch,
            prefetch=settings.prefetch,
            settle_at=SETTLE_AT_QUEUES if has_queues else SETTLE_AT,
            wake_main=self._wake,
            wake_loop=lambda: self._loop.wake(),  # noqa: PLW0108 - the loop needs the schedule first
            has_ledger=remembers(self._ledger),
            admission=settings.admission,
        )
        context = RunContext(
            settings=settings,
            schedule=self._schedule,
            ledger=self._ledger,
            hooks=self._hooks,
            failure_log=self._failure_log,
            is_patient=not until_empty,
            fail=self._fail,
            wake_main=self._wake,
        )
        self._caller = HandlerCaller(context)
        self._loop = AsyncLoop(self._schedule, self._caller)
        self._workers = HandlerWorkerPool(self._schedule, self._caller, settings.concurrency)
        self._settler = Settler(context, settings.pollers if has_queues else 1)
        self._keeper = LeaseKeeper(self._schedule, settings.group, settings.lease)
        self._pollers = [
            Poller(subscription, context, f"balog-poller-{subscription.name}-{number}")
            for subscription in self._subscriptions
            for number in range(1, 1 + (1 if subscription.topic.one_receiver else settings.pollers))
        ]

    # -- for the engine -----------------------------------------------------------------------------------------------

    def stop(self, drain: float | None = None) -> None:
        """End the run. May be called from any thread, also from a signal handler.

        Args:
            drain: seconds to wait for handlers, instead of the engine's.
        """
        if drain is not None:
            self._drain = drain
        self._schedule.begin_stop()
        self._wake()

    def counts(self) -> EngineStats:
        """Return the counters until now."""
        types = dict(self._settler.unwanted_types)
        unwanted, settled = sum(types.values()), self._settler.counts
        failed = self._schedule.failed
        return EngineStats(self._schedule.received, failed=failed, unwanted=unwanted, unwanted_types=types, **settled)

    def state(self) -> EngineState:
        """Return a snapshot."""
        schedule = self._schedule
        return EngineState(
            running=True,
            draining=schedule.stopping,
            alive=self._alive,
            in_flight=schedule.held,
            calls=schedule.running,
            hung=schedule.hung,
            hung_limit=self._settings.concurrency,
            errors={subscription.name: subscription.error for subscription in self._subscriptions},
        )

    # -- construction -------------------------------------------------------------------------------------------------

    def _subscribe(self) -> list[Subscription]:
        settings = self._settings
        by_topic: dict[str, list[Consumer]] = {}
        for name, consumer in self._consumers:
            by_topic.setdefault(name, []).append(consumer)
        subscriptions = []
        for name, consumers in sorted(by_topic.items()):
            handlers = {
                consumer.name: self._handler(consumer, partial(settings.operator.process_event, consumer))
                for consumer in consumers
            }
            default = None
            if settings.default_event_handler is not None:
                function = settings.default_event_handler
                default = self._handler(Consumer(function, name, name=DEFAULT_NAME), function)
            topic = settings.topics.topic(name)
            subscriptions.append(Subscription(topic, handlers, ConsumerRouter(consumers), default))
        return subscriptions

    def _handler(self, consumer: Consumer, function: Callable[..., object]) -> Handler:
        max_attempts = self._settings.max_attempts if consumer.retries is None else consumer.retries + 1
        max_calls = consumer.concurrency
        if max_calls is None and consumer.is_async:
            max_calls = self._settings.concurrency * ASYNC_SHARE
        return Handler(consumer, function, max_attempts, consumer.backoff or self._backoff, max_calls)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, signal_wake: int | None) -> None:
        """Handle events until the end.

        Args:
            signal_wake: a file descriptor that becomes readable when a signal arrives.

        Raises:
            BaseException: the error that ended the run early.
        """
        self._warn_of_versions()
        self._check_topics()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._hooks.call(Hook.started, self._settings)
        try:
            for thread in self._settler.threads:
                thread.start()
            self._keeper.thread.start()
            self._workers.start()
            for poller in self._pollers:
                poller.thread.start()
            self._watch(signal_wake)
        except BaseException as error:
            self._fail(error)
        finally:
            self._end(signal_wake)
            self._hooks.call(Hook.stopped, self._settings)
            write, self._wake_write = self._wake_write, -1
            os.close(write)
            os.close(self._wake_read)
        if self._error is not None:
            raise self._error

    def _warn_of_versions(self) -> None:
        """Warn of consumers that get only events of earlier releases, and refuse those that get no event at all."""
        for _, consumer in self._consumers:
            warning = unmet_version(consumer)
            if warning is not None and not any(map(consumer.conditions.meet_version, KNOWN_VERSIONS)):
                raise ConfigError(warning)
            if warning is not None:
                log.warning("%s", warning)

    def _check_topics(self) -> None:
        try:
            missing = [topic.name for topic in self.topics if not topic.exists()]
        except TopicError as error:
            if self._until_empty or not error.retryable:
                raise
            return  # pollers report an unreachable server and wait for it
        if self._until_empty and len(missing) == len(self.topics):
            raise TopicNotFoundError(f"{', '.join(missing)} in {self._settings.topics.url}")
        for name in missing:
            log.info("waiting for topic %s", name)

    def _watch(self, signal_wake: int | None) -> None:
        while not self._schedule.stopping:
            self._turn(signal_wake)
            if self._until_empty and not self._schedule.stopping and self._is_empty():
                return

    def _turn(self, signal_wake: int | None, longest: float = MAX_TURN) -> None:
        """Run what is due, then wait."""
        rest, overdue = self._schedule.run_timers()
        for call in overdue:
            self._overrun(call)
        hung, limit = self._schedule.hung, self._settings.concurrency
        if hung > limit and not self._schedule.stopping:
            self._fail(
                BalogError(
                    f"{hung} handlers hang beyond their timeout, more than the {limit} that may; find out what they "
                    "wait for, and start again"
                )
            )
        if self._failure_log.has_open_periods:
            self._failure_log.sum_up()
        if not self._hooks.is_empty:
            self._hooks.call(Hook.tick, self._settings)
        self._alive = time.monotonic()
        watched = [self._wake_read] if signal_wake is None else [self._wake_read, signal_wake]
        readable, _, _ = select.select(watched, (), (), longest if rest is None else min(rest, longest))
        for descriptor in readable:
            with suppress(BlockingIOError):
                os.read(descriptor, 4096)

    def _overrun(self, call: HandlerCall) -> None:
        """Ask a call that passed its deadline to end, where that is possible, or go on without it."""
        if call.handler.is_async and not call.is_expired:
            self._schedule.expire(call, GRACE)
            self._loop.cancel(call)
        elif self._caller.abandon(call) and not call.handler.is_async:
            self._workers.add_worker()

    def _is_empty(self) -> bool:
        if self._schedule.held or not all(poller.saw_nothing.is_set() for poller in self._pollers):
            return False
        states = [topic.group_state(self._settings.group) for topic in self.topics if topic.exists()]
        if not self._schedule.held and sum(state.pending for state in states) <= len(self._settler.kept):
            return True
        for poller in self._pollers:
            poller.saw_nothing.clear()
        in_flight = sum(state.in_flight for state in states)
        if in_flight and not self._has_logged_waiting:
            log.info("waiting for %d messages that another consumer holds or held when it died", in_flight)
            self._has_logged_waiting = True
        return False

    # -- ending -------------------------------------------------------------------------------------------------------

    def _end(self, signal_wake: int | None) -> None:
        schedule = self._schedule
        schedule.stop()
        deadline = time.monotonic() + self._drain
        while schedule.running and (rest := deadline - time.monotonic()) > 0:
            self._turn(signal_wake, min(rest, MAX_TURN))
        if left := schedule.close():
            log.warning("%d calls did not end within %g s; their events are given back", left, self._drain)
        self._loop.stop()
        for poller in self._pollers:  # what they receive now is released
            if poller.thread.is_alive():
                poller.thread.join(JOIN_TIMEOUT)
        self._settler.skip_pauses()
        schedule.settlements.close()
        for thread in self._settler.threads:
            if thread.is_alive():
                thread.join(max(JOIN_TIMEOUT, self._drain))
        self._keeper.end()
        if self._keeper.thread.is_alive():
            self._keeper.thread.join(JOIN_TIMEOUT)
        self._failure_log.sum_up(at_once=True)
        if self._settings.ledger is None:
            self._ledger.close()

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self.stop()

    def _wake(self) -> None:
        with suppress(BlockingIOError, OSError):  # the main thread is about to wake, or has ended
            os.write(self._wake_write, b"\0")


def _default_ledger(settings: EngineSettings) -> Ledger:
    from balog.consumers.ledgers.factory import default_ledger

    return default_ledger(settings.topics.url, settings.group)
