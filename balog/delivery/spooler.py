"""The way of events between a worker's memory and its part of the spool."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from balog.common.errors import EventError
from balog.delivery.attempt import AttemptOutcome
from balog.delivery.dead_letters import SinkDeadLetter
from balog.delivery.event_queue import NO_EVENT, Entry
from balog.delivery.notices import ThrottledNotices
from balog.delivery.segment import Segment
from balog.delivery.spool import FULL, SinkSpool
from balog.delivery.sync_window import SyncWindow
from balog.delivery.worker_state import InFlightBatch, SpoolRange, WorkerState
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
        spool: the sink's part of the spool; used only while ``state.disk`` is held.
        error: why the last write failed: ``FULL``, or the disk's error; "" if it succeeded.
        adopt_at: when to look next for segments that a dead broker left, by the monotonic clock.
    """

    def __init__(
        self,
        sink: str,
        spool: SinkSpool,
        state: WorkerState,
        batching: Batching,
        notices: ThrottledNotices,
        on_progress: Callable[[], None],
    ) -> None:
        self.spool = spool
        self.error = ""
        self.adopt_at = 0.0
        self._sink = sink
        self._state = state
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
        state, now = self._state, time.monotonic()
        with state.changed:
            first, due = state.first_in_memory(), self._window.due(now, state.last_number)
            is_due = first <= due or is_urgent or state.queue.is_spill_due
            if state.has_ended or first == NO_EVENT or not is_due or now < self._retry_at:
                return
        self.spill()

    def spill(self) -> None:
        """Move the batch in flight and then the queue to disk, as far as the disk takes them."""
        state = self._state
        with state.disk:
            with state.changed:
                if state.has_ended or self._is_spilling:  # a signal handler that logs interrupts its own thread here
                    return
                self._is_spilling = True
                state.begin_change(self.events_on_disk())
                batch = state.batch
                moving = state.queue.begin_move()
            written, error = 0, ""
            try:
                if batch is not None and batch.on_disk is None:
                    error = self._write_batch(batch)
                if moving and not error:
                    in_use = batch.on_disk.segment if batch is not None and batch.on_disk is not None else None
                    written, error = self.spool.append([body for _, body in moving], in_use)
            except OSError as refusal:
                error = refusal.strerror or str(refusal)
            finally:
                is_running = self._end_spill(written, error)
            if not is_running:  # the worker did not wait for a slow disk
                return
        self._notify(error)
        self._on_progress()

    def _write_batch(self, batch: InFlightBatch) -> str:
        segment = self.spool.put_first([body for _, body in batch.entries])
        if segment is None:
            return FULL
        with self._state.changed:
            batch.on_disk = SpoolRange(segment, segment.size, len(batch.entries))
            # Otherwise a batch as large as the queue's limit would keep all other events from the disk.
            self._state.queue.memory -= batch.bytes
            batch.bytes = 0
        return ""

    def _end_spill(self, written: int, error: str) -> bool:
        """Update the queue after a write. Return False if the worker has ended meanwhile."""
        state = self._state
        with state.changed:
            self._is_spilling = False
            if not state.end_change():
                return False
            state.queue.end_move(written)
            self._retry_at = time.monotonic() + _RETRY_SECONDS if error else 0.0
            self.error = error
            state.progress += 1
            state.changed.notify_all()
            return True

    def _notify(self, error: str) -> None:
        name = self.spool.spool.name
        if error == FULL:
            self._notices.send_once(f"spool {name} is full; events wait in memory, then they are dropped (counted)")
        elif error:
            self._notices.send_once(f"spool {name}: {error}; events wait in memory")

    # From disk to the sink

    def adopt(self) -> None:
        """Adopt the next segment that a dead broker left, if it is time to look for one."""
        spool, state = self.spool, self._state
        if spool.adopted or time.monotonic() < self.adopt_at:
            return
        with state.disk:
            is_found = not state.has_ended and spool.adopt()
            with state.changed:
                self.adopt_at = 0.0 if is_found else time.monotonic() + _ADOPT_SECONDS

    def next_segment(self) -> Segment | None:
        """Return the segment of the next batch; None if the queue has it.

        Events of this worker alternate with those that were adopted, so that neither delays the other.
        """
        spool, queue = self.spool, self._state.queue
        has_own = bool(spool.own or queue.entries)
        if spool.adopted and (not has_own or (self._was_own_last and self._state.deadline is None)):
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
        return self.events_waiting()[0] < most and len(self._state.queue.entries) <= most

    def read(self, segment: Segment) -> InFlightBatch | None:
        """Read the next batch of a segment and put it in flight; None if the segment can't be read."""
        state = self._state
        try:
            bodies, end = segment.read(self._batching.events, self._batching.bytes)
        except OSError as error:
            self._notices.send_once(f"{segment.path} can't be read and is left alone: {error.strerror or error}")
            with state.changed:
                if segment is self.spool.adopted:
                    self.spool.adopted_events -= segment.waiting
                    self.adopt_at = time.monotonic() + _ADOPT_SECONDS
                else:
                    state.drop(segment.waiting)
                self.spool.set_aside(segment)
            return None
        deliveries, damaged = _decoded(bodies)
        is_kept = not damaged or self._keep(
            [SinkDeadLetter.new(self._sink, "no event: a damaged line", line, is_event=False) for line in damaged]
        )
        with state.changed:
            if is_kept:
                state.stats.dead += len(damaged)
            else:
                state.drop(len(damaged))
            if not deliveries:  # if there are no lines at all, the first one counted events that do not exist
                done = (end, len(bodies)) if bodies else (segment.size, segment.waiting)
                self.spool.advance(segment, *done)
                return None
            entries = [(0, body) for _, body in deliveries]
            state.batch = InFlightBatch(entries, 0, SpoolRange(segment, end, len(bodies)), deliveries)
            return state.batch

    def keep_dead_letters(self, batch: InFlightBatch, outcome: AttemptOutcome) -> bool:
        """Write the events that the sink refused for good to the dead letters. Return False if that fails."""
        return self._keep(
            [SinkDeadLetter.new(self._sink, why, batch.entries[n][1]) for n, why in sorted(outcome.dead.items())]
        )

    def _keep(self, dead_letters: Sequence[SinkDeadLetter]) -> bool:
        spool = self.spool
        try:
            if spool.dead.add(dead_letters):
                self._state.stats.dead_letters = str(spool.dead.folder)
                return True
            reason = " is full"
        except OSError as error:
            reason = f": {error.strerror or error}"
        self._notices.send_once(f"spool {spool.spool.name}{reason}; dead letters are counted and not kept")
        return False

    def settle(self, batch: InFlightBatch, left: list[Entry]) -> None:
        """Remove from disk the events of a batch that need not be delivered again.

        Without room to write ``left`` to a segment of its own, the whole batch may be delivered again.
        """
        on_disk = batch.on_disk
        if on_disk is None or len(left) == len(batch.entries):
            return
        if left:
            try:
                segment = self.spool.put_first([body for _, body in left], after=on_disk.segment)
            except OSError:
                return
            if segment is None:
                return
            batch.on_disk = SpoolRange(segment, segment.size, len(left))
        self.spool.advance(*on_disk)

    # Counts

    def events_waiting(self) -> tuple[int, int]:
        """Return how many events wait in the worker's own segments, and their bytes."""
        segments = tuple(self.spool.own)
        return sum(each.waiting for each in segments), sum(each.size - each.position for each in segments)

    def events_on_disk(self) -> int:
        """Count the events of this process on disk, without those of the batch in flight that are settled."""
        batch = self._state.batch
        settled = batch.on_disk.events - len(batch.entries) if batch is not None and batch.on_disk is not None else 0
        return self.spool.waiting - settled


def _decoded(bodies: Sequence[bytes]) -> tuple[list[Delivery], list[bytes]]:
    """Return the events, and the damaged lines."""
    deliveries, damaged = [], []
    for body in bodies:
        try:
            deliveries.append(Delivery(decode(body), body))
        except EventError:
            damaged.append(body)
    return deliveries, damaged
