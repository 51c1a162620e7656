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
from balog.delivery.attempt import AttemptOutcome, reason_of
from balog.delivery.connection import NEVER, SinkConnection
from balog.delivery.event_queue import ENTRY_BYTES
from balog.delivery.notices import SinkHealth, ThrottledNotices
from balog.delivery.spool import SinkSpool
from balog.delivery.spooler import Spooler
from balog.delivery.stats import SinkStats
from balog.delivery.worker_state import InFlightBatch, WorkerState
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
        state: which events are safe, and where all others are.

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
        self._batching = config.batch
        if spool is not None:  # a batch must fit into a small spool, or no event after it would be spooled
            most = min(config.batch.bytes, spool.spool.max_bytes // _BATCHES_PER_SPOOL)
            self._batching = msgspec.structs.replace(config.batch, bytes=most)
        self._full_events, self._full_bytes = self._batching.events, self._batching.bytes
        self.state = WorkerState(spool.spool.name if spool else "")
        self._lock, self._changed, self._queue = self.state.lock, self.state.changed, self.state.queue
        self._spooler = (
            Spooler(self.name, spool, self.state, self._batching, self._notices, on_progress) if spool else None
        )
        self._put_timeout = put_timeout
        self._on_pressure = on_pressure
        self._on_progress = on_progress
        self._put = 0
        self._thread = threading.Thread(target=self._run, name=f"balog sink {self.name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, delivery: Delivery, number: int) -> None:
        """Queue an event; each number is greater than the one before."""
        self._put += 1
        state, queue = self.state, self._queue
        if (self._where is not None and not self._where.matches(delivery.event)) or (
            self._takes is not None and not self._takes(delivery.event)
        ):
            state.stats.filtered += 1
            state.last_number = number
            return
        body = delivery.body
        size = len(body) + ENTRY_BYTES
        is_pressing = False
        with self._lock:
            if state.has_ended or (queue.memory + size > queue.limit and not self._wait_for_room(size)):
                self._drop(number)
            else:
                waiting, filled = queue.append(number, body, size), queue.bytes
                if waiting == 1:
                    if self._spooler is None or not self._spooler.spool.own:
                        queue.oldest_at = time.monotonic()
                    self._changed.notify_all()
                elif waiting == self._full_events or filled >= self._full_bytes > filled - size:
                    self._changed.notify_all()
                if self._spooler is not None:
                    is_pressing = queue.memory >= queue.limit // 4 > queue.memory - size
            state.last_number = number
        if is_pressing:
            self._on_pressure()

    def _wait_for_room(self, size: int) -> bool:
        """Wait until so many bytes fit into the queue, while the lock is held. Return False if that does not happen."""
        state, queue, spooler = self.state, self._queue, self._spooler
        while queue.memory + size > queue.limit and state.deadline is None and not state.has_ended:
            can_spill = spooler is not None and not spooler.error
            is_worth_waiting = self._put_timeout > 0 and (can_spill or not self._health.is_failing)
            if not (is_worth_waiting and self._wait_for_progress(can_spill)):
                return False
        return not state.has_ended

    def _wait_for_progress(self, can_spill: bool) -> bool:
        """Wait until a batch was taken, failed or spooled. Return False if there is no point in waiting longer."""
        state, began = self.state, time.monotonic()
        progress = state.progress
        has_moved = self._changed.wait_for(
            lambda: state.progress != progress or (self._health.is_failing and not can_spill),
            min(self._put_timeout, NO_PROGRESS_SECONDS),
        )
        # A sink without progress is not waited for again; a disk that stalls is.
        self._put_timeout = self._put_timeout - (time.monotonic() - began) if has_moved or can_spill else 0.0
        return has_moved or (can_spill and self._put_timeout > 0)

    def _drop(self, number: int) -> None:
        self.state.drop(1, number)
        if not self.state.has_ended:
            self._notices.send_once("its queue is full, dropping events (counted) until it takes some")

    @property
    def is_running(self) -> bool:
        """Whether the worker's thread is alive."""
        return self._thread.is_alive()

    def stats(self) -> SinkStats:
        """Return a copy of the counters."""
        state, queue = self.state, self._queue
        with self._changed:
            stats = msgspec.structs.replace(state.stats, put=self._put)
            stats.waiting = len(queue.entries) + len(queue.moving) + len(state.batch_in_memory())
            stats.is_failing, stats.reason = self._health.is_failing, self._health.reason
            if self._spooler is not None:
                stats.adopted = self._spooler.spool.adopted_events
                if not state.has_ended:
                    stats.spooled = self._spooler.events_on_disk()
            return stats

    def drain(self, deadline: float) -> None:
        """Stop after the waiting events are delivered, or at a time of the monotonic clock. A later call may only
        bring the time forward.
        """
        state = self.state
        with self._changed:
            state.deadline = deadline if state.deadline is None else min(deadline, state.deadline)
            self._changed.notify_all()

    def join(self) -> None:
        """Wait for the end that ``drain`` asked for. A sink that hangs is abandoned, and its events are spooled."""
        began = time.monotonic()
        while self._thread.is_alive():
            until = self.state.deadline if self.state.deadline is not None else NEVER
            if self._connection.is_opening and not self._queue.entries:
                until = min(until, began)  # no event waits for the sink to open
            self._thread.join(min(max(0.0, until + GRACE - time.monotonic()), 1.0))
            if time.monotonic() >= until + GRACE:
                if (asked_at := self._connection.asked_at) is not None:
                    self._notices.send(f"no answer for {time.monotonic() - asked_at:.1f} s")
                break
        self._end()

    def spill_due(self) -> None:
        """Move events to disk if that is due. A thread that no sink delays calls this regularly."""
        if self._spooler is not None:
            self._spooler.spill_due(is_urgent=self._health.is_failing)

    def sync(self) -> None:
        """Write all events in memory to disk. If the disk refuses them, they stay in memory."""
        if self._spooler is not None:
            self._spooler.spill_due(is_urgent=True)

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
        while True:
            if time.monotonic() >= self._open_at():
                self._connection.open_early()
            if self._spooler is not None:
                self._spooler.adopt()
            with self._changed:
                if not self._wait_for_work():
                    return None
            with self.state.disk:
                if (batch := self._next_batch()) is not None:
                    return batch

    def _wait_for_work(self) -> bool:
        state, spooler = self.state, self._spooler
        while True:
            now = time.monotonic()
            if state.has_ended or self._is_over(now):
                return False
            if spooler is not None and spooler.spool.adopted:
                return True
            next_at = min(spooler.adopt_at if spooler is not None else NEVER, self._open_at())
            if now >= next_at:
                return True
            timeout = next_at - now
            if self._queue.entries or (spooler is not None and spooler.spool.own):
                full_at = self._queue.oldest_at + self._batching.age
                if state.deadline is not None or now >= full_at or self._health.is_failing or self._is_batch_full():
                    return True
                timeout = min(timeout, full_at - now)
            elif state.deadline is not None and not self._queue.moving:
                return False
            self._changed.wait(None if timeout == NEVER else timeout)

    def _open_at(self) -> float:
        """Return when to open a sink early; a batch that waits opens it anyway."""
        has_work = self._queue.entries or self.state.deadline is not None
        return NEVER if has_work else self._connection.open_at

    def _is_batch_full(self) -> bool:
        events, size = len(self._queue.entries), self._queue.bytes
        if self._spooler is not None:
            spooled_events, spooled_bytes = self._spooler.events_waiting()
            events, size = events + spooled_events, size + spooled_bytes
        return events >= self._full_events or size >= self._full_bytes

    def _is_over(self, now: float) -> bool:
        deadline = self.state.deadline
        return deadline is not None and now >= deadline + (0.0 if self._health.is_failing else GRACE - 0.1)

    def _next_batch(self) -> InFlightBatch | None:
        """Put the next batch in flight, from disk or else from the queue."""
        if self._spooler is not None and (segment := self._spooler.next_segment()) is not None:
            return self._spooler.read(segment)
        with self._changed:
            entries, size = self._queue.take(self._full_events, self._full_bytes)
            if not entries:
                return None
            self.state.batch = InFlightBatch(entries, size)
            return self.state.batch

    def _deliver(self, batch: InFlightBatch) -> bool:
        """Attempt to deliver a batch until the sink has taken or refused it. Return False when time is up."""
        state = self.state
        delays = BackoffSequence(self.config.retry.backoff())
        deliveries = batch.deliveries or [Delivery(None, body) for _, body in batch.entries]
        while True:
            outcome = self._connection.deliver(deliveries)
            self._note(outcome)
            if not self._settle(batch, outcome):
                return False
            if not outcome.left:
                return True
            deliveries = [deliveries[index] for index in outcome.left]
            if outcome.taken:
                delays.reset()
            if self._spooler is not None and batch.on_disk is None:
                self._spooler.spill()
            was_draining = state.deadline is not None
            if not self._pause(delays.next(), outcome.error.retry_after if outcome.error else None):
                return False
            state.stats.retries += 1
            if state.deadline is not None and not was_draining:  # the last attempts follow each other quickly
                delays.reset()

    def _note(self, outcome: AttemptOutcome) -> None:
        health = self._health
        if outcome.error is None:
            if outcome.taken:
                health.recover()
            return
        if outcome.left or not outcome.taken:
            health.fail(outcome.error, is_retried=bool(outcome.left))
        else:
            health.recover()
            health.reason = reason_of(outcome.error)
        folder = self._spooler.spool.dead.folder if self._spooler is not None else None
        health.refuse(outcome, f"refused events are kept in {folder}" if folder else "not delivered")

    def _settle(self, batch: InFlightBatch, outcome: AttemptOutcome) -> bool:
        """Account for the outcome of an attempt. Return False if the worker has abandoned the sink meanwhile."""
        state, spooler = self.state, self._spooler
        left = [batch.entries[index] for index in outcome.left]
        with state.disk:
            with self._changed:
                if state.has_ended:
                    return False
                state.begin_change(self._events_on_disk())
            are_dead_kept = not outcome.dead
            if spooler is not None:
                are_dead_kept = are_dead_kept or spooler.keep_dead_letters(batch, outcome)
                spooler.settle(batch, left)
            with self._changed:
                if not state.end_change():  # the end did not wait for a slow disk and has counted the batch already
                    return False
                state.account(batch, outcome, left, are_dead_kept)
        self._on_progress()
        return True

    def _pause(self, seconds: float, asked: float | None) -> bool:
        """Wait before a retry. A deadline that is set meanwhile ends the wait; the last retry is at the deadline.

        Args:
            asked: seconds that the other side asked for; they are waited out in any case.

        Returns:
            False if the deadline has passed, or will have before the other side wants to be asked.
        """
        state = self.state
        end = time.monotonic() + max(seconds, asked or 0.0)
        with self._changed:
            was_draining = state.deadline is not None
            while not state.has_ended:
                now = time.monotonic()
                if state.deadline is not None and now < state.deadline and not was_draining and not asked:
                    return True
                if state.deadline is not None and end > state.deadline:
                    if asked or now >= state.deadline:
                        return False
                    end = state.deadline
                if now >= end:
                    return True
                self._changed.wait(end - now)
            return False

    def _events_on_disk(self) -> int:
        return self._spooler.events_on_disk() if self._spooler is not None else 0

    def _end(self) -> None:
        """Stop for good. Events that are left go to the spool, or are lost."""
        state, spooler = self.state, self._spooler
        has_disk = state.disk.acquire(timeout=DISK_SECONDS)  # a disk may hang, too
        try:
            if has_disk and spooler is not None:
                for _ in range(2):  # the second time for events that arrived during the first
                    if self._queue.entries or state.batch_in_memory():
                        spooler.spill()
            with self._changed:
                if state.has_ended:
                    return
                state.end(self._events_on_disk())
            if has_disk and spooler is not None:
                spooler.spool.release()
        finally:
            if has_disk:
                state.disk.release()
        self._on_progress()


def _compile(where: str | None) -> Expression | None:
    if where is None:
        return None
    try:
        return Expression(where)
    except ConfigError as error:
        raise ConfigError(error.reason, error.source, "where") from None
