"""A sink as a handler uses it: what it does not take is told to the engine in the engine's own words."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct

from balog.backoff import BackoffSequence
from balog.consumers.exit_callbacks import at_end
from balog.consumers.outcomes import Halt, PartialFailure, Reject, Retry
from balog.errors import ConfigError, MissingExtraError, complain
from balog.event import Event, encode
from balog.outbound.attempt import AttemptOutcome, as_sink_error, attempt, reason_of
from balog.outbound.health import SinkHealth
from balog.outbound.notices import ThrottledNotices
from balog.sinks.base import Delivery, Sink, SinkConfig, SinkError

__all__ = ["Outlet", "SinkCounts"]

CLOSE_SECONDS = 5.0
"""How long closing waits for a sink that is at work; then it is left behind, and its events come again."""


class SinkCounts(Struct):
    """What one sink did: events that it took, and that it refused for good; ``retries`` are tries that failed."""

    delivered: int = 0
    refused: int = 0
    retries: int = 0


class Outlet:
    """A sink that is opened at the first event and closed when the engine's run is over, or by :meth:`close`.

    There is no queue and no spool: what was not taken stays in the topic. A sink wants one batch at a time, so the
    consumer says ``concurrency=1``; sinks that post each event by itself (``pagerduty``, ``webhook``) may get several.
    While the other side is down it is asked again after the config's ``retry``, later each time, however many events
    wait for it.

    Args:
        config: of any sink; its ``where`` and how many events make a batch are the consumer's business and not looked
            at.
        say: takes one line for people when the other side fails, takes events again, or refuses some.
        is_owned: whoever made it closes it: not the end of a run, and after ``close`` it is not opened again.

    Attributes:
        name: what the sink is called in messages to people.
        counts: what it did since this was made.

    Raises:
        Halt: what the config says can't be, a secret is not there, or the sink's packages are not installed. Of one
            that is owned the ``ConfigError`` or ``MissingExtraError`` itself, here and from ``open``.
    """

    def __init__(
        self, config: SinkConfig, say: Callable[[str], None] = lambda line: None, *, is_owned: bool = False
    ) -> None:
        self.name = config.name
        self.counts = SinkCounts()
        self._config = config
        self._health = SinkHealth(
            ThrottledNotices(config.name, say), on_failure="trying again, its events stay in the topic"
        )
        self._is_owned = is_owned
        self._built: Sink | None = self._build()  # says at once what can't be
        self._opened: Sink | None = None
        self._lock = threading.Condition()
        self._sending = 0
        self._is_closed = False
        self._troubles = 0
        self._delays = BackoffSequence(config.retry.backoff())
        self._next_try = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the sink is open."""
        return self._opened is not None

    @property
    def trouble(self) -> str:
        """What is wrong with the other side, in one line; "" while nothing is known to be."""
        return self._health.reason if self._health.is_failing else ""

    def open(self) -> float:
        """Open the sink if it is not, and give the seconds until another try is due: 0 when it is open.

        Raises:
            SinkError: trying again can't help.
            Halt: something is missing.
        """
        with self._lock:
            if self._opened is not None or self._is_closed:
                return 0.0
            if (wait := self._next_try - time.monotonic()) > 0:
                return wait
            try:
                self._open()
            except SinkError as error:
                if not error.retryable:
                    raise
                return self._put_off(error, self._troubles)
            return 0.0

    def send(self, events: Sequence[Event]) -> None:
        """Deliver events; they are safe at the other side, as far as the sink promises that, when this returns.

        Raises:
            Retry: the other side is down or busy; after as many seconds as it asked for, or until the next try is due.
            Reject: the only event was refused for good.
            PartialFailure: some events of several; each with a ``Retry`` or a ``Reject`` of its own.
            Halt: the sink can't be opened: what the config names is not there any more, or packages are missing.
        """
        batch = [Delivery(event, encode(event)) for event in events]
        parts = _parts(batch, self._config.batch.bytes)
        failed: dict[str, str | BaseException] = {}
        with self._entered() as (sink, troubles):
            for part in parts:
                # Each refused event is found, however many: one that was not tried alone is no dead letter.
                outcome = attempt(partial(self._write, sink), part, max_writes=2 * len(part))
                self._note(outcome)
                failed.update({part[index].event.header.id: Reject(why) for index, why in outcome.dead.items()})
                if outcome.left and outcome.error is not None:
                    left = [part[index] for index in outcome.left] + [one for later in parts for one in later]
                    retry = Retry(reason_of(outcome.error), self._put_off(outcome.error, troubles))
                    if len(left) == len(batch):
                        raise retry
                    failed.update({event.header.id: retry for event, _ in left})
        if failed and len(batch) == 1:
            (error,) = failed.values()
            raise error  # type: ignore[misc]  # no text among them
        if failed:
            raise PartialFailure(failed)

    def close(self) -> None:
        """Finish what is open; one that hangs is left behind. A later ``send`` opens the sink anew, unless it is owned.

        Raises:
            SinkError: what could not be finished, and where it is kept.
        """
        self._is_closed = True  # at once: what is under way writes no further part
        is_ours = self._lock.acquire(timeout=CLOSE_SECONDS)
        try:
            if is_ours:
                is_idle = self._lock.wait_for(lambda: not self._sending, CLOSE_SECONDS)
                sink, self._opened, self._built = self._opened or self._built, None, None
                if sink is not None and is_idle:
                    sink.close()
        finally:
            self._is_closed = self._is_owned
            if is_ours:
                self._lock.release()

    @contextmanager
    def _entered(self) -> Iterator[tuple[Sink, int]]:
        """Give the sink, opened, and how much trouble there was before; it is not closed meanwhile."""
        with self._lock:
            wait = self._next_try - time.monotonic()
            if self._health.is_failing and wait > 0:
                raise Retry(self._health.reason, wait)
            if self._is_closed:
                raise Retry("it is being closed")
            troubles = self._troubles
            try:
                sink = self._open()
            except SinkError as error:
                raise Retry(reason_of(error), self._put_off(error, troubles)) from None
            except (ConfigError, MissingExtraError) as error:
                raise Halt(str(error)) from error
            self._sending += 1
        try:
            yield sink, troubles
        finally:
            with self._lock:
                self._sending -= 1
                self._lock.notify_all()

    def _build(self) -> Sink:
        try:
            return self._config.build()
        except (ConfigError, MissingExtraError) as error:
            if self._is_owned:
                raise
            raise Halt(str(error)) from error

    def _open(self) -> Sink:
        if self._opened is None:
            sink = self._built or self._build()  # a sink that was closed is never used again
            try:
                sink.open()
            except (ConfigError, MissingExtraError):
                raise
            except Exception as error:
                self._built = sink
                raise as_sink_error(error) from None
            self._opened, self._built = sink, None
            self._recover()
            if not self._is_owned:
                at_end(self._close_at_end)
        return self._opened

    def _write(self, sink: Sink, batch: Sequence[Delivery]) -> None:
        if self._is_closed:
            raise SinkError("it is being closed")
        sink.write(batch)

    def _note(self, outcome: AttemptOutcome) -> None:
        with self._lock:
            self.counts.delivered += outcome.taken
            self.counts.refused += len(outcome.dead) + outcome.unnamed
            self._health.refuse(outcome, "refused events become dead letters of the topic")
            if outcome.taken:
                self._recover()

    def _put_off(self, error: SinkError, troubles: int) -> float:
        """Note trouble at the other side; give the seconds until it is asked again.

        Args:
            troubles: how many there were when the try began: those under way together count as one.
        """
        with self._lock:
            self.counts.retries += 1
            now = time.monotonic()
            if troubles == self._troubles:
                self._next_try = now + self._delays.next()
                self._troubles += 1
            self._next_try = max(self._next_try, now + (error.retry_after or 0.0))
            self._health.fail(error)
            return max(0.0, self._next_try - now)

    def _recover(self) -> None:
        self._delays.reset()
        self._next_try = 0.0
        self._health.recover()

    def _close_at_end(self) -> None:
        try:
            self.close()
        except SinkError as error:
            complain(f"{self.name}: {error}")


def _parts(batch: Sequence[Delivery], most: int) -> Iterator[list[Delivery]]:
    """Cut a batch by the bytes of its events, about; an event that is larger alone makes a part of its own."""
    part: list[Delivery] = []
    size = 0
    for delivery in batch:
        if part and size + len(delivery.body) > most:
            yield part
            part, size = [], 0
        part.append(delivery)
        size += len(delivery.body)
    if part:
        yield part
