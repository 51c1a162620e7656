"""The engine: receives events from topics, hands each to the consumers that want it, acks it once they succeeded."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from msgspec import Struct

from balog.consumers.consumer import Consumer
from balog.consumers.hand import Hand, LeaseKeeper
from balog.consumers.hub import ConsumerHub
from balog.consumers.operator import ConsumerOperator, Operator
from balog.errors import ConfigError, EventError, TopicError
from balog.event import decode
from balog.signals import StopSignals
from balog.topics import Received, Topic, Topics
from balog.topics.base import DEFAULT_LEASE, check_name

__all__ = ["Counts", "Engine"]

POLL = 0.5
"""Seconds to wait for messages when there were none: also how long a stop may take when idle."""

LONGEST_DELAY = 60.0
"""Seconds between two attempts at most."""

_REASON_LIMIT = 32_768
_REMEMBERED = 100_000

log = logging.getLogger("balog.consumers")


class Counts(Struct):
    """What a run did, in messages; ``failed`` counts attempts.

    Of the messages that were ``received`` to be handled, ``succeeded`` went through every consumer that wanted them,
    ``unwanted`` were acked since none did, and ``dead`` were dead-lettered: no events, or failed too often.
    """

    received: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    unwanted: int = 0


class Engine:
    """Runs the consumers of a hub on the topics that they name.

    A message is acked after every consumer that wants it succeeded. When one raises, the message is released and
    comes back, later each time; after ``max_attempts`` deliveries it is dead-lettered with the tracebacks. A retry
    leaves out the consumers that succeeded already. That is remembered in memory: when another process takes the
    retry over, all of them run again, as they do for what was handled but not acked when a process was killed.

    Args:
        hub: whose consumers run.
        topics: the home of their topics. A topic that does not exist yet is waited for.
        consumer_operator: gives the topics' names and calls the handlers; :class:`ConsumerOperator` when omitted.
        group: engines of one group share the events, each group gets all of them.
        batch: messages to receive at once.
        lease: seconds that messages stay with this engine if it dies; while it lives it extends them.
        max_attempts: deliveries of a message before it is dead-lettered.
        first_delay: seconds before the second attempt, doubled for each further one up to 60. When omitted 1, or
            0.1 in a run that ends when nothing is left.
    """

    def __init__(
        self,
        hub: ConsumerHub,
        topics: Topics,
        consumer_operator: Operator | None = None,
        group: str = "balog",
        *,
        batch: int = 100,
        lease: float = DEFAULT_LEASE,
        max_attempts: int = 5,
        first_delay: float | None = None,
    ) -> None:
        self.hub = hub
        self.topics = topics
        self.operator = consumer_operator if consumer_operator is not None else ConsumerOperator()
        self.group = check_name("group", group)
        self.counts = Counts()
        self._batch = batch
        self._lease = lease
        self._max_attempts = max_attempts
        self._first_delay = first_delay
        self._delay = 1.0
        self._stopping = False
        self._succeeded: dict[tuple[str, str], set[str]] = {}

    def stop(self) -> None:
        """End the run after the message in hand. May be called from any thread, a handler or a signal handler."""
        self._stopping = True

    def run(self, until_empty: bool = False) -> Counts:
        """Handle events until stopped: by :meth:`stop`, or, in the main thread, by SIGTERM or SIGINT.

        The first signal finishes the message in hand and releases the rest, the second ends the process.

        Args:
            until_empty: return when the group has nothing left, in flight or waiting for a retry.

        Raises:
            ConfigError: no consumers, or a topic's name that can't be.
            TopicError: a topic is damaged; with ``until_empty``, also when none of the topics exists or one can't be
                reached. Without, what may pass is waited out.
        """
        routes = self._routes()
        self.counts = Counts()
        self._delay = self._first_delay if self._first_delay is not None else 0.1 if until_empty else 1.0
        if until_empty and not any(topic.exists() for topic, _ in routes):
            names = ", ".join(topic.name for topic, _ in routes)
            raise TopicError(
                f"no topic {names} in {self.topics.url}; it is made when something is first published to it"
            )
        try:
            with self._signals(), LeaseKeeper(self._lease) as keeper:
                self._loop(routes, keeper, until_empty)
        finally:
            self._stopping = False
        return self.counts

    def _signals(self) -> AbstractContextManager[object]:
        if threading.current_thread() is not threading.main_thread():
            return nullcontext()  # only the main thread gets signals
        return StopSignals(lambda number: self.stop())

    def _routes(self) -> list[tuple[Topic, list[Consumer]]]:
        by_topic: dict[str, list[Consumer]] = {}
        for consumer in self.hub.consumers:
            by_topic.setdefault(self.operator.get_topic(consumer), []).append(consumer)
        if not by_topic:
            raise ConfigError("no consumers: no function that was scanned has @consumer_config")
        return [(self.topics.topic(name), consumers) for name, consumers in sorted(by_topic.items())]

    def _loop(self, routes: list[tuple[Topic, list[Consumer]]], keeper: LeaseKeeper, until_empty: bool) -> None:
        for topic, _ in routes:
            if not topic.exists():
                log.info("waiting for topic %s", topic.name)
        idle = told = False
        pause = 1.0
        while not self._stopping:
            try:
                wait = POLL / len(routes) if idle else 0.0
                handled = sum([self._work(*route, keeper, wait) for route in routes if not self._stopping])
                idle = handled == 0
                if until_empty and idle:
                    states = [topic.group_state(self.group) for topic, _ in routes if topic.exists()]
                    if not any(state.pending for state in states):
                        return
                    in_flight = sum(state.in_flight for state in states)
                    if in_flight and not told:
                        log.info("waiting for %d messages that another consumer holds or held when it died", in_flight)
                        told = True
                pause = 1.0
            except TopicError as error:
                if until_empty or not error.retryable:
                    raise
                log.warning("%s; trying again in %g s", error, pause)
                self._sleep(pause)
                pause = min(pause * 2, LONGEST_DELAY)

    def _work(self, topic: Topic, consumers: list[Consumer], keeper: LeaseKeeper, wait: float) -> int:
        """Receive and handle one batch; give the number of messages in it."""
        if not topic.exists():
            self._sleep(wait)
            return 0
        received = topic.receive(self.group, self._batch, wait, self._lease)
        if not received:
            return 0
        with Hand(topic, self.group, received, partial(self._forget, topic)) as hand:
            keeper.keep(hand)
            try:
                for message in received:
                    if self._stopping:
                        break
                    self._handle(topic, message, consumers, hand)
            finally:
                keeper.keep(None)
        return len(received)

    def _handle(self, topic: Topic, message: Received, consumers: list[Consumer], hand: Hand) -> None:
        self.counts.received += 1
        try:
            event = decode(message.body)
        except EventError as error:
            hand.give_up(message, f"not an event: {error}")
            self.counts.dead += 1
            log.error("%s in %s is not an event, dead-lettered: %s", message.id, topic.name, error)
            return
        wanting = [consumer for consumer in consumers if consumer.match_event(event)]
        if not wanting:
            hand.handled(message)
            self.counts.unwanted += 1
            return
        succeeded = self._remember(topic, message)
        failures: list[tuple[Consumer, BaseException]] = []
        for consumer in wanting:
            if consumer.name in succeeded:
                continue
            try:
                # A handler may change what it gets, so the next one gets its own.
                self.operator.process_event(consumer, event if consumer is wanting[0] else decode(message.body))
            except (Exception, SystemExit) as error:
                failures.append((consumer, error))
            else:
                succeeded.add(consumer.name)
        if failures:
            self._fail(topic, message, failures, hand)
        else:
            hand.handled(message)
            self.counts.succeeded += 1

    def _fail(
        self, topic: Topic, message: Received, failures: list[tuple[Consumer, BaseException]], hand: Hand
    ) -> None:
        self.counts.failed += 1
        if message.attempts >= self._max_attempts:
            hand.give_up(message, "\n".join(f"{consumer.name}: {_trace(error)}" for consumer, error in failures))
            self.counts.dead += 1
            then = "dead-lettered"
        else:
            delay = min(self._delay * 2 ** min(message.attempts - 1, 20), LONGEST_DELAY)
            hand.retry(message, delay)
            then = f"again in {delay:g} s"
        for consumer, error in failures:
            log.error(
                "%s failed on %s in %s, attempt %d of %d, %s: %s",
                *(consumer.name, message.id, topic.name, message.attempts, self._max_attempts, then, _line(error)),
            )

    def _remember(self, topic: Topic, message: Received) -> set[str]:
        while len(self._succeeded) >= _REMEMBERED:  # retries that other engines took over
            del self._succeeded[next(iter(self._succeeded))]
        return self._succeeded.setdefault((topic.name, message.id), set())

    def _forget(self, topic: Topic, message: Received) -> None:
        self._succeeded.pop((topic.name, message.id), None)

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._stopping and (rest := end - time.monotonic()) > 0:
            time.sleep(min(rest, 0.1))


def _line(error: BaseException) -> str:
    return " ".join(traceback.format_exception_only(type(error), error)[-1].split())[:300]


def _trace(error: BaseException) -> str:
    return f"{_line(error)}\n{''.join(traceback.format_exception(error))}"[:_REASON_LIMIT]
