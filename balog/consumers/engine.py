"""The engine: receives events from topics, calls the consumers that want them, and acks what they handled."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

from balog.common.errors import ConfigError
from balog.common.signals import StopSignals
from balog.consumers.consumer import Consumer
from balog.consumers.running.engine_run import EngineRun
from balog.consumers.running.exit_callbacks import running
from balog.consumers.running.settings import EngineSettings
from balog.consumers.stats import EngineState, EngineStats


class Engine(EngineSettings):
    """Runs the consumers of a hub on the topics that they name.

    Pollers receive messages, worker threads call plain handlers, an event loop runs ``async def`` handlers, and the
    settler acks handled messages in groups, within a second. The leases of all messages in flight are extended.

    - The engine acks a message after every consumer that wants it succeeded.
    - When a consumer fails, the message is released with a growing backoff and delivered again for the failed consumers
      only. The ledger knows which consumers succeeded, in whichever process.
    - A consumer that used up its attempts gives up. When all other consumers are finished, the message is dead-lettered
      with the reasons, tracebacks and names.
    - An attempt is a failed call. Deliveries do not count, except that from the second delivery on, calls during which
      the process ended do. A redrive and a replay start afresh.
    - :class:`~balog.consumers.outcomes.Reject` gives up at once. :class:`~balog.consumers.outcomes.Retry` keeps the
      event in the engine and does not count. Only :class:`~balog.consumers.outcomes.Halt` ends the run.
    - Handlers of batches get first attempts together and each later attempt alone.
    - A consumer with order by key retries a failed event in the engine, and only later events of its key wait.
    - At most 10,000 messages or 128 MiB are in flight; then the engine receives no more until some are settled.
    - With ``concurrency=1``, plain handlers handle the events of an ordered topic one after the other. An ``async def``
      handler does with a ``concurrency=1`` of its own.

    Args:
        hub: the consumers to run.
        topics: the backend of their topics. The engine waits for a topic that does not exist yet.
        consumer_operator: resolves the topics' names and calls the handlers; :class:`ConsumerOperator` when omitted.
        group: engines of one group share the events; each group gets all of them.
        concurrency: threads for plain handlers. An ``async def`` handler has 8 times as many concurrent calls, unless
            the handler sets its own.
        pollers: threads that receive from each queue (SQS). A topic that keeps order, of all or by key, has one.
        batch: messages per receive, at most.
        prefetch: messages that wait in this process beyond those in calls; 0 where each should begin in whichever
            process is free. When omitted as many as are called within half a second, and none before the first call.
        lease: seconds that messages stay with this engine if it dies.
        max_attempts: attempts of a consumer for an event before it gives up, unless it sets ``retries``.
        first_delay: upper limit of the seconds before the second attempt, doubled for each further one up to 60, unless
            the consumer sets ``backoff``. When omitted 1, or 0.1 in a run that ends when nothing is left. Each delay is
            drawn from 0 to its limit (full jitter), so that events that failed together do not retry together. When
            several consumers fail for an event, the longest delay counts.
        drain: seconds that a stop waits for handlers. Then it releases their events, which counts as an attempt.
        ledger: the record of what each consumer handled; a SQLite file of the topics' backend and the group when
            omitted.
        hooks: observers of the run.
        default_event_handler: called with each event that no consumer wants, with the same retries.
        admission: limits the messages in flight further, for example while the target of the events is down.
        unwanted: ``ack`` removes an event that no consumer wants, ``dead`` dead-letters it, and ``keep`` returns it to
            its topic for five minutes at a time, so that another program can receive it.

    Attributes:
        owns_topics: the end of a run closes the topics.

    Raises:
        ConfigError: a value out of its range.
    """

    owns_topics: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._run: EngineRun | None = None
        self._is_running = False
        self._stopping = False

    @property
    def running(self) -> bool:
        """Whether a run is going on. Setting it to False stops the run, as in the first balog."""
        return self._is_running

    @running.setter
    def running(self, is_running: bool) -> None:
        if is_running:
            raise ConfigError("run() starts an engine; only False can be set, which stops it", "engine.running")
        if self._is_running:
            self.stop()

    @property
    def counts(self) -> EngineStats:
        """The counters of the current run, or of the last one."""
        return self._run.counts() if self._run is not None else EngineStats()

    @property
    def state(self) -> EngineState:
        """A snapshot of the engine."""
        if self._run is None or not self._is_running:
            return EngineState(hung_limit=self.concurrency)
        return self._run.state()

    @property
    def consumers(self) -> list[tuple[str, Consumer]]:
        """The consumers with the names of their topics.

        Raises:
            ConfigError: no consumers, or an invalid topic name.
        """
        consumers = [(self.operator.get_topic(consumer), consumer) for consumer in self.hub.consumers]
        if not consumers:
            raise ConfigError("no consumers: no function that was scanned has @consumer_config")
        return consumers

    def stop(self, drain: float | None = None) -> None:
        """End the run: begin no further call, wait for handlers, release the rest.

        May be called from any thread, a handler or a signal handler.

        Args:
            drain: seconds to wait for handlers, instead of the engine's.
        """
        self._stopping = True
        if self._run is not None:
            self._run.stop(drain)

    def run(self, until_empty: bool = False) -> EngineStats:
        """Handle events until stopped: by :meth:`stop`, or, in the main thread, by SIGTERM or SIGINT.

        The first signal waits for running handlers and releases the rest. The second signal ends the process with exit
        code 128 plus its number.

        Args:
            until_empty: return when the group has nothing left, in flight or waiting for a retry.

        Raises:
            ConfigError: no consumers, or an invalid topic name.
            Halt: a handler raised it; its events are as they were.
            TopicError: a topic or the ledger is damaged. With ``until_empty``, also when none of the topics exists or
                one can't be reached; without it, the engine waits for a topic that can't be reached.
            BalogError: more handlers hang than there are workers.
        """
        with self.topics if self.owns_topics else nullcontext():
            return self._run_once(until_empty)

    def _run_once(self, until_empty: bool) -> EngineStats:
        run = EngineRun(self, self.consumers, until_empty)
        self._run = run
        self._is_running = True
        try:
            with running(), self._signals() as signals:
                if not self._stopping:
                    run.run(signals.wake if signals is not None else None)
        finally:
            self._is_running = self._stopping = False
        return run.counts()

    def _signals(self) -> AbstractContextManager[StopSignals | None]:
        if threading.current_thread() is not threading.main_thread():
            return nullcontext()  # only the main thread gets signals
        return StopSignals(lambda number: self.stop())
