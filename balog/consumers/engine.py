"""The engine: receives events from topics, hands each to the consumers that want it, acks it once they succeeded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct

from balog.backoff import LONGEST_BACKOFF, Backoff
from balog.consumers.consumer import Consumer
from balog.consumers.ending import running
from balog.consumers.hooks import Hook
from balog.consumers.hub import ConsumerHub
from balog.consumers.ledger import Ledger
from balog.consumers.operator import ConsumerOperator, Operator
from balog.errors import ConfigError
from balog.event import Event
from balog.signals import StopSignals
from balog.topics import Topics
from balog.topics.base import DEFAULT_LEASE, check_name

if TYPE_CHECKING:
    from balog.consumers.running import Run

__all__ = ["Counts", "Engine", "State"]

DEFAULT_DRAIN = 30.0


class Counts(Struct):
    """What a run did, in messages; ``failed`` counts failed attempts, of each consumer at each event.

    Of the messages whose handling began (``received``), ``succeeded`` went through every consumer that wanted them,
    ``unwanted`` were acked since none did, ``duplicates`` since all who want them had succeeded before, and ``dead``
    were dead-lettered: no events, or failed too often.
    """

    received: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    unwanted: int = 0
    duplicates: int = 0


class State(Struct, frozen=True):
    """A snapshot of an engine, for those who watch it.

    Attributes:
        draining: it was told to stop and waits for handlers.
        alive: when its main loop last turned, in seconds of ``time.monotonic``; it does at least every second.
        in_flight: messages in hand.
        calls: calls of handlers under way.
        hung: handlers that took longer than their timeout and can't be ended; more than ``hung_limit`` end the run.
        last_receive: by topic, when it last answered a receive, in seconds since the epoch; None before.
        trouble: by topic, what is wrong with it; empty when it answers.
    """

    running: bool = False
    draining: bool = False
    alive: float = 0.0
    in_flight: int = 0
    calls: int = 0
    hung: int = 0
    hung_limit: int = 1
    last_receive: dict[str, float | None] = {}
    trouble: dict[str, str] = {}


class Engine:
    """Runs the consumers of a hub on the topics that they name.

    Pollers receive, workers call plain handlers, an event loop runs ``async def`` ones, and what was handled is acked
    together with others, within a second. Leases of all that is in hand are extended as long as it takes.

    A message is acked after every consumer that wants it succeeded. When some fail, it is released with a backoff that
    grows, and comes again for those alone: the ledger knows who succeeded, in whichever process that was. A consumer
    that used up its attempts gives up, and when all others are through, the message is dead-lettered with the reasons,
    tracebacks and names. Attempts are failed calls, which the ledger counts; calls during which the process ended are
    among them from the second such delivery on, deliveries are not. A redrive and a replay begin anew.
    :class:`~balog.consumers.outcomes.Reject` gives up at once, :class:`~balog.consumers.outcomes.Retry` waits in here
    without counting. Of what a handler raises, :class:`~balog.consumers.outcomes.Halt` alone ends the run.

    Handlers of batches get first attempts together and each later one alone. Where a consumer asks for order by key, a
    failed event is tried again in here, and only later ones of its key wait. At most 10,000 messages or 128 MiB are in
    hand; then no more is received until some are settled.

    With ``concurrency=1`` the plain handlers take the events of a topic that keeps order one after the other, and so
    does each ``async def`` handler that does not set its own ``concurrency``.

    Args:
        hub: whose consumers run.
        topics: the home of their topics. A topic that does not exist yet is waited for.
        consumer_operator: gives the topics' names and calls the handlers; :class:`ConsumerOperator` when omitted.
        group: engines of one group share the events, each group gets all of them.
        concurrency: threads for plain handlers. An ``async def`` handler is called 8 times as often at once, unless it
            is 1 or the handler's own.
        pollers: threads that receive from each queue (SQS); topics that keep order, of all or by key, have one.
        batch: messages to receive at once.
        lease: seconds that messages stay with this engine if it dies.
        max_attempts: attempts of a consumer at an event before it gives up, unless it has its own ``retries``.
        first_delay: upper limit of the seconds before the second attempt, doubled for each further one up to 60, unless
            the consumer has its own ``backoff``. When omitted 1, or 0.1 in a run that ends when nothing is left. Each
            delay is drawn from 0 to its limit (full jitter), so that events that failed together do not retry together.
            When several consumers fail at one event, the longest delay counts.
        drain: seconds that a stop waits for handlers. What they have in hand then is given back, as an attempt.
        ledger: who is through with what; a SQLite file of the topics' home and the group when omitted.
        hooks: see all that happens.
        default_event_handler: gets each event that no consumer wants, with the same retries.
    """

    def __init__(
        self,
        hub: ConsumerHub,
        topics: Topics,
        consumer_operator: Operator | None = None,
        group: str = "balog",
        *,
        concurrency: int = 1,
        pollers: int = 1,
        batch: int = 100,
        lease: float = DEFAULT_LEASE,
        max_attempts: int = 5,
        first_delay: float | None = None,
        drain: float = DEFAULT_DRAIN,
        ledger: Ledger | None = None,
        hooks: Sequence[Hook] = (),
        default_event_handler: Callable[[Event], object] | None = None,
    ) -> None:
        self.hub = hub
        self.topics = topics
        self.operator = consumer_operator if consumer_operator is not None else ConsumerOperator()
        self.group = check_name("group", group)
        self.concurrency = _at_least("concurrency", concurrency, 1)
        self.pollers = _at_least("pollers", pollers, 1)
        self.batch = _at_least("batch", batch, 1)
        self.lease = lease
        self.max_attempts = _at_least("max_attempts", max_attempts, 1)
        self.first_delay = first_delay
        self.drain = drain
        self.ledger = ledger
        self.hooks = tuple(hooks)
        self.default_event_handler = default_event_handler
        self._run: Run | None = None
        self._is_running = False
        self._stopping = False

    @property
    def counts(self) -> Counts:
        """What the run that is under way did so far, or the last one."""
        return self._run.counts() if self._run is not None else Counts()

    @property
    def state(self) -> State:
        """How the engine is, now."""
        if self._run is None or not self._is_running:
            return State(hung_limit=self.concurrency)
        return self._run.state()

    @property
    def consumers(self) -> list[tuple[str, Consumer]]:
        """The consumers with the names of their topics.

        Raises:
            ConfigError: no consumers, or a topic's name that can't be.
        """
        found = [(self.operator.get_topic(consumer), consumer) for consumer in self.hub.consumers]
        if not found:
            raise ConfigError("no consumers: no function that was scanned has @consumer_config")
        return found

    def stop(self) -> None:
        """End the run: begin nothing more, wait for handlers, give the rest back.

        May be called from any thread, a handler or a signal handler.
        """
        self._stopping = True
        if self._run is not None:
            self._run.stop()

    def run(self, until_empty: bool = False) -> Counts:
        """Handle events until stopped: by :meth:`stop`, or, in the main thread, by SIGTERM or SIGINT.

        The first signal waits for handlers in hand and gives the rest back, the second ends the process with exit code
        128 and its number.

        Args:
            until_empty: return when the group has nothing left, in flight or waiting for a retry.

        Raises:
            ConfigError: no consumers, or a topic's name that can't be.
            Halt: a handler raised it; its events are as they were.
            TopicError: a topic or the ledger is damaged; with ``until_empty``, also when none of the topics exists or
                one can't be reached. Without, what may pass is waited out.
            BalogError: more handlers hang than there are workers.
        """
        from balog.consumers.running import Run  # on top of what is here

        run = Run(self, self.consumers, until_empty)
        self._run = run
        self._is_running = True
        try:
            with running(), self._signals() as signals:
                if not self._stopping:
                    run.run(signals.wake if signals is not None else None)
        finally:
            self._is_running = self._stopping = False
        return run.counts()

    def backoff(self, until_empty: bool) -> Backoff:
        """Give the delays of consumers that have none of their own."""
        first = self.first_delay if self.first_delay is not None else 0.1 if until_empty else 1.0
        return Backoff(first, max(first, LONGEST_BACKOFF))

    def _signals(self) -> AbstractContextManager[StopSignals | None]:
        if threading.current_thread() is not threading.main_thread():
            return nullcontext()  # only the main thread gets signals
        return StopSignals(lambda number: self.stop())


def _at_least(name: str, value: int, least: int) -> int:
    if not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} {value!r} can't be; want a whole number from {least}")
    return value
