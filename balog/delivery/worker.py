"""The worker of one sink: a bounded queue, and a thread that delivers its events in order.

Older events come first: those on disk, then those in the queue. A batch that has failed once, or hangs, is on disk
too, and is removed there after the sink has taken it; so at most one batch comes again after a broker was killed. With
a spool, an event that the sink has not taken is on disk within the spool's window (see ``SyncWindow``), whether the
sink fails, hangs or is slow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from balog.common.backoff import BackoffSequence
from balog.common.errors import ConfigError
from balog.delivery.attempt import NEVER, AttemptOutcome, SinkConnection, SinkHealth, outcome_so_far, reason_of
from balog.delivery.event_queue import NO_EVENT, EventQueue, InFlightBatch
from balog.delivery.notices import ThrottledNotices
from balog.delivery.spool import SinkSpool
from balog.delivery.spooler import Spooler
from balog.delivery.stats import SinkStats
from balog.filters import Expression
from balog.sinks.base import Delivery, SinkConfig, SinkOptions

GRACE = 0.5
"""Seconds after a deadline that a sink has to finish an attempt."""

DISK_SECONDS = 1.0
"""Seconds that the end waits for a disk that hangs."""

NO_PROGRESS_SECONDS = 1.0
"""Seconds without progress after which a caller no longer waits for room in a full queue."""

_BATCHES_PER_SPOOL = 4


class SinkWorker:
    """Delivers events to one sink.

    Args:
        config: the sink's config; the sink is built here, and opened by the worker's thread.
        notify: takes one line for people.
        put_timeout: seconds, in all, that callers of ``put`` may wait for room at a sink that works.
        spool: the sink's part of the spool, if there is one.
        on_pressure: called when the queue fills, so that ``spill_due`` is called soon.
        on_progress: called after events became durable.

    Attributes:
        queue: the events that are not delivered yet, and which ones are safe.

    Raises:
        ConfigError: the sink can't be built, or ``where`` is not an expression; ``path`` is the field.
    """

    def __init__(
        self,
        config: SinkConfig,
        notify: Callable[[str], None],
        *,
        put_timeout: float = 0.0,
        spool: SinkSpool | None = None,
        on_pressure: Callable[[], None] = lambda: None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.config = config
        self.name = config.name
        self._where = _compile(config.where)
        takes = getattr(config, "takes", None)
        self._takes = None if getattr(type(config), "takes", None) is SinkOptions.takes else takes
        self._notices = ThrottledNotices(self.name, notify)
        self._health = SinkHealth(self._notices)
        self._connection = SinkConnection(config, self._health)
        batching = config.batch
        if spool is not None:  # a batch must fit into a small spool, or no event after it would be spooled
            most = min(batching.bytes, spool.spool.max_bytes // _BATCHES_PER_SPOOL)
            batching = msgspec.structs.replace(batching, bytes=most)
        self.queue = EventQueue(batching, spool, GRACE - 0.1, on_pressure)
        self._lock, self._changed = self.queue.lock, self.queue.changed
        self._spooler = Spooler(self.name, spool, self.queue, batching, self._notices, on_progress) if spool else None
        self._refused = f"refused events are kept in {spool.dead.folder}" if spool else "not delivered"
        self._put_timeout = put_timeout
        self._on_progress = on_progress
        self._put = self._retries = 0
        self._thread = threading.Thread(target=self._run, name=f"balog sink {self.name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, delivery: Delivery, number: int) -> None:
        """Queue an event; each number is greater than the one before."""
        self._put += 1
        if (self._where is not None and not self._where.matches(delivery.event)) or (
            self._takes is not None and not self._takes(delivery.event)
        ):
            self.queue.skip(number)
            return
        with self._lock:
            while not self.queue.append(number, delivery.body):
                if not self._wait_for_room():
                    self.queue.drop(1, number)
                    if not self.queue.has_ended:
                        self._notices.send_once("its queue is full, dropping events (counted) until it takes some")
                    break

    def _wait_for_room(self) -> bool:
        """Wait until a batch was taken, failed or spooled. Return False if there is no point in waiting longer."""
        queue, spooler, began = self.queue, self._spooler, time.monotonic()
        can_spill = spooler is not None and not spooler.error
        if queue.deadline is not None or self._put_timeout <= 0 or (self._health.is_failing and not can_spill):
            return False
        progress = queue.progress
        has_moved = self._changed.wait_for(
            lambda: queue.has_ended or queue.progress != progress or (self._health.is_failing and not can_spill),
            min(self._put_timeout, NO_PROGRESS_SECONDS),
        )
        # A sink without progress is not waited for again; a disk that stalls is.
        self._put_timeout = self._put_timeout - (time.monotonic() - began) if has_moved or can_spill else 0.0
        return not queue.has_ended and (has_moved or (can_spill and self._put_timeout > 0))

    @property
    def is_running(self) -> bool:
        """Whether the worker's thread is alive."""
        return self._thread.is_alive()

    def stats(self) -> SinkStats:
        """Return a copy of the counters."""
        return msgspec.structs.replace(
            self.queue.stats(),
            put=self._put,
            retries=self._retries,
            is_failing=self._health.is_failing,
            reason=self._health.reason,
        )

    def join(self) -> None:
        """Wait for the end that ``queue.drain`` sets. A sink that hangs is abandoned, and its events are spooled."""
        began = time.monotonic()
        while self._thread.is_alive():
            until = self.queue.deadline if self.queue.deadline is not None else NEVER
            if self._connection.is_opening and not self.queue.entries:
                until = min(until, began)  # no event waits for the sink to open
            self._thread.join(min(max(0.0, until + GRACE - time.monotonic()), 1.0))
            if time.monotonic() >= until + GRACE:
                if (asked_at := self._connection.asked_at) is not None:
                    self._notices.send(f"no answer for {time.monotonic() - asked_at:.1f} s")
                break
        self._end()

    def spill_due(self, is_urgent: bool = False) -> None:
        """Move events to disk if that is due, or all of them. If the disk refuses them, they stay in memory.

        A thread that no sink delays calls this regularly.
        """
        if self._spooler is not None:
            self._spooler.spill_due(is_urgent or self._health.is_failing)

    # The thread

    def _run(self) -> None:
        try:
            self._connection.open_early()
            while (batch := self._take()) is not None and self._deliver(batch):
                pass
        except Exception as error:  # a bug in the worker; the events that wait are kept
            self._notices.send(f"its thread ended: {reason_of(error)}")
        finally:
            self._end()
            try:
                self._connection.sink.close()
            except Exception as error:
                self._notices.send(reason_of(error))

    def _take(self) -> InFlightBatch | None:
        """Wait for a batch. Return None if there will be no more, or no time for one."""
        queue, spooler, connection = self.queue, self._spooler, self._connection
        while True:
            if spooler is not None:
                spooler.adopt()
            adopt_at = spooler.adopt_at if spooler is not None else NEVER
            if not queue.wait_for_batch(self._health.is_failing, adopt_at, connection.open_at):
                return None
            if time.monotonic() >= connection.open_at and not queue.entries and queue.deadline is None:
                connection.open_early()
            with queue.disk:
                segment = spooler.next_segment() if spooler is not None else None
                batch = spooler.read(segment) if spooler is not None and segment is not None else queue.take()
            if batch is not None:
                return batch

    def _deliver(self, batch: InFlightBatch) -> bool:
        """Attempt to deliver a batch until the sink has taken or refused it. Return False when time is up."""
        queue, spooler = self.queue, self._spooler
        delays: BackoffSequence | None = None
        deliveries = batch.deliveries
        while True:
            outcome = self._connection.deliver(deliveries)
            self._health.note(outcome, self._refused)
            if not self._settle(outcome):
                return False
            if not outcome.left:
                return True
            deliveries = [deliveries[index] for index in outcome.left]
            if delays is None or outcome.taken:
                delays = BackoffSequence(self.config.retry.backoff())
            in_flight = queue.batch
            if spooler is not None and in_flight is not None and in_flight.on_disk is None:
                spooler.spill()
            was_draining = queue.deadline is not None
            if not self._pause(delays.next(), outcome.error.retry_after if outcome.error else None):
                return False
            self._retries += 1
            if queue.deadline is not None and not was_draining:  # the last attempts follow each other quickly
                delays.reset()

    def _settle(self, outcome: AttemptOutcome) -> bool:
        """Account for the outcome of an attempt. Return False if the worker has abandoned the sink meanwhile."""
        with self.queue.disk:
            are_dead_kept = self._spooler.settle(outcome) if self._spooler is not None else not outcome.dead
            if not self.queue.settle(outcome, are_dead_kept):
                return False
        self._on_progress()
        return True

    def _pause(self, seconds: float, asked: float | None) -> bool:
        """Wait before a retry. A deadline that is set meanwhile ends the wait; the last retry is at the deadline.

        Args:
            asked: seconds that the other side asked for; they are waited out in any case.

        Returns:
            False if the deadline has passed, or will have before the other side wants to be asked.
        """
        queue = self.queue
        end = time.monotonic() + max(seconds, asked or 0.0)
        with self._changed:
            was_draining = queue.deadline is not None
            while not queue.has_ended:
                now = time.monotonic()
                if queue.deadline is not None and now < queue.deadline and not was_draining and not asked:
                    return True
                if queue.deadline is not None and end > queue.deadline:
                    if asked or now >= queue.deadline:
                        return False
                    end = queue.deadline
                if now >= end:
                    return True
                self._changed.wait(end - now)
            return False

    def _end(self) -> None:
        """Stop for good. Events that the sink has not settled go to the spool, or are lost."""
        queue, spooler = self.queue, self._spooler
        has_disk = queue.disk.acquire(timeout=DISK_SECONDS)  # a disk may hang, too
        try:
            if has_disk and (batch := queue.batch) is not None:
                self._settle(outcome_so_far(batch.deliveries))
            if has_disk and spooler is not None:
                for _ in range(2):  # the second time for events that arrived during the first
                    if queue.first_in_memory() != NO_EVENT:
                        spooler.spill()
            if not queue.end():
                return
            if has_disk and spooler is not None:
                spooler.spool.release()
        finally:
            if has_disk:
                queue.disk.release()
        self._on_progress()


def _compile(where: str | None) -> Expression | None:
    if where is None:
        return None
    try:
        return Expression(where)
    except ConfigError as error:
        raise ConfigError(error.reason, error.source, "where") from None
