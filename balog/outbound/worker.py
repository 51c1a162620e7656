"""One sink's lane: a bounded queue and a thread; what the sink does not take in time goes to disk, if there is a spool.

An event is in one place at a time: in the queue, in the batch that is under way (the hand), or on disk. Older events
are always ahead: disk, then queue. A hand that has failed once, or hangs, is on disk too, and forgotten there when the
sink has taken it; so what a killed broker leaves comes again by a batch at most. With a spool, an event that the sink
has not taken is on disk within the spool's window (see ``SyncWindow``), whether the sink fails, hangs or is slow.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import msgspec

from balog.backoff import BackoffSequence
from balog.errors import ConfigError
from balog.expressions import Expression
from balog.outbound.attempt import Outcome, as_sink_error, attempt, reason_of
from balog.outbound.in_flight import Entry, Hand, Mark, dead_letters, read, with_unreadable
from balog.outbound.notices import News
from balog.outbound.segment import Segment
from balog.outbound.spool import Appended, LaneSpool
from balog.outbound.stats import Figures
from balog.outbound.sync_window import SyncWindow
from balog.sinks.base import Delivery, Sink, SinkConfig, SinkError, SinkOptions

__all__ = ["Lane"]

MAX_QUEUE_BYTES = 16 * 1024 * 1024
"""What may wait in memory for one sink. With a spool a quarter of it makes the rest go to disk."""

ENTRY_BYTES = 128
"""What an event in the queue takes beside its bytes."""

GRACE = 0.5
"""Seconds past a deadline that a sink has which is at work."""

_NO_PROGRESS = 1.0
_LOOK_SECONDS = 30.0
_SPILL_AGAIN = 1.0
_BATCHES_PER_SPOOL = 4
_NEVER = float("inf")
NO_NUMBER = 1 << 62
"""Greater than any event's number."""


