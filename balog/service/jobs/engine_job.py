"""A job that runs a consumer engine on its own threads, and restarts it after an error."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from balog.common.backoff import Backoff, BackoffSequence
from balog.common.errors import BalogError, redact_error
from balog.common.signals import signals_for_main_thread
from balog.consumers import Engine, EngineStats, MessageConsumer
from balog.consumers.forwarder import SinkConsumer
from balog.consumers.hub import ConsumerHub
from balog.consumers.monitoring.lag import Lag
from balog.service.jobs import JobStatus, Kind
from balog.topics import open_topics

MAX_ATTEMPTS = 100
"""Errors of the target do not count as attempts. Only a process that dies with an event in flight counts, which is
rarely caused by the event.
"""

JOIN_SECONDS = 5.0
"""Seconds beyond the drain that a stop waits for the thread."""

LAG_AGE = 2.0
"""Seconds for which the lag is cached."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds until a failed run is restarted."""


JobConsumer = SinkConsumer | MessageConsumer


class EngineJob(ABC):
    """A running filter, table or callback. A subclass creates its consumers.

    The consumer group is ``KIND.NAME``: each job receives all events of its topics, also earlier ones.

    Args:
        topics_url: URL of the topics.
        say: prints one line for the operator.
        batch: messages to receive at once.
        lease: seconds until messages are available again after the process died.
    """

    def __init__(
        self,
        kind: Kind,
        name: str,
        topics_url: str,
        say: Callable[[str], None],
        *,
        batch: int = 1000,
        lease: float = 30.0,
    ) -> None:
        self.kind: Kind = kind
        self.name = name
        self.group = f"{kind}.{name}"
        self._url = topics_url
        self._say = say
        self._batch = batch
        self._lease = lease
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._engine: Engine | None = None
        self._consumers: Sequence[JobConsumer] = ()
        self._lag: Lag | None = None
        self._topics = 0
        self._lag_total: int | None = None
        self._earlier = EngineStats()
        self._error = ""

    @abstractmethod
    def consumers(self) -> Sequence[JobConsumer]:
        """Create the consumers of a run, at most one for each topic."""

    def engine_options(self, consumers: Sequence[JobConsumer]) -> dict[str, Any]:
        """Return the arguments of the engine that depend on the kind of job."""
        # As many threads as topics, so that no topic waits for another.
        return {"concurrency": len(consumers), "batch": self._batch, "max_attempts": MAX_ATTEMPTS}

    def check(self) -> None:
        """Check whether the job can start on this machine, without starting it.

        Raises:
            ConfigError: a problem of this machine, such as a missing secret.
        """
        _close(self.consumers())

    def start(self) -> None:
        """Start the job on threads of its own, once. Raises the errors of ``check``."""
        self.check()
        self._thread = threading.Thread(target=self._work, name=f"balog {self.kind} {self.name}", daemon=True)
        with signals_for_main_thread():
            self._thread.start()

    def stop(self, deadline: float) -> None:
        """Stop receiving, wait at most ``deadline`` seconds for events in flight, and release the rest.

        Events in flight that are released are delivered again.
        """
        with self._lock:
            self._stopping.set()
            if self._engine is not None:
                self._engine.stop(deadline)
        if self._thread is not None:
            self._thread.join(deadline + JOIN_SECONDS)

    def status(self) -> JobStatus:
        """Return the status. Called every second, so it is cheap."""
        with self._lock:
            counts, engine, lag = self._counts(), self._engine, self._lag
        if lag is not None:
            states = lag.states()
            if len(states) == self._topics:  # else the lag is not known yet
                self._lag_total = sum(state.lag for state in states.values() if state is not None)
        errors = [consumer.error for consumer in self._consumers]
        if engine is not None:
            errors += engine.state.errors.values()
        is_alive = self._thread is not None and self._thread.is_alive()
        return JobStatus(
            name=self.name,
            kind=self.kind,
            state="running" if is_alive and not self._stopping.is_set() else "stopped",
            taken=counts.received,
            done=counts.succeeded + counts.unwanted + counts.duplicates,
            failed=counts.failed,
            dead=counts.dead,
            lag=self._lag_total,
            error=self._error or next(filter(None, errors), ""),
        )

    def report(self, line: str) -> None:
        """Print one line with the job's name for the operator."""
        self._say(f"{self.kind} {self.name}: {line}")

    def _counts(self) -> EngineStats:
        total = msgspec.structs.replace(self._earlier)
        if self._engine is not None:
            total.add(self._engine.counts)
        return total

    def _work(self) -> None:
        delays = BackoffSequence(Backoff(FIRST_PAUSE, LONGEST_PAUSE))
        while not self._stopping.is_set():
            received, has_failed = self._earlier.received, False
            try:
                self._run()
            except Exception as error:
                self._error = error_line(error)
                has_failed = True
            if self._earlier.received > received:
                delays.reset()
            delay = delays.next()
            if has_failed:
                self.report(f"{self._error}; restarts in {delay:g} s")
            self._stopping.wait(delay)

    def _run(self) -> None:
        with ExitStack() as stack:
            topics = stack.enter_context(open_topics(self._url))
            consumers = self._consumers = self.consumers()
            stack.callback(_close, consumers)
            hub = ConsumerHub()
            for consumer in consumers:
                hub.add(consumer)
            engine = Engine(
                hub,
                topics,
                group=self.group,
                lease=self._lease,
                **self.engine_options(consumers),
            )
            with self._lock:
                if self._stopping.is_set():
                    return
                self._engine = engine
                names = {consumer.topic for consumer in consumers}
                self._lag, self._topics = lag, _ = Lag(topics, names, self.group, LAG_AGE, timeout=0.0), len(names)
                self._error = ""
            try:
                engine.run()
            finally:
                with self._lock:
                    self._earlier, self._engine, self._lag = self._counts(), None, None
                lag.close()


def error_line(error: Exception) -> str:
    """Return an error as one line without secrets. For errors other than ``BalogError`` it begins with the type."""
    text = redact_error(" ".join(str(error).split())) or type(error).__name__
    return text if isinstance(error, BalogError) else f"{type(error).__name__}: {text}"


def _close(consumers: Sequence[JobConsumer]) -> None:
    for consumer in consumers:
        consumer.close()
