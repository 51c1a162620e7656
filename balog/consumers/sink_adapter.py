"""The sink adapter: a sink for handlers, which reports failures with the engine's exceptions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from balog.common.backoff import BackoffSequence
from balog.common.errors import ConfigError, MissingExtraError, complain
from balog.consumers.outcomes import Halt, PartialFailure, Reject, Retry
from balog.consumers.running.exit_callbacks import at_end
from balog.delivery.attempt import AttemptOutcome, SinkConnection, SinkHealth, attempt, reason_of
from balog.delivery.notices import ThrottledNotices
from balog.delivery.stats import SinkStats
from balog.event import Event, encode
from balog.event.batches import split
from balog.sinks.base import Delivery, Sink, SinkConfig, SinkError

CLOSE_SECONDS = 5.0
"""Seconds that closing waits for a busy sink; then it is abandoned, and its events are delivered again."""


class SinkAdapter:
    """A sink that opens with the first event and closes after the engine's run, or with :meth:`close`.

    It has no queue and no spool: events that the sink does not accept stay in the topic. A sink accepts one batch at a
    time, so declare the consumer with ``concurrency=1``; sinks that post each event by itself (``pagerduty``,
    ``webhook``) accept concurrent calls. While the target is down, retries follow the config's ``retry``, however many
    events wait.

    Args:
        config: the sink's config. Its ``where`` and ``batch.events`` are ignored: the consumer declares them.
        say: called with one line for the operator when the target fails, recovers, or rejects events.
        is_owned: the creator closes the adapter: the end of a run does not, and after ``close`` it does not open again.

    Attributes:
        name: the sink's name in messages.
        stats: the counters since the adapter was created.

    Raises:
        Halt: an invalid config, a missing secret, or missing packages. If ``is_owned``, the ``ConfigError`` or
            ``MissingExtraError`` itself, here and from ``open``.
    """

    def __init__(
        self, config: SinkConfig, say: Callable[[str], None] = lambda line: None, *, is_owned: bool = False
    ) -> None:
        self.name = config.name
        self.stats = SinkStats()
        self._config = config
        self._health = SinkHealth(
            ThrottledNotices(config.name, say), on_failure="trying again, its events stay in the topic"
        )
        self._is_owned = is_owned
        self._connection: SinkConnection | None = self._connect()  # raises at once for an invalid config
        self._lock = threading.Condition()
        self._sending = 0
        self._is_closed = False
        self._failures = 0
        self._delays = BackoffSequence(config.retry.backoff())
        self._next_try = 0.0

    @property
    def error(self) -> str:
        """Why the target fails, in one line; "" while it works."""
        return self._health.reason if self._health.is_failing else ""

    def open(self) -> None:
        """Open the sink. If its target can't be reached, the first batch opens it.

        Raises:
            SinkError: a retry can't help.
            Halt: a secret or a package is missing.
        """
        with self._lock:
            try:
                self._open()
            except SinkError as error:
                if not error.retryable:
                    raise
                self._put_off(error, self._failures)

    def send(self, events: Sequence[Event]) -> None:
        """Deliver events. When this returns, the target has them, as far as the sink guarantees that.

        Raises:
            Retry: the target is down or busy; ``after`` is the time that it asked for, or until the next try.
            Reject: the target rejected the only event for good.
            PartialFailure: some of several events failed, each with its own ``Retry`` or ``Reject``.
            Halt: the sink can't be opened: its config became invalid, or packages are missing.
        """
        batch = [Delivery(event, encode(event)) for event in events]
        parts = split(batch, lambda delivery: len(delivery.body), self._config.batch.bytes)
        failed: dict[str, str | BaseException] = {}
        with self._entered() as (sink, failures):
            for part in parts:
                # Every rejected event is found: an event that was not tried alone must not become a dead letter.
                outcome = attempt(partial(self._write, sink), part)
                self._note(outcome)
                failed.update({part[index].event.header.id: Reject(why) for index, why in outcome.dead.items()})
                if outcome.left and outcome.error is not None:
                    left = [part[index] for index in outcome.left] + [delivery for later in parts for delivery in later]
                    retry = Retry(reason_of(outcome.error), self._put_off(outcome.error, failures))
                    if len(left) == len(batch):
                        raise retry
                    failed.update({event.header.id: retry for event, _ in left})
        if failed and len(batch) == 1:
            (error,) = failed.values()
            raise error  # type: ignore[misc]  # no text among them
        if failed:
            raise PartialFailure(failed)

    def close(self) -> None:
        """Close the sink; one that hangs is abandoned. A later ``send`` opens it again unless ``is_owned``.

        Raises:
            SinkError: the sink could not finish; the error names the events that are kept, and where.
        """
        self._is_closed = True  # at once: a running ``send`` writes no further part
        is_ours = self._lock.acquire(timeout=CLOSE_SECONDS)
        try:
            if is_ours:
                is_idle = self._lock.wait_for(lambda: not self._sending, CLOSE_SECONDS)
                connection, self._connection = self._connection, None
                if connection is not None and is_idle:
                    connection.sink.close()
        finally:
            self._is_closed = self._is_owned
            if is_ours:
                self._lock.release()

    @contextmanager
    def _entered(self) -> Iterator[tuple[Sink, int]]:
        """Yield the open sink and the number of earlier failures; the sink is not closed meanwhile."""
        with self._lock:
            wait = self._next_try - time.monotonic()
            if self._health.is_failing and wait > 0:
                raise Retry(self._health.reason, wait)
            if self._is_closed:
                raise Retry("it is being closed")
            failures = self._failures
            try:
                sink = self._open()
            except SinkError as error:
                raise Retry(reason_of(error), self._put_off(error, failures)) from None
            except (ConfigError, MissingExtraError) as error:
                raise Halt(str(error)) from error
            self._sending += 1
        try:
            yield sink, failures
        finally:
            with self._lock:
                self._sending -= 1
                self._lock.notify_all()

    def _connect(self) -> SinkConnection:
        try:
            return SinkConnection(self._config, self._health)
        except (ConfigError, MissingExtraError) as error:
            if self._is_owned:
                raise
            raise Halt(str(error)) from error

    def _open(self) -> Sink:
        if self._connection is None:
            self._connection = self._connect()  # a closed sink is never opened again
        if not self._connection.is_open:
            self._connection.open()
            self._recover()
            if not self._is_owned:
                at_end(self._close_at_end)
        return self._connection.sink

    def _write(self, sink: Sink, batch: Sequence[Delivery]) -> None:
        if self._is_closed:
            raise SinkError("it is being closed")
        sink.write(batch)

    def _note(self, outcome: AttemptOutcome) -> None:
        with self._lock:
            dead = len(outcome.dead) + outcome.unnamed
            self.stats.put += outcome.taken + dead
            self.stats.delivered += outcome.taken
            self.stats.dead += dead
            self._health.refuse(outcome, "refused events become dead letters of the topic")
            if outcome.taken:
                self._recover()

    def _put_off(self, error: SinkError, failures: int) -> float:
        """Record a failure of the target and return the seconds until the next try.

        Args:
            failures: earlier failures when the try began: concurrent tries that fail count as one.
        """
        with self._lock:
            self.stats.retries += 1
            now = time.monotonic()
            if failures == self._failures:
                self._next_try = now + self._delays.next()
                self._failures += 1
            self._next_try = max(self._next_try, now + (error.retry_after or 0.0))
            self._health.fail(error)
            self.stats.is_failing, self.stats.reason = True, self._health.reason
            return max(0.0, self._next_try - now)

    def _recover(self) -> None:
        self._delays.reset()
        self._next_try = 0.0
        self._health.recover()
        self.stats.is_failing = False

    def _close_at_end(self) -> None:
        try:
            self.close()
        except SinkError as error:
            complain(f"{self.name}: {error}")
