"""The schedule: the one state machine of an engine's run.

::

    held → admitted → tasks in consumer queues → ready → running → succeeded | failed | postponed | dead
                      every task decided → concluded → acked | released | dead-lettered

Every transition happens under one lock, and none of them calls a handler, a topic or a ledger. The parts share the
lock: consumer queues form batches and keep order, ``ReadyCalls`` feeds the workers, ``SettlementQueue`` feeds the
settler, ``Timers`` holds retries, batch ages and deadlines.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from balog.consumers.queueing.consumer_queue import ConsumerQueue
from balog.consumers.queueing.delivery import HandlerCall, HandlerTask, MessageDelivery, Subscription
from balog.consumers.queueing.in_flight import Admission, InFlightMessages
from balog.consumers.queueing.ready_calls import ReadyCalls
from balog.consumers.queueing.settlement_queue import SettlementQueue
from balog.consumers.queueing.task_results import Disposition, TaskResult
from balog.consumers.queueing.timers import Timers
from balog.consumers.stats import EngineStats
from balog.topics import Received

GRACE = 5.0
"""Seconds that an ``async def`` handler has to end after it was cancelled."""

HORIZON = 0.5
"""Seconds of calls for which messages are received ahead: a receive takes far less."""

MANY_CALLS = 10
"""Calls a second and thread, below which each is settled at once instead of together with others."""


class Schedule:
    """Decides what runs next.

    Args:
        subscriptions: the topics.
        stats: counts messages whose handling began, and failed attempts.
        threads: worker threads for plain handlers.
        batch: messages per receive.
        prefetch: messages that wait here for a call to end; None for as many as are called within ``HORIZON``.
        settle_at: concluded messages that are settled without waiting for more.
        wake_main: wakes the main thread, which runs timers and deadlines.
        wake_loop: wakes the event loop's thread, because a call for it is ready.
        has_ledger: a ledger remembers calls.
        admission: limits the messages in flight further.

    Attributes:
        stopping: no further call begins. Any thread may set it without the lock; ``stop`` does the rest.
        running: calls that are running.
        hung: further calls, which took longer than their timeout and have not returned.
        settlements: what the settler settles.
    """

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        stats: EngineStats,
        *,
        threads: int,
        batch: int,
        prefetch: int | None,
        settle_at: int,
        wake_main: Callable[[], object],
        wake_loop: Callable[[], object],
        has_ledger: bool = True,
        admission: Admission | None = None,
    ) -> None:
        self.subscriptions = subscriptions
        self._has_ledger = has_ledger
        self.stopping = False
        self.received = self.failed = self.running = self.hung = 0
        self._stats = stats
        self._threads = threads
        self._batch = batch
        self._prefetch = prefetch
        self._call_seconds: float | None = None  # a moving average; an event that no handler wants takes none
        self._in_calls = 0
        self._wake_at = -1
        self._wake_main = wake_main
        self._lock = threading.Lock()
        self._in_flight = InFlightMessages(self._lock, batch, admission)
        self._queues = {
            each: ConsumerQueue(each) for subscription in subscriptions for each in subscription.all_handlers
        }
        self._ready = ReadyCalls(self._lock, self._queues, wake_loop)
        self._timers = Timers(wake_main)
        self._overdue: list[HandlerCall] = []
        self.settlements = SettlementQueue(self._lock, settle_at, self._is_quiet, lambda: self.stopping)

    # -- receiving ----------------------------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """The number of messages in flight."""
        return self._in_flight.count

    def wait_for_room(self, subscription: Subscription) -> int:
        """Wait until more messages may be received and return how many; 0 when the run stops.

        That is as many as can be called now, and a few more where calls are short: other processes may be free.
        """
        with self._lock:
            while not self.stopping:
                capacity = subscription.capacity(self._threads)
                ahead = self._ahead(capacity)
                room = capacity + ahead - self._pending
                if room <= ahead // 2:
                    self._wake_at = max(self._wake_at, capacity + ahead - ahead // 2 - 1)
                    self._in_flight.changed.wait()
                    continue
                allowed, rest = self._in_flight.room()
                if allowed:
                    return min(room, allowed)
                if rest is None or not (self.running or self._ready.tasks):
                    self._launch_forming(self.subscriptions)  # they would wait for events that can't come
                self.settlements.flush_now()
                self._in_flight.changed.wait(rest)
            return 0

    @property
    def _pending(self) -> int:
        return self._ready.tasks + self._in_calls

    def _ahead(self, capacity: int) -> int:
        if self._prefetch is not None:
            return self._prefetch
        if self._call_seconds is None:
            return 0
        return min(int(HORIZON * capacity / max(self._call_seconds, 1e-6)), max(2 * self._batch, capacity))

    def _note_duration(self, seconds: float) -> None:
        before = self._call_seconds
        self._call_seconds = seconds if before is None else before + (seconds - before) / 5

    def _wake_pollers(self) -> None:
        if self._pending <= self._wake_at:
            self._wake_at = -1
            self._in_flight.changed.notify_all()

    def sleep(self, seconds: float) -> bool:
        """Wait for ``seconds``, or until the run stops; False when it does."""
        with self._lock:
            return not self._in_flight.changed.wait_for(lambda: self.stopping, seconds)

    def hold(self, subscription: Subscription, received: Sequence[Received], until: float) -> list[MessageDelivery]:
        """Add messages to those in flight: from now on their leases are extended.

        Args:
            until: the end of their leases, in seconds of ``uptime``.
        """
        with self._lock:
            deliveries = self._in_flight.add(subscription, received, until)
            # A queue that returns few messages per call should get its acks while the next ones are requested.
            subscription.is_flowing = subscription.topic.keeps_groups
        return deliveries

    def admit(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Start handling deliveries that are decoded and looked up in the ledger."""
        with self._lock:
            for delivery in deliveries:
                self._admit(delivery)
            self.settlements.flush_now()

    def note_empty(self, subscription: Subscription, is_last: bool) -> None:
        """Note that a topic has no more messages now.

        Args:
            is_last: an empty topic ends the run, so batches do not wait for more events.
        """
        with self._lock:
            subscription.is_flowing = False
            if is_last:
                self._launch_forming([subscription])
            self.settlements.flush_now()

    def _admit(self, delivery: MessageDelivery) -> None:
        if self.stopping:
            self._leave(delivery)
            return
        if delivery.event is not None:
            first = delivery.subscription.by_event.setdefault(delivery.id, delivery)
            if first is not delivery:
                first.followers.append(delivery)
                return
        wanted = delivery.tasks
        delivery.tasks = [task for task in wanted if task.is_open(self._has_ledger)]
        delivery.open = len(delivery.tasks)
        for task in delivery.tasks:
            self._submit(task)
        if not delivery.tasks:
            self._note_begun(delivery)
            self._note_duration(0.0)
            delivery.is_duplicate = bool(wanted) and not delivery.gave_up
            self.settlements.add(delivery)

    def _is_quiet(self) -> bool:
        """Return whether no further delivery can be concluded soon."""
        if self.running or self._ready.tasks:
            is_slow = (self._call_seconds or 0.0) > self._threads / MANY_CALLS
            return is_slow or self._in_flight.is_full
        return not any(subscription.is_flowing for subscription in self.subscriptions) or self._in_flight.is_full

    # -- from tasks to calls ------------------------------------------------------------------------------------------

    def _submit(self, task: HandlerTask) -> None:
        queue = self._queues[task.handler]
        self._make_ready(queue.submit(task))
        self._plan_launch(queue)

    def _plan_launch(self, queue: ConsumerQueue) -> None:
        if queue.is_forming:
            self._timers.add_once((queue, "batch"), queue.forming_due, partial(self._launch_due, queue))

    def _launch_due(self, queue: ConsumerQueue) -> None:
        if queue.is_forming and queue.forming_due <= time.monotonic():
            self._make_ready(queue.launch())
        self._plan_launch(queue)

    def _launch_forming(self, subscriptions: Sequence[Subscription]) -> None:
        for subscription in subscriptions:
            for handler in subscription.all_handlers:
                self._make_ready(self._queues[handler].launch())

    def _make_ready(self, calls: Sequence[HandlerCall]) -> None:
        if not self.stopping:
            for call in calls:
                self._ready.add(call)

    def take(self, is_retired: Callable[[], bool]) -> HandlerCall | None:
        """Wait for a call to run in a worker thread; None when the thread should end."""
        with self._lock:
            while not (self.stopping or is_retired()):
                if (call := self._begin(is_async=False)) is not None:
                    return call
                self._ready.changed.wait()
            return None

    def take_async(self) -> HandlerCall | None:
        """Return a call to run in the event loop; None when there is none now."""
        with self._lock:
            return None if self.stopping else self._begin(is_async=True)

    def _begin(self, is_async: bool) -> HandlerCall | None:
        call = self._ready.take(is_async)
        if call is None:
            self._wake_pollers()  # a call waits for another one's end, which leaves room
            return None
        queue = self._queues[call.handler]
        queue.running[call] = None
        self.running += 1
        self._in_calls += len(call.tasks)
        for task in call.tasks:
            task.delivery.running += 1
            self._note_begun(task.delivery)
        if call.handler.timeout is not None:
            self._set_deadline(call, call.handler.timeout)
        return call

    def _note_begun(self, delivery: MessageDelivery) -> None:
        if not delivery.begun:
            delivery.begun = True
            self._stats.received += 1

    # -- results of calls ---------------------------------------------------------------------------------------------

    def finish(self, call: HandlerCall, results: Sequence[TaskResult]) -> None:
        """Apply the results of a call; does nothing for a call that was abandoned."""
        with self._lock:
            if call.is_over:
                self.hung -= 1
            else:
                self._finish(call, results)

    def abandon(self, call: HandlerCall, results: Sequence[TaskResult]) -> bool:
        """Apply the results of a call that has not ended; False when it ended in the meantime."""
        with self._lock:
            if call.is_over or call not in self._queues[call.handler].running:
                return False
            call.is_over = True
            self.hung += 1
            self._finish(call, results)
            return True

    def _finish(self, call: HandlerCall, results: Sequence[TaskResult]) -> None:
        queue = self._queues[call.handler]
        del queue.running[call]
        self.running -= 1
        self._in_calls -= len(results)
        self._note_duration(time.perf_counter() - call.started if call.started else 0.0)
        retries: dict[str, list[TaskResult]] = {}
        for result in results:
            task = result.task
            task.delivery.running -= 1
            of_key = retries.setdefault(task.key, []) if task.key is not None else None
            if self._apply(result):
                if of_key is not None:
                    of_key.append(result)
                elif not self.stopping:
                    self._timers.add(time.monotonic() + result.delay, partial(self._submit, task))
        if self.stopping:
            for result in results:
                self._leave(result.task.delivery)
            if not self.running:
                self._wake_main()
        else:
            for key, of_key in retries.items():
                self._end_call(queue, key, of_key)
            self._ready.end(call)
        if self._in_flight.is_held_back:
            self._in_flight.changed.notify_all()
        self._wake_pollers()
        self.settlements.flush_now()

    def _apply(self, result: TaskResult) -> bool:
        """Record a task's result; True when the task stays here to be retried."""
        task, disposition, delay, reason, error = result[:5]
        delivery = task.delivery
        if disposition is Disposition.SUCCEEDED:
            delivery.succeed(task.handler.name)
        elif disposition is Disposition.KNOWN:
            delivery.done.add(task.handler.name)
            delivery.is_duplicate = not (delivery.entries or delivery.gave_up)
        elif disposition is Disposition.LEFT:
            delivery.is_left = True
        elif disposition is Disposition.POSTPONED or (disposition is Disposition.REQUEUED and task.key is not None):
            task.postponements += error is not None
            return True
        elif disposition is Disposition.REQUEUED:
            delivery.requeue(task, delay, result.counts)
        else:
            self._stats.failed += 1
            if disposition is Disposition.DEAD:
                delivery.give_up(task.handler.name, reason)
            else:
                delivery.has_failed = True
                delivery.note_calls(task.handler.name, task.calls_after(failed=True))
                if task.key is not None:
                    self.settlements.add_partial(delivery)
                    return True
                delivery.delay = delay if delivery.delay is None else max(delay, delivery.delay)
        delivery.open -= 1
        if not delivery.open:
            self.settlements.add(delivery)
        elif delivery.entries:
            self.settlements.add_partial(delivery)
        return False

    def _end_call(self, queue: ConsumerQueue, key: str, retries: Sequence[TaskResult]) -> None:
        """Continue with a key; with tasks to retry, when the first of them is due."""
        self._make_ready(queue.end_call(key, [result.task for result in retries]))
        if retries:
            self._timers.add(time.monotonic() + retries[0].delay, partial(self._unblock, queue, key))
        self._plan_launch(queue)

    def _unblock(self, queue: ConsumerQueue, key: str) -> None:
        if not self.stopping:
            self._make_ready(queue.unblock(key))
            self._plan_launch(queue)

    # -- deadlines ----------------------------------------------------------------------------------------------------

    def run_timers(self) -> tuple[float | None, list[HandlerCall]]:
        """Run what is due.

        Returns:
            The seconds until the next timer, None when there is none; and the calls that passed their deadline since
            the last time.
        """
        with self._lock:
            rest = self._timers.run()
            overdue, self._overdue = self._overdue, []
            return rest, overdue

    def allow(self, call: HandlerCall, seconds: float) -> None:
        """Extend the deadline of a call that was asked to end."""
        with self._lock:
            call.is_expired = True
            self._set_deadline(call, seconds)

    def _set_deadline(self, call: HandlerCall, seconds: float) -> None:
        call.deadline = time.monotonic() + seconds
        self._plan_deadline(self._queues[call.handler], call.deadline)

    def _plan_deadline(self, queue: ConsumerQueue, deadline: float) -> None:
        self._timers.add_once((queue, "deadline"), deadline, partial(self._find_overdue, queue))

    def _find_overdue(self, queue: ConsumerQueue) -> None:
        now = time.monotonic()
        self._overdue += [call for call in queue.running if call.deadline <= now]
        if later := [call.deadline for call in queue.running if call.deadline > now]:
            self._plan_deadline(queue, min(later))

    # -- settled messages ---------------------------------------------------------------------------------------------

    def remove(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Remove settled deliveries from those in flight; other copies of their events get their turn."""
        with self._lock:
            self._in_flight.remove(deliveries)
            for delivery in deliveries:
                subscription = delivery.subscription
                if subscription.by_event.get(delivery.id) is delivery:
                    del subscription.by_event[delivery.id]
                    self._admit_follower(delivery)
                delivery.tasks = []  # they refer back: only the garbage collector would free the circle
            if not self.held:
                self._wake_main()

    def _admit_follower(self, delivery: MessageDelivery) -> None:
        if followers := [follower for follower in delivery.followers if not follower.is_concluded]:
            heir, *others = followers
            heir.followers += others
            heir.inherit(delivery)
            self._admit(heir)

    def leased_until(self, subscription: Subscription, moment: float) -> list[MessageDelivery]:
        """Return the messages in flight whose leases end before a moment, in seconds of ``uptime``."""
        with self._lock:
            return [delivery for delivery in subscription.held.values() if delivery.leased_until < moment]

    def drop(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Leave lost messages, except those with a running call; the settler releases them."""
        with self._lock:
            for delivery in deliveries:
                self._leave(delivery)
            self.settlements.flush_now()

    # -- stopping -----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Begin no further call and conclude everything that does not run: the settler releases it."""
        with self._lock:
            self.stopping = True
            self._ready.clear()
            for queue in self._queues.values():
                queue.clear()
            for subscription in self.subscriptions:
                for delivery in subscription.held.values():
                    self._leave(delivery)
            for waiting in (self._ready, self._in_flight, self.settlements):
                waiting.changed.notify_all()

    def close(self) -> int:
        """Stop waiting for running calls and return their number."""
        with self._lock:
            calls = [call for queue in self._queues.values() for call in queue.running]
            for call in calls:
                call.is_over = True
                self.hung += 1
                for task in call.tasks:
                    task.abandon()
                for task in (*call.tasks, *call.dropped):
                    task.delivery.running = 0
                    self._leave(task.delivery)
                self._queues[call.handler].running.clear()
            self.running = 0
            return len(calls)

    def _leave(self, delivery: MessageDelivery) -> None:
        if not (delivery.is_concluded or delivery.running):
            delivery.leave()
            self.settlements.add(delivery)
