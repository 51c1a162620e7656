"""The schedule: the one state machine of an engine's run. What is in hand, what runs next, what is to be settled.

::

    held → admitted → tasks at desks → ready → running → through | given up | again | later
                      every task decided → concluded → acked | released | dead-lettered

Every step is taken under one lock, and nothing in here calls a handler, a topic or a ledger. Threads wait on three
conditions of that lock: workers for calls, pollers for room, the settler for what is concluded. The supervising thread
and the event loop's are woken by functions, since they wait for other things too.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from balog.consumers.attempts import MAX_UNEXPLAINED
from balog.consumers.delivery import Call, Delivery, Lane, Task
from balog.consumers.desk import Desk
from balog.consumers.ledger import Entry, Memory
from balog.consumers.verdicts import Kind, Verdict
from balog.topics import Received

__all__ = ["GRACE", "MAX_HELD", "MAX_HELD_BYTES", "Schedule"]

MAX_HELD = 10_000
"""Messages in hand at most: waiting for their turn, for others of their key, for a retry, for their ack."""

MAX_HELD_BYTES = 128 * 1024 * 1024
"""Bytes of their bodies; the receive that goes past it is the last."""

SETTLE_MOST = 10
"""Times the number that is settled without waiting for more: as many are settled together at most."""

SETTLE_AGE = 1.0
"""Seconds that something handled waits for its ack at most."""

GRACE = 5.0
"""Seconds that an ``async def`` handler has to end once it was cancelled."""


class Schedule:
    """What to do next.

    Args:
        lanes: the topics.
        prefetch: tasks that may be ready to run before pollers pause.
        settle_at: concluded messages that are settled without waiting for more.
        wake_main: tells the supervising thread that something changed for it.
        wake_loop: tells the event loop's thread that a call for it is ready.
        memory: how long the ledger remembers calls.

    Attributes:
        stopping: nothing more is begun. Set by anybody, without the lock; ``stop`` does the rest.
        received: messages whose handling began; ``failed``: attempts of consumers at an event that failed.
        running: calls under way; ``hung``: those beyond them that nobody waits for any more.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        *,
        prefetch: int,
        settle_at: int,
        wake_main: Callable[[], object],
        wake_loop: Callable[[], object],
        memory: Memory = "lasting",
    ) -> None:
        self.lanes = lanes
        self._memory = memory
        self.stopping = False
        self.received = self.failed = self.running = self.hung = self.held = 0
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._to_settle = threading.Condition(self._lock)
        self._prefetch = prefetch
        self._settle_at = settle_at
        self._wake_main = wake_main
        self._wake_loop = wake_loop
        self._ready: deque[Call] = deque()
        self._ready_async: deque[Call] = deque()
        self._queued = 0
        self._suspect: Call | None = None
        self._suspects: deque[Call] = deque()
        self._held_bytes = 0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._timed: dict[tuple[Desk, str], float] = {}
        self._overdue: list[Call] = []
        self._concluded: list[Delivery] = []
        self._partial: list[Delivery] = []
        self._settle_since = 0.0
        self._is_drained = False

    # -- intake ---------------------------------------------------------------------------------------------------

    def wait_for_room(self) -> bool:
        """Wait until more may be received; False when no more will be."""
        with self._lock:
            while not self.stopping and (self._queued > self._prefetch or self._is_full()):
                if self._is_full():
                    self._launch_forming(self.lanes)  # or they would wait for events that can't come
                self._room.wait()
            return not self.stopping

    def sleep(self, seconds: float) -> bool:
        """Wait so long, shorter when the run stops; False when it does."""
        end = time.monotonic() + seconds
        with self._lock:
            while not self.stopping and (rest := end - time.monotonic()) > 0:
                self._room.wait(rest)
            return not self.stopping

    def hold(self, lane: Lane, received: Sequence[Received], leased_at: float) -> list[Delivery]:
        """Take messages in hand: from now on their leases are extended.

        Args:
            leased_at: when they were asked for, in monotonic seconds.
        """
        deliveries = [Delivery(lane, message, leased_at) for message in received]
        with self._lock:
            for delivery in deliveries:
                lane.held[delivery.message.receipt] = delivery
                self._held_bytes += len(delivery.message.body)
            self.held += len(deliveries)
            # A queue that is asked for few at a time should have its acks while it is asked for the next ones.
            lane.is_flowing = lane.topic.keeps_groups
        return deliveries

    def admit(self, deliveries: Sequence[Delivery]) -> None:
        """Let deliveries be handled that were read, and whose earlier successes are known."""
        with self._lock:
            for delivery in deliveries:
                self._admit(delivery)
            self._hurry()

    def _admit(self, delivery: Delivery) -> None:
        if self.stopping:
            self._leave(delivery)
            return
        if delivery.event is not None:
            first = delivery.lane.in_hand.setdefault(delivery.id, delivery)
            if first is not delivery:
                first.followers.append(delivery)
                return
        wanted = delivery.tasks
        delivery.tasks = [task for task in wanted if self._is_open(task)]
        delivery.open = len(delivery.tasks)
        for task in delivery.tasks:
            self._submit(task)
        if not delivery.tasks:
            self._note_begun(delivery)
            delivery.is_duplicate = bool(wanted) and not delivery.gave_up
            self._conclude(delivery)

    def _is_open(self, task: Task) -> bool:
        delivery, desk = task.delivery, task.desk
        if desk.name in delivery.done or desk.name in delivery.gave_up:
            return False
        attempts, calls = delivery.message.attempts, task.calls
        # One call that did not end may have run beside the one that ended the process: it gets another one, alone.
        is_spent = calls.spent >= desk.limit and calls.unended > 1
        if is_spent or (self._memory != "lasting" and attempts > desk.limit + MAX_UNEXPLAINED):
            what = f"{calls.unended} of {calls.spent} calls" if is_spent else f"{attempts - 1} deliveries"
            reason = f"{what} came to no end: the handler may kill its process, or never return"
            delivery.give_up(desk.name, f"{desk.name}: {reason}")
            return False
        unexplained = delivery.unexplained
        task.is_suspect = bool(unexplained or calls.unended)
        task.runs_alone = bool(unexplained >= desk.limit or calls.unended)
        return True

    def _is_full(self) -> bool:
        return self.held >= MAX_HELD or self._held_bytes >= MAX_HELD_BYTES

    # -- from tasks to calls --------------------------------------------------------------------------------------

    def _submit(self, task: Task) -> None:
        self._make_ready(task.desk.submit(task))
        self._wait_for_company(task.desk)

    def _wait_for_company(self, desk: Desk) -> None:
        if desk.is_forming:
            self._plan(desk, "batch", desk.forming_due, self._launch_due)

    def _launch_forming(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            for desk in lane.all_desks:
                self._make_ready(desk.launch())

    def _launch_due(self, desk: Desk) -> None:
        if desk.is_forming and desk.forming_due <= time.monotonic():
            self._make_ready(desk.launch())
        self._wait_for_company(desk)

    def _make_ready(self, calls: Sequence[Call]) -> None:
        if self.stopping:
            return
        for call in calls:
            self._queued += len(call.tasks)
            if call.desk.is_async:
                self._ready_async.append(call)
                if len(self._ready_async) == 1:
                    self._wake_loop()
            else:
                self._ready.append(call)
                self._work.notify()

    def take(self, is_retired: Callable[[], bool]) -> Call | None:
        """Wait for a call to run in a worker thread; None when there will be no more for it."""
        with self._lock:
            while not (self.stopping or is_retired()):
                call = self._next(self._ready)
                if call is not None:
                    return call
                self._work.wait()
            return None

    def take_async(self) -> Call | None:
        """Give a call to run in the event loop; None when there is none now."""
        with self._lock:
            return self._next(self._ready_async)

    def _next(self, ready: deque[Call]) -> Call | None:
        while ready and not self.stopping:
            call = ready.popleft()
            desk = call.desk
            self._unqueue(len(call.tasks))
            if desk.cap is not None and len(desk.running) >= desk.cap:
                desk.over_cap.append(call)
                continue
            if call.runs_alone:
                if self._suspect is not None:
                    self._suspects.append(call)
                    continue
                self._suspect = call
            self._begin(desk, call)
            return call
        return None

    def _unqueue(self, tasks: int) -> None:
        before = self._queued
        self._queued = before - tasks
        if before > self._prefetch >= self._queued:
            self._room.notify_all()

    def _begin(self, desk: Desk, call: Call) -> None:
        desk.running[call] = None
        self.running += 1
        for task in call.tasks:
            task.delivery.running += 1
            self._note_begun(task.delivery)
        if desk.timeout is not None:
            call.deadline = time.monotonic() + desk.timeout
            self._plan(desk, "deadline", call.deadline, self._check_deadlines)

    def _note_begun(self, delivery: Delivery) -> None:
        if not delivery.begun:
            delivery.begun = True
            self.received += 1

    # -- what calls come to ---------------------------------------------------------------------------------------

    def finish(self, call: Call, verdicts: Sequence[Verdict]) -> None:
        """Take what a call came to; nothing changes when it was given up before."""
        with self._lock:
            if call.is_over:
                self.hung -= 1
            else:
                self._finish(call, verdicts)

    def abandon(self, call: Call, verdicts: Sequence[Verdict]) -> bool:
        """Take what a call comes to without its end; False when it ended in the meantime."""
        with self._lock:
            if call.is_over or call not in call.desk.running:
                return False
            call.is_over = True
            self.hung += 1
            self._finish(call, verdicts)
            return True

    def _finish(self, call: Call, verdicts: Sequence[Verdict]) -> None:
        desk = call.desk
        del desk.running[call]
        self.running -= 1
        again: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            task = verdict.task
            task.delivery.running -= 1
            failed = again.setdefault(task.key, []) if task.key is not None else None
            if self._apply(verdict):
                if failed is not None:
                    failed.append(verdict)
                elif not self.stopping:
                    self._add_timer(time.monotonic() + verdict.delay, partial(self._submit, task))
        if self.stopping:
            for verdict in verdicts:
                self._leave(verdict.task.delivery)
            if not self.running:
                self._wake_main()
        else:
            for key, failed in again.items():
                self._step(desk, key, failed)
            if desk.over_cap:
                self._resume(desk.over_cap.popleft())
            if call is self._suspect:
                self._suspect = None
                if self._suspects:
                    self._resume(self._suspects.popleft())
        self._hurry()

    def _resume(self, call: Call) -> None:
        """Let a call that had to wait be the next."""
        self._queued += len(call.tasks)
        if call.desk.is_async:
            self._ready_async.appendleft(call)
            self._wake_loop()
        else:
            self._ready.appendleft(call)
            self._work.notify()

    def _apply(self, verdict: Verdict) -> bool:
        """Note what became of a task; True when it stays here, to be tried again."""
        task, kind, delay, reason, error, _ = verdict
        delivery = task.delivery
        if kind is Kind.DONE:
            delivery.succeed(task.desk.name)
        elif kind is Kind.LATER:
            task.waits += error is not None
            return True
        else:
            self.failed += 1
            if kind is Kind.DEAD:
                delivery.give_up(task.desk.name, reason)
            else:
                delivery.has_failed = True
                delivery.note_calls(task.desk.name, task.calls_after(failed=True))
                if task.key is not None:
                    self._note_partial(delivery)
                    return True
                delivery.delay = delay if delivery.delay is None else max(delay, delivery.delay)
        delivery.open -= 1
        if not delivery.open:
            self._conclude(delivery)
        elif delivery.entries:
            self._note_partial(delivery)
        return False

    def _step(self, desk: Desk, key: str, failed: Sequence[Verdict]) -> None:
        """Let a key go on: with those that failed, once the first of them may be tried again."""
        self._make_ready(desk.step(key, [verdict.task for verdict in failed]))
        if failed:
            self._add_timer(time.monotonic() + failed[0].delay, partial(self._unblock, desk, key))
        self._wait_for_company(desk)

    def _unblock(self, desk: Desk, key: str) -> None:
        if not self.stopping:
            self._make_ready(desk.unblock(key))
            self._wait_for_company(desk)

    # -- time -----------------------------------------------------------------------------------------------------

    def run_timers(self) -> float | None:
        """Do what is due and give the seconds until something else is; None when nothing is planned."""
        with self._lock:
            while self._timers:
                rest = self._timers[0][0] - time.monotonic()
                if rest > 0:
                    return rest
                heapq.heappop(self._timers)[2]()
            return None

    def take_overdue(self) -> list[Call]:
        """Give the calls whose time ran out since this was last asked."""
        with self._lock:
            overdue, self._overdue = self._overdue, []
            return overdue

    def allow(self, call: Call, seconds: float) -> None:
        """Give a call that was asked to end so much time for it."""
        with self._lock:
            call.is_expired = True
            call.deadline = time.monotonic() + seconds
            self._plan(call.desk, "deadline", call.deadline, self._check_deadlines)

    def _add_timer(self, due: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (due, next(self._numbers), action))
        if self._timers[0][0] == due:
            self._wake_main()

    def _plan(self, desk: Desk, what: str, due: float, action: Callable[[Desk], None]) -> None:
        """Have something done at a desk, unless it will be looked at for that by then anyway."""
        if due < self._timed.get((desk, what), math.inf):
            self._timed[desk, what] = due
            self._add_timer(due, partial(self._look, desk, what, due, action))

    def _look(self, desk: Desk, what: str, due: float, action: Callable[[Desk], None]) -> None:
        if self._timed.get((desk, what)) == due:  # else an earlier look came between, and has planned the next
            del self._timed[desk, what]
            action(desk)

    def _check_deadlines(self, desk: Desk) -> None:
        now = time.monotonic()
        self._overdue += [call for call in desk.running if call.deadline <= now]
        later = [call.deadline for call in desk.running if call.deadline > now]
        if later:
            self._plan(desk, "deadline", min(later), self._check_deadlines)

    # -- settling -------------------------------------------------------------------------------------------------

    def _conclude(self, delivery: Delivery) -> None:
        if not delivery.is_concluded:
            delivery.is_concluded = True
            self._concluded.append(delivery)
            if len(self._concluded) == 1:
                self._start_clock(not self._partial)
            elif len(self._concluded) % self._settle_at == 0:
                self._to_settle.notify()

    def _note_partial(self, delivery: Delivery) -> None:
        """Have a success recorded soon, since its message may be in hand for long."""
        self._partial.append(delivery)
        if len(self._partial) == 1:
            self._start_clock(not self._concluded)

    def _start_clock(self, is_first: bool) -> None:
        if is_first:
            self._settle_since = time.monotonic()
            self._to_settle.notify()

    def _hurry(self) -> None:
        """Don't let acks wait for company when there is none to come, or no room for it."""
        if self._concluded and self._is_quiet():
            self._to_settle.notify()

    def _is_quiet(self) -> bool:
        if self.running or self._queued:
            return self._is_full()
        return not any(lane.is_flowing for lane in self.lanes) or self._is_full()

    def ebb(self, lane: Lane, is_last: bool) -> None:
        """Take note that a topic has no more at the moment; where that ends the run, no batch waits for more."""
        with self._lock:
            lane.is_flowing = False
            if is_last:
                self._launch_forming([lane])
            self._hurry()

    def wait_to_settle(self) -> tuple[list[Delivery], list[Entry]] | None:
        """Wait for something to settle: what is concluded, and what the ledger should know of the rest by now."""
        with self._lock:
            while True:
                if self._concluded or self._partial:
                    rest = self._settle_since + SETTLE_AGE - time.monotonic()
                    if rest <= 0 or self.stopping or self._is_batch():
                        limit = self._settle_at * SETTLE_MOST
                        concluded, self._concluded = self._concluded[:limit], self._concluded[limit:]
                        if self._concluded:
                            self._to_settle.notify()
                        return concluded, self._take_partial()
                    self._to_settle.wait(rest)
                elif self._is_drained:
                    return None
                else:
                    self._to_settle.wait()

    def _take_partial(self) -> list[Entry]:
        entries = []
        for delivery in self._partial:
            if not delivery.is_concluded:  # one that is has them recorded with the rest
                entries += delivery.entries
                delivery.entries = []
        self._partial = []
        return entries

    def _is_batch(self) -> bool:
        settled = len(self._concluded)
        return settled >= self._settle_at or (settled > 0 and self._is_quiet())

    def settle_again(self, concluded: Sequence[Delivery]) -> None:
        """Put back what could not be settled."""
        with self._lock:
            if not (self._concluded or self._partial):
                self._settle_since = time.monotonic()
            self._concluded[:0] = concluded

    def settled(self, deliveries: Sequence[Delivery]) -> None:
        """Let go of deliveries that the topic took back; other copies of their events get their turn."""
        with self._lock:
            was_full = self._is_full()
            for delivery in deliveries:
                lane = delivery.lane
                if lane.held.pop(delivery.message.receipt, None) is delivery:
                    self.held -= 1
                    self._held_bytes -= len(delivery.message.body)
                if lane.in_hand.get(delivery.id) is delivery:
                    del lane.in_hand[delivery.id]
                    self._follow(delivery)
                delivery.tasks = []  # they point back: a circle would be left to the garbage collector
            if was_full and not self._is_full():
                self._room.notify_all()
            if not self.held:
                self._wake_main()

    def _follow(self, delivery: Delivery) -> None:
        if delivery.followers:
            heir, *others = delivery.followers
            heir.followers += others
            ours, theirs = delivery.message.generation, heir.message.generation
            if ours.replay >= theirs.replay:
                heir.done |= delivery.done
            if ours >= theirs:
                heir.gave_up.update(delivery.gave_up)
                heir.calls.update(delivery.calls)
            self._admit(heir)

    def in_hand(self, lane: Lane, older_than: float) -> list[Delivery]:
        """Give what is held of a topic and was leased before that moment (monotonic seconds)."""
        with self._lock:
            return [delivery for delivery in lane.held.values() if delivery.leased_at < older_than]

    # -- stopping -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Begin nothing more and conclude all that is not running: it is given back."""
        with self._lock:
            self.stopping = True
            self._ready.clear()
            self._ready_async.clear()
            self._suspects.clear()
            self._queued = 0
            for desk in self._desks():
                desk.clear()
            for lane in self.lanes:
                for delivery in lane.held.values():
                    self._leave(delivery)
            self._work.notify_all()
            self._room.notify_all()
            self._to_settle.notify_all()

    def close(self) -> int:
        """Wait no longer for calls that are under way; give their number."""
        with self._lock:
            calls = [call for desk in self._desks() for call in desk.running]
            for call in calls:
                call.is_over = True
                self.hung += 1
                for task in call.tasks:
                    task.delivery.running = 0
                    task.delivery.has_failed = True
                    task.is_suspect = False
                    task.delivery.note_calls(call.desk.name, task.calls_unended)
                    self._leave(task.delivery)
                call.desk.running.clear()
            self.running = 0
            return len(calls)

    def end(self) -> None:
        """Let the settler end once nothing is left to settle."""
        with self._lock:
            self._is_drained = True
            self._to_settle.notify_all()

    def _leave(self, delivery: Delivery) -> None:
        if not (delivery.is_concluded or delivery.running):
            delivery.is_left = True
            for task in delivery.tasks:
                name = task.desk.name
                if task.is_suspect and task.waits and name not in delivery.done and name not in delivery.gave_up:
                    delivery.note_calls(name, task.calls)  # should the ledger have missed the end of its last call
            self._conclude(delivery)

    def _desks(self) -> list[Desk]:
        return [desk for lane in self.lanes for desk in lane.all_desks]
