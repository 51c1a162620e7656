"""The way of events between a worker's memory and its part of the spool."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from balog.common.errors import EventError
from balog.delivery.attempt import AttemptOutcome
from balog.delivery.dead_letters import SinkDeadLetter
from balog.delivery.event_queue import EventQueue, InFlightBatch
from balog.delivery.notices import ThrottledNotices
from balog.delivery.segment import Segment, SpoolRange
from balog.delivery.spool import FULL, SinkSpool
from balog.delivery.sync_window import SyncWindow
from balog.event import decode
from balog.sinks.base import Batching, Delivery

_ADOPT_SECONDS = 30.0
_RETRY_SECONDS = 1.0


class Spooler:
    """Writes events to the spool and reads them back, for one worker.

    Args:
        sink: the sink's name.
        on_progress: called after events became durable.

    Attributes:
        spool: the sink's part of the spool; used only while ``queue.disk`` is held.
        error: why the last write failed: ``FULL``, or the disk's error; "" if it succeeded.
        adopt_at: when to look next for segments that a dead broker left, by the monotonic clock.
    """

    def __init__(
        self,
        sink: str,
        spool: SinkSpool,
        queue: EventQueue,
        batching: Batching,
        notices: ThrottledNotices,
        on_progress: Callable[[], None],
    ) -> None:
        self.spool = spool
        self.error = ""
        self.adopt_at = 0.0
        self._sink = sink
        self._queue = queue
        self._batching = batching
        self._notices = notices
        self._on_progress = on_progress
        self._window = SyncWindow(spool.spool.sync)
        self._is_spilling = False
        self._retry_at = 0.0
        self._was_own_last = True

    # From memory to disk

    def spill_due(self, is_urgent: bool) -> None:
        """Write events to disk if that is urgent, or the window or the queue's size demands it.

        Nothing is written for a second after a write failed.
        """
        queue, now = self._queue, time.monotonic()
        with queue.lock:
            due = self._window.due(now, queue.last_number)
            if queue.has_ended or now < self._retry_at or not queue.is_spill_due(due, is_urgent):
                return
        self.spill()

    def spill(self) -> None:
        """Move the batch in flight and then the queue to disk, as far as the disk takes them."""
        queue = self._queue
        with queue.disk:
            with queue.lock:
                if queue.has_ended or self._is_spilling:  # a signal handler that logs interrupts its own thread here
                    return
                self._is_spilling = True
                batch = queue.batch
                moving = queue.begin_move()
            written, error = 0, ""
            try:
                in_use = batch.on_disk.segment if batch is not None and batch.on_disk is not None else None
                if batch is not None and in_use is None:
                    in_use = self.spool.put_first([body for _, body in batch.entries])
                    if in_use is not None:
                        queue.move_batch(SpoolRange(in_use, in_use.size, len(batch.entries)))
                    else:
                        error = FULL
                if moving and not error:
                    written, error = self.spool.append([body for _, body in moving], in_use)
            except OSError as refusal:
                error = refusal.strerror or str(refusal)
            finally:
                with queue.lock:
                    self._is_spilling = False
                    is_running = queue.end_move(written)
                    if is_running:
                        self._retry_at = time.monotonic() + _RETRY_SECONDS if error else 0.0
                        self.error = error
            if not is_running:  # the worker did not wait for a slow disk
                return
        name = self.spool.spool.name
        if error == FULL:
            self._notices.send_once(f"spool {name} is full; events wait in memory, then they are dropped (counted)")
        elif error:
            self._notices.send_once(f"spool {name}: {error}; events wait in memory")
        self._on_progress()

    # From disk to the sink

    def adopt(self) -> None:
        """Adopt the next segment that a dead broker left, if it is time to look for one."""
        spool, queue = self.spool, self._queue
        if spool.adopted or time.monotonic() < self.adopt_at:
            return
        with queue.disk:
            is_found = not queue.has_ended and spool.adopt()
            self.adopt_at = 0.0 if is_found else time.monotonic() + _ADOPT_SECONDS

    def next_segment(self) -> Segment | None:
        """Return the segment of the next batch; None if the queue has it.

        Events of this worker alternate with those that were adopted, so that neither delays the other.
        """
        spool, queue = self.spool, self._queue
        has_own = bool(spool.own or queue.entries)
        if spool.adopted and (not has_own or (self._was_own_last and queue.deadline is None)):
            self._was_own_last = False
            return spool.adopted
        self._was_own_last = True
        if spool.own:
            if queue.entries and not self.error and self._is_batch_across():
                self.spill()  # otherwise a batch that waits longer than the window would be delivered in two parts
            return spool.own[0]
        return None

    def _is_batch_across(self) -> bool:
        """Return whether the next batch begins on disk and ends in a queue that holds little more than the rest."""
        most = self._batching.events
        return self.spool.own_events()[0] < most and len(self._queue.entries) <= most

    def read(self, segment: Segment) -> InFlightBatch | None:
        """Read the next batch of a segment and put it in flight; None if the segment can't be read."""
        queue = self._queue
        try:
            bodies, end = segment.read(self._batching.events, self._batching.bytes)
        except OSError as error:
            self._notices.send_once(f"{segment.path} can't be read and is left alone: {error.strerror or error}")
            with queue.lock:
                if segment is self.spool.adopted:
                    self.adopt_at = time.monotonic() + _ADOPT_SECONDS
                else:
                    queue.drop(segment.waiting)
                self.spool.set_aside(segment)
            return None
        deliveries, damaged = _decoded(bodies)
        is_kept = not damaged or self._keep(
            [SinkDeadLetter.new(self._sink, "no event: a damaged line", line, is_event=False) for line in damaged]
        )
        batch = None
        if deliveries:
            on_disk = SpoolRange(segment, end, len(bodies))
            batch = InFlightBatch([(0, delivery.body) for delivery in deliveries], deliveries, 0, on_disk)
        with queue.lock:
            if not is_kept:
                queue.drop(len(damaged))
            queue.take_spooled(batch, len(damaged) if is_kept else 0)
            if batch is None:  # if there are no lines at all, the first one counted events that do not exist
                done = (end, len(bodies)) if bodies else (segment.size, segment.waiting)
                self.spool.advance(segment, *done)
        return batch

    def settle(self, outcome: AttemptOutcome) -> bool:
        """Remove from disk what the sink took or refused of the batch in flight, and keep its dead letters.

        Without room to write the rest to a segment of its own, the whole batch may be delivered again.

        Returns:
            Whether the dead letters are on disk.
        """
        queue = self._queue
        with queue.lock:
            batch = queue.batch
            if batch is None:  # the worker has ended
                return False
            queue.begin_change()
        dead_letters = [
            SinkDeadLetter.new(self._sink, why, batch.entries[n][1]) for n, why in sorted(outcome.dead.items())
        ]
        are_dead_kept = not dead_letters or self._keep(dead_letters)
        on_disk = batch.on_disk
        if on_disk is not None and len(outcome.left) < len(batch.entries):
            if not outcome.left:
                self.spool.advance(*on_disk)
            else:
                bodies = [batch.entries[index][1] for index in outcome.left]
                done = len(batch.entries) - len(bodies)
                if outcome.left[0] == done and on_disk.events == len(batch.entries):  # the rest is in one piece
                    queue.move_batch(on_disk._replace(events=len(bodies)))
                    self.spool.advance(on_disk.segment, on_disk.end - sum(map(len, bodies)) - len(bodies), done)
                    return are_dead_kept
                with suppress(OSError):
                    segment = self.spool.put_first(bodies, after=on_disk.segment)
                    if segment is not None:
                        queue.move_batch(SpoolRange(segment, segment.size, len(bodies)))
                        self.spool.advance(*on_disk)
        return are_dead_kept

    def _keep(self, dead_letters: Sequence[SinkDeadLetter]) -> bool:
        spool = self.spool
        try:
            if spool.dead.add(dead_letters):
                return True
            reason = " is full"
        except OSError as error:
            reason = f": {error.strerror or error}"
        self._notices.send_once(f"spool {spool.spool.name}{reason}; dead letters are counted and not kept")
        return False


def _decoded(bodies: Sequence[bytes]) -> tuple[list[Delivery], list[bytes]]:
    """Return the events, and the damaged lines."""
    deliveries, damaged = [], []
    for body in bodies:
        try:
            deliveries.append(Delivery(decode(body), body))
        except EventError:
            damaged.append(body)
    return deliveries, damaged