class Lane:
    """Feeds one sink.

    Args:
        config: the sink's; it is built here, and opened by the lane's thread.
        say: takes one line for people.
        patience: seconds, in all, that a caller of ``put`` may be made to wait for room at a sink that works.
        spool: the sink's part of the spool, if there is one.
        should_stop: asked while ``put`` waits because the config says ``block``; True ends the waiting.
        press: called when the queue fills, so that ``keep`` is called soon.
        on_progress: called after events became durable.

    Raises:
        ConfigError: the sink can't be built, or ``where`` is no expression; ``path`` is the field.
    """

    def __init__(
        self,
        config: SinkConfig,
        say: Callable[[str], None],
        *,
        patience: float = 0.0,
        spool: LaneSpool | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        press: Callable[[], None] = lambda: None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.config = config
        self.name = config.name
        self._where = _compile(config.where)
        takes = getattr(config, "takes", None)
        self._takes = None if getattr(type(config), "takes", None) is SinkOptions.takes else takes
        self._sink: Sink = config.build()
        self._batch, self._retry = config.batch, config.retry
        if spool is not None:  # a batch has to fit into a small spool, or no event behind it would get there
            fitting = min(config.batch.bytes, spool.max_bytes // _BATCHES_PER_SPOOL)
            self._batch = msgspec.structs.replace(config.batch, bytes=fitting)
        self._full_events, self._full_bytes = self._batch.events, self._batch.bytes
        self._news = News(self.name, say)
        self._patience = patience
        self._spool = spool
        self._window = SyncWindow(spool.sync) if spool else None
        self._is_spilling = False
        self._before: tuple[int, list[Entry]] | None = None  # while files change: events on disk, and the batch if not
        self._should_stop = should_stop
        self._press = press
        self._on_progress = on_progress

        # For all that follows; never held while a sink or a disk is waited for. ``put`` takes the lock itself, which is
        # faster than to take it by way of the condition.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._put = 0
        self._waiting_puts = 0
        self._queue: deque[Entry] = deque()
        self._moving: deque[Entry] = deque()
        self._bytes = 0
        self._queue_bytes = 0
        self._oldest_at = 0.0
        self._hand: Hand | None = None
        self._until: float | None = None
        self._has_ended = False
        self._is_leaving = False
        self._settled = 0
        self._arrived = 0
        self._lost_at = NO_NUMBER
        self._figures = Figures(spool=spool.place if spool else "")
        self._is_failing = False

        self._disk = threading.RLock()  # who has it may use the spool; taken before ``_changed``
        self._spool_trouble = ""
        self._spill_at = 0.0
        self._look_at = 0.0 if spool else _NEVER
        self._last_was_own = True
        self._is_open = False
        self._is_opening = True  # when nothing waits for it
        self._open_at = 0.0
        self._open_delays = BackoffSequence(config.retry.backoff())
        self._thread = threading.Thread(target=self._run, name=f"balog sink {self.name}", daemon=True)

    # What others ask of a lane

    def start(self, arrived: int = 0) -> None:
        """Begin; events up to this number are no concern of this lane."""
        self._arrived = arrived
        self._thread.start()

    def put(self, delivery: Delivery, number: int) -> None:
        """Queue an event; numbers only grow."""
        self._put += 1
        if (self._where is not None and not self._where.matches(delivery.event)) or (
            self._takes is not None and not self._takes(delivery.event)
        ):
            self._figures.filtered += 1
            self._arrived = number
            return
        body = delivery.body
        size = len(body) + ENTRY_BYTES
        is_pressing = False
        with self._lock:
            if self._has_ended or (self._bytes + size > MAX_QUEUE_BYTES and not self._wait_for_room(size)):
                self._drop(number)
            else:
                queue = self._queue
                queue.append((number, body))
                self._bytes += size
                self._queue_bytes += size
                waiting, filled = len(queue), self._queue_bytes
                if waiting == 1:
                    if self._spool is None or not self._spool.own:
                        self._oldest_at = time.monotonic()
                    self._changed.notify_all()
                elif waiting == self._full_events or filled >= self._full_bytes > filled - size:
                    self._changed.notify_all()
                if self._spool is not None:
                    is_pressing = self._bytes >= MAX_QUEUE_BYTES // 4 > self._bytes - size
            self._arrived = number
        if is_pressing:
            self._press()

    @property
    def durable(self) -> int:
        """The number up to which every event is delivered, left out, or on disk; ``NO_NUMBER`` - 1 when no event is
        missing and no more will come.
        """
        with self._changed:
            first = self._first_in_memory()
            if first == NO_NUMBER and not self._is_leaving:
                first = self._arrived + 1
            return min(first, self._lost_at) - 1

    def _first_in_memory(self) -> int:
        """Return the number of the oldest event that is only in memory; ``NO_NUMBER`` if there is none."""
        if self._hand is not None and self._hand.mark is None:
            return self._hand.entries[0][0]
        for entries in (self._moving, self._queue):
            if entries:
                return entries[0][0]
        return NO_NUMBER

    def figures(self) -> Figures:
        """Count."""
        with self._changed:
            found = msgspec.structs.replace(self._figures, put=self._put)
            in_hand = len(self._hand.entries) if self._hand is not None and self._hand.mark is None else 0
            found.waiting = len(self._queue) + len(self._moving) + in_hand
            found.is_failing = self._is_failing
            if self._spool is not None:
                found.adopted = self._spool.taken_over
                if not self._has_ended:
                    found.spooled = self._on_disk()
            return found

    @property
    def is_running(self) -> bool:
        """Whether the lane's thread is still there."""
        return self._thread.is_alive()

    def leave(self, until: float) -> None:
        """End as with ``drain``, while the others go on."""
        self._is_leaving = True
        self.drain(until)

    def drain(self, until: float) -> None:
        """End by delivering what waits, until that time of the monotonic clock; ask again to change the time."""
        with self._changed:
            self._until = until if self._until is None else min(until, self._until)
            self._changed.notify_all()

    def finish(self) -> None:
        """Wait for the end that ``drain`` has asked for; a sink that hangs is left behind, its events to the spool."""
        began = time.monotonic()
        while self._thread.is_alive():
            until = self._until if self._until is not None else _NEVER
            if self._is_opening and not self._queue:
                until = min(until, began)  # nothing waits for it to open
            self._thread.join(min(max(0.0, until + GRACE - time.monotonic()), 1.0))
            if time.monotonic() >= until + GRACE:
                break
        self._end()

    def keep(self) -> None:
        """Move events to disk where that is due; called every tick, by a thread that no sink can hold up."""
        if self._window is None:
            return
        now = time.monotonic()
        with self._changed:
            first, due = self._first_in_memory(), self._window.due(now, self._arrived)
            is_due = first <= due or self._is_failing or self._bytes >= MAX_QUEUE_BYTES // 4
            if self._has_ended or first == NO_NUMBER or not is_due or now < self._spill_at:
                return
        self._spill()

    def sync(self) -> None:
        """Write what is only in memory to disk now; while the disk refuses, it stays in memory."""
        with self._changed:
            if self._has_ended or self._first_in_memory() == NO_NUMBER or time.monotonic() < self._spill_at:
                return
        self._spill()

    def look(self) -> None:
        """Look for what a dead broker has left, soon."""
        with self._changed:
            self._look_at = min(self._look_at, 0.0) if self._spool else _NEVER
            self._changed.notify_all()

    # The queue's full side

    def _wait_for_room(self, size: int) -> bool:
        self._waiting_puts += 1
        try:
            return self._has_room_soon(size)
        finally:
            self._waiting_puts -= 1
            self._changed.notify_all()

    def _has_room_soon(self, size: int) -> bool:
        while self._bytes + size > MAX_QUEUE_BYTES and self._until is None and not self._has_ended:
            spool = self._spool
            if spool is not None and spool.blocks and self._spool_trouble in ("", "full"):
                if self._should_stop():
                    return False
                if self._spool_trouble:
                    self._news.once(f"spool {spool.place} is full; the stream waits until the sink takes events")
                self._changed.wait(0.1)
                continue
            can_spill = spool is not None and not self._spool_trouble
            if not (self._patience > 0 and (can_spill or not self._is_failing) and self._wait_for_progress(can_spill)):
                return False
        return not self._has_ended

    def _wait_for_progress(self, can_spill: bool) -> bool:
        """Wait until a batch was taken, failed or spooled; False when it takes longer than what works would."""
        settled, began = self._settled, time.monotonic()
        moved = self._changed.wait_for(
            lambda: self._settled != settled or (self._is_failing and not can_spill), min(self._patience, _NO_PROGRESS)
        )
        # A sink without progress is given up; a disk that stalls comes back.
        self._patience = self._patience - (time.monotonic() - began) if moved or can_spill else 0.0
        return moved or (can_spill and self._patience > 0)

    def _drop(self, number: int) -> None:
        self._figures.dropped += 1
        self._figures.lost += 1
        self._lost_at = min(self._lost_at, number)
        if not self._has_ended:
            self._news.once("its queue is full, dropping events (counted) until it takes some")

    # The thread

    def _run(self) -> None:
        try:
            self._open_early()
            while (hand := self._take()) is not None and self._deliver(hand):
                pass
        except Exception as error:  # a mistake of ours; what waits is kept
            self._news.tell(f"its thread ended: {reason_of(error)}")
        finally:
            self._end()
            try:
                self._sink.close()
            except Exception as error:
                self._news.tell(reason_of(error))

    def _take(self) -> Hand | None:
        """Wait for a batch; None means that there will be no more, or no more time."""
        while True:
            if time.monotonic() >= self._open_next():
                self._open_early()
            self._adopt()
            with self._changed:
                if not self._wait_for_work():
                    return None
            with self._disk:
                hand = self._next_hand()
                if hand is not None:
                    return hand

    def _wait_for_work(self) -> bool:
        while True:
            now = time.monotonic()
            if self._has_ended or self._is_over(now):
                return False
            if self._spool is not None and self._spool.adopted:
                return True
            next_at = min(self._look_at, self._open_next())
            if now >= next_at:
                return True
            timeout = next_at - now
            if self._queue or (self._spool is not None and self._spool.own):
                ripe = self._oldest_at + self._batch.age
                if self._until is not None or now >= ripe or self._is_failing or self._is_batch_full():
                    return True
                timeout = min(timeout, ripe - now)
            elif self._until is not None and not self._moving:
                return False
            self._changed.wait(None if timeout == _NEVER else timeout)

    def _is_batch_full(self) -> bool:
        events, size = len(self._queue), self._queue_bytes
        if self._spool is not None:
            for segment in tuple(self._spool.own):
                events += segment.waiting
                size += segment.size - segment.position
        return events >= self._batch.events or size >= self._batch.bytes

    def _ends_in_queue(self, spool: LaneSpool) -> bool:
        """Whether the next batch begins on disk and ends in a queue that holds little more than the rest of it."""
        on_disk = sum(segment.waiting for segment in tuple(spool.own))
        return on_disk < self._batch.events and len(self._queue) <= self._batch.events

    def _is_over(self, now: float) -> bool:
        return self._until is not None and now >= self._until + (0.0 if self._is_failing else GRACE - 0.1)

    def _adopt(self) -> None:
        """Take over what a dead broker left, a segment at a time."""
        spool = self._spool
        if spool is None or spool.adopted or time.monotonic() < self._look_at:
            return
        torn = spool.torn
        with self._disk:
            found = not self._has_ended and spool.adopt()
            with self._changed:
                self._look_at = 0.0 if found else time.monotonic() + _LOOK_SECONDS
        if spool.torn > torn:
            self._news.tell(
                f"spool {spool.place}: a broker was killed while it wrote; {spool.torn - torn} bytes of an event "
                "that it had not finished are left out"
            )

    def _next_hand(self) -> Hand | None:
        """Take the next batch: of this lane's own disk, else of its queue; in turns with what was adopted."""
        spool = self._spool
        if spool is not None:
            has_own = bool(spool.own or self._queue)
            if spool.adopted and (not has_own or (self._last_was_own and self._until is None)):
                self._last_was_own = False
                return self._hand_of(spool, spool.adopted)
            self._last_was_own = True
            if spool.own:
                if self._queue and not self._spool_trouble and self._ends_in_queue(spool):
                    self._spill()  # a batch that waits for longer than the window stays one batch
                return self._hand_of(spool, spool.own[0])
        with self._changed:
            entries: list[Entry] = []
            size = 0
            while self._queue and len(entries) < self._batch.events:
                entry = len(self._queue[0][1]) + ENTRY_BYTES
                if entries and size + entry > self._batch.bytes + ENTRY_BYTES:
                    break
                size += entry
                entries.append(self._queue.popleft())
            if not entries:
                return None
            self._queue_bytes -= size
            self._hand = Hand(entries, size)
            return self._hand

    def _hand_of(self, spool: LaneSpool, segment: Segment) -> Hand | None:
        try:
            bodies, end = segment.read(self._batch.events, self._batch.bytes)
        except OSError as error:
            self._news.once(f"{segment.path} can't be read and is left alone: {error.strerror or error}")
            with self._changed:
                if segment is spool.adopted:
                    spool.taken_over -= segment.waiting
                    self._look_at = time.monotonic() + _LOOK_SECONDS
                else:
                    self._figures.dropped += segment.waiting
                    self._figures.lost += segment.waiting
                spool.set_aside(segment)
            return None
        with self._changed:
            if not bodies:  # its first line counted events that are not there
                spool.advance(segment, segment.size, segment.waiting)
                return None
            self._hand = Hand([(0, body) for body in bodies], 0, Mark(segment, end, len(bodies)))
            return self._hand

    def _deliver(self, hand: Hand) -> bool:
        """Write a batch, again and again while that can help; False when time is up."""
        delays = BackoffSequence(self._retry.backoff())
        batch, unreadable = read(hand.entries)
        while True:
            hand.since = time.monotonic()
            outcome = self._try(batch)
            if outcome.error is not None:
                self._trouble(outcome)
            elif outcome.taken and self._is_failing:
                self._recover()
            if unreadable:
                outcome, unreadable = with_unreadable(outcome, len(hand.entries), unreadable), {}
            if not self._settle(hand, outcome):
                return False
            if not outcome.left:
                return True
            batch = [batch[index] for index in outcome.left]
            if outcome.taken:
                delays.reset()
            if self._spool is not None and hand.mark is None:
                self._spill()
            asked = outcome.error.retry_after if outcome.error else None
            was_draining = self._until is not None
            if not self._pause(delays.next(), asked):
                return False
            self._figures.retries += 1
            if self._until is not None and not was_draining:  # the last attempts come quickly
                delays.reset()

    def _open_early(self) -> None:
        """Open the sink before there is anything for it: who scrapes it finds it, and what a dead run left goes on."""
        self._is_opening = True
        trouble = self._open()
        self._is_opening = False
        if trouble is None:
            if self._is_failing:
                self._recover()
            return
        self._open_at = time.monotonic() + self._open_delays.next() if trouble.retryable else _NEVER
        with self._changed:
            self._figures.reason = reason_of(trouble)
            was_failing, self._is_failing = self._is_failing, True
        if not was_failing and self._news.is_due("trouble"):
            self._news.tell(f"{reason_of(trouble)}; trying again")

    def _open_next(self) -> float:
        """Give the time for another try to open a sink that nothing waits for; a batch makes its own tries."""
        return _NEVER if self._queue or self._until is not None else self._open_at

    def _open(self) -> SinkError | None:
        if not self._is_open:
            try:
                self._sink.open()
            except Exception as error:
                return as_sink_error(error)
            self._is_open = True
            self._open_at = _NEVER
        return None

    def _try(self, batch: list[Delivery]) -> Outcome:
        trouble = self._open()
        if trouble is None:
            return attempt(self._sink.write, batch)
        if trouble.retryable:
            return Outcome(0, {}, list(range(len(batch))), trouble)
        return Outcome(0, dict.fromkeys(range(len(batch)), str(trouble)), [], trouble)

    def _trouble(self, outcome: Outcome) -> None:
        reason = reason_of(outcome.error) if outcome.error else ""
        with self._changed:
            self._figures.reason = reason
            was_failing = self._is_failing
            self._is_failing = bool(outcome.left) or not outcome.taken
        if outcome.left and not was_failing and self._news.is_due("trouble"):
            self._news.tell(f"{reason}; trying again")
        if was_failing and not self._is_failing:
            self._recover()
        if outcome.dead:
            kept = f"refused events are kept in {self._spool.dead.folder}" if self._spool else "not delivered"
            first = next(iter(outcome.dead.values()))
            self._news.once(f"{first}; {kept}", about="dead letters")
        if outcome.unnamed:
            self._news.once(f"{reason}; it does not say which, so they are counted and not kept", about="unnamed")

    def _recover(self) -> None:
        with self._changed:
            self._is_failing = False
        if self._news.was_told("trouble") and self._news.is_due("recovery"):
            self._news.tell("takes events again")

    def _settle(self, hand: Hand, outcome: Outcome) -> bool:
        """Account for what an attempt did; False when the lane has ended meanwhile, by leaving the sink behind."""
        with self._disk:
            with self._changed:
                if self._has_ended:
                    return False
                self._before = self._on_disk(), self._batch_in_memory()
            kept = self._bury(hand, outcome)
            left = [hand.entries[index] for index in outcome.left]
            if hand.mark is not None and self._spool is not None:
                if not left:
                    self._spool.advance(*hand.mark)
                elif len(left) < len(hand.entries):
                    self._keep_left(self._spool, hand, hand.mark, left)
            with self._changed:
                is_ended, self._before = self._before is None, None
                if is_ended:  # the end did not wait for this disk; it has counted the batch as it was before
                    return False
                figures = self._figures
                figures.delivered += outcome.taken
                figures.dead += len(outcome.dead) + outcome.unnamed
                if outcome.unnamed:
                    figures.lost += outcome.unnamed
                    self._lost_at = min(self._lost_at, hand.entries[0][0] or NO_NUMBER)
                if not kept:
                    figures.lost += len(outcome.dead)
                    dead_numbers = [hand.entries[index][0] for index in outcome.dead]
                    self._lost_at = min([number for number in dead_numbers if number] + [self._lost_at])
                hand.entries = left
                if hand.bytes:
                    size = sum(len(body) + ENTRY_BYTES for _, body in left)
                    self._bytes -= hand.bytes - size
                    hand.bytes = size
                if not left:
                    self._hand = None
                self._settled += 1
                self._changed.notify_all()
        self._on_progress()
        return True

    def _bury(self, hand: Hand, outcome: Outcome) -> bool:
        """Put what is refused for good among the dead letters; False when they are not on disk."""
        if not outcome.dead:
            return True
        spool = self._spool
        if spool is None:
            return False
        letters = dead_letters(self.name, hand, outcome)
        try:
            if spool.dead.add(letters):
                self._figures.dead_letters = str(spool.dead.folder)
                return True
            self._news.once(f"spool {spool.place} is full; dead letters are counted and not kept")
        except OSError as error:
            self._news.once(f"spool {spool.place}: {error.strerror or error}; dead letters are counted and not kept")
        return False

    def _keep_left(self, spool: LaneSpool, hand: Hand, mark: Mark, left: list[Entry]) -> None:
        """Have on disk what is left of a batch, and no more; without room for that, all of it may come again."""
        try:
            segment = spool.put_first([body for _, body in left], after=mark.segment)
        except OSError:
            return
        if segment is None:
            return
        hand.mark = Mark(segment, segment.size, len(left))
        spool.advance(*mark)

    def _pause(self, seconds: float, asked: float | None) -> bool:
        """Wait before a retry; False when it can't be made before the deadline. A new deadline means: try at once."""
        end = time.monotonic() + max(seconds, asked or 0.0)
        with self._changed:
            was_draining = self._until is not None
            while not self._has_ended:
                now = time.monotonic()
                if self._until is not None and now < self._until and not was_draining and not asked:
                    return True
                if self._until is not None and end >= self._until:
                    return False
                if now >= end:
                    return True
                self._changed.wait(end - now)
            return False

    # The disk

    def _spill(self) -> None:
        """Move the queue to disk, the hand before it."""
        spool = self._spool
        if spool is None:
            return
        with self._disk:
            with self._changed:
                if self._has_ended or self._is_spilling:  # a signal handler that logs finds its thread in here
                    return
                self._is_spilling = True
                self._before = self._on_disk(), self._batch_in_memory()
                hand = self._hand
                moving = self._moving = self._queue
                self._queue = deque()
                moving_bytes, self._queue_bytes = self._queue_bytes, 0
            taken, trouble = 0, ""
            try:
                if hand is not None and hand.mark is None:
                    trouble = self._spill_hand(spool, hand)
                if moving and not trouble:
                    in_use = hand.mark.segment if hand is not None and hand.mark is not None else None
                    done = spool.append([body for _, body in moving], in_use)
                    taken, trouble = done.taken, "full" if done.is_full else ""
                    self._count_dropped(done.dropped)
            except OSError as error:
                trouble = error.strerror or str(error)
                partly: Appended | None = getattr(error, "appended", None)
                if partly is not None:
                    taken = partly.taken
                    self._count_dropped(partly.dropped)
            finally:
                is_served = self._spilled(moving, moving_bytes, taken, trouble)
            if not is_served:  # the disk took so long that nobody waited for it
                return
        self._say_of_spool(spool, trouble)
        self._on_progress()

    def _spilled(self, moving: deque[Entry], moving_bytes: int, taken: int, trouble: str) -> bool:
        """Put what ``_spill`` could not write back into the queue. Return False when the worker has ended meanwhile."""
        with self._changed:
            self._is_spilling = False
            self._before = None
            if self._has_ended:
                return False
            moved = 0
            for _ in range(taken):
                moved += len(moving.popleft()[1]) + ENTRY_BYTES
            self._bytes -= moved
            if moving:
                moving.extend(self._queue)
                self._queue = moving
            self._moving = deque()
            self._queue_bytes += moving_bytes - moved
            self._spill_at = time.monotonic() + _SPILL_AGAIN if trouble else 0.0
            self._spool_trouble = trouble
            self._settled += 1
            self._changed.notify_all()
            return True

    def _spill_hand(self, spool: LaneSpool, hand: Hand) -> str:
        segment = spool.put_first([body for _, body in hand.entries])
        if segment is None:
            return "full"
        with self._changed:
            hand.mark = Mark(segment, segment.size, len(hand.entries))
            self._bytes -= hand.bytes  # else a batch that fills the memory's bound alone lets nothing more go to disk
            hand.bytes = 0
        return ""

    def _count_dropped(self, count: int) -> None:
        with self._changed:
            if not self._has_ended:
                self._figures.dropped += count
                self._figures.lost += count

    def _say_of_spool(self, spool: LaneSpool, trouble: str) -> None:
        if trouble == "full":
            if not spool.blocks:
                self._news.once(f"spool {spool.place} is full; events wait in memory, then they are dropped (counted)")
        elif trouble:
            self._news.once(f"spool {spool.place}: {trouble}; events wait in memory")

    def _on_disk(self) -> int:
        """Count the events of this process on disk; of a hand that can't be written anew, what is left of it."""
        spool, hand = self._spool, self._hand
        if spool is None:
            return 0
        extra = hand.mark.events - len(hand.entries) if hand is not None and hand.mark is not None else 0
        return spool.waiting - extra

    def _batch_in_memory(self) -> list[Entry]:
        """Return the events of the batch in flight, if they are not on disk."""
        return self._hand.entries if self._hand is not None and self._hand.mark is None else []

    def _end(self) -> None:
        """Stop for good: what is left goes to the spool, or is lost."""
        with self._changed:  # whoever waits for room is let in first, so that a reload loses nothing
            self._changed.wait_for(lambda: not self._waiting_puts, _NO_PROGRESS)
        has_disk = self._disk.acquire(timeout=_NO_PROGRESS)  # a disk may hang, too
        try:
            if has_disk:
                for _ in range(2):  # the second time for what came during the first
                    if self._queue or (self._hand is not None and self._hand.mark is None):
                        self._spill()
            with self._changed:
                if self._has_ended:
                    return
                self._has_ended = True
                # Files change now only if the disk takes too long; then what was before is what counts.
                on_disk, hand = self._before or (self._on_disk(), self._batch_in_memory())
                self._before = None
                left = [*hand, *self._moving, *self._queue]
                self._figures.dropped += len(left)
                self._figures.lost += len(left)
                self._lost_at = min([self._lost_at, *(number for number, _ in left[:1])])
                self._figures.spooled = on_disk
                self._hand = None
                self._queue, self._moving, self._bytes, self._queue_bytes = deque(), deque(), 0, 0
                self._changed.notify_all()
            if has_disk and self._spool is not None:
                self._spool.release()
        finally:
            if has_disk:
                self._disk.release()
        self._on_progress()


def _compile(where: str | None) -> Expression | None:
    if where is None:
        return None
    try:
        return Expression(where)
    except ConfigError as error:
        raise ConfigError(error.reason, error.source, "where") from None
