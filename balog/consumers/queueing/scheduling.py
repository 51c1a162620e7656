"""The schedule: the one state machine of an engine's run.

::

    held → admitted → tasks in consumer queues → ready → running → succeeded | failed | postponed | dead
                      every task decided → concluded → acked | released | dead-lettered

Every transition happens under one lock, and none of them calls a handler, a topic or a ledger. The parts share the
lock: ``InFlightMessages`` feeds the pollers, ``CallQueue`` the workers, and ``SettlementQueue`` the settler.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from balog.consumers.outcomes import Disposition, TaskResult
from balog.consumers.queueing.call_queue import CallQueue
from balog.consumers.queueing.calls import HandlerCall
from balog.consumers.queueing.delivery import HandlerTask, MessageDelivery
from balog.consumers.queueing.in_flight import Admission, InFlightMessages, SettlementQueue
from balog.consumers.routing import Subscription
from balog.topics import Received

GRACE = 5.0
"""Seconds that an ``async def`` handler has to end after it was cancelled."""

MANY_CALLS = 10
"""Calls a second and thread, below which each is settled at once instead of together with others."""


class Schedule:
    """Decides what runs next.

    Args:
        subscriptions: the topics.
        threads: worker threads for plain handlers.
        batch: messages per receive.
        prefetch: messages that wait here for a call to end; None for as many as are called within half a second.
        settle_at: concluded messages that are settled without waiting for more.
        wake_main: wakes the main thread, which runs timers and deadlines.
        wake_loop: wakes the event loop's thread, because a call for it is ready.
        has_ledger: a ledger remembers calls.
        admission: limits the messages in flight further.

    Attributes:
        stopping: no further call begins.
        failed: failed attempts.
        hung: calls beside the running ones, which took longer than their timeout and have not returned.
        settlements: what the settler settles.
    """

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
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
        self.failed = self.hung = 0
        self._unhandled = 0
        self._threads = threads
        self._wake_main = wake_main
        self._lock = threading.Lock()
        self._in_flight = InFlightMessages(self._lock, batch, prefetch, admission)
        handlers = [handler for subscription in subscriptions for handler in subscription.all_handlers]
        self._calls = CallQueue(self._lock, handlers, wake_main, wake_loop)
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
                room = self._in_flight.free_calls(subscription.capacity(self._threads), self._calls.pending)
                if not room:
                    self._in_flight.changed.wait()
                    continue
                allowed, rest = self._in_flight.room()
                if allowed:
                    return min(room, allowed)
                if rest is None or not self._calls.pending:
                    for each in self.subscriptions:
                        self._calls.launch(each.all_handlers)  # they would wait for events that can't come
                self.settlements.flush_now()
                self._in_flight.changed.wait(rest)
            return 0

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
            return self._in_flight.add(subscription, received, until)

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
            self._in_flight.note_empty(subscription)
            if is_last:
                self._calls.launch(subscription.all_handlers)
            self.settlements.flush_now()

    def _admit(self, delivery: MessageDelivery) -> None:
        if self.stopping:
            self._leave(delivery)
            return
        if not self._in_flight.is_first_copy(delivery):
            return
        tasks = delivery.admit(self._has_ledger)
        for task in tasks:
            self._calls.submit(task)
        if not tasks:
            self._unhandled += 1
            self._in_flight.note_duration(0.0)
            self.settlements.add(delivery)

    def _is_quiet(self) -> bool:
        """Return whether no further delivery can be concluded soon."""
        if self._calls.pending:
            is_slow = (self._in_flight.call_seconds or 0.0) > self._threads / MANY_CALLS
            return is_slow or self._in_flight.is_full
        return not self._in_flight.is_flowing or self._in_flight.is_full

    # -- calls --------------------------------------------------------------------------------------------------------

    @property
    def received(self) -> int:
        """The number of messages whose handling began."""
        return self._unhandled + self._calls.begun

    @property
    def running(self) -> int:
        """The number of calls that are running."""
        return self._calls.running

    def take(self) -> HandlerCall | None:
        """Wait for a call to run in a worker thread; None when the run stops."""
        with self._lock:
            while not self.stopping:
                if (call := self._begin(is_async=False)) is not None:
                    return call
                self._calls.changed.wait()
            return None

    def take_async(self) -> HandlerCall | None:
        """Return a call to run in the event loop; None when there is none now."""
        with self._lock:
            return None if self.stopping else self._begin(is_async=True)

    def _begin(self, is_async: bool) -> HandlerCall | None:
        call = self._calls.take(is_async)
        if call is None:
            self._in_flight.wake(self._calls.pending)  # a call waits for another one's end, which leaves room
        return call

    # -- results of calls ---------------------------------------------------------------------------------------------

    def finish(self, call: HandlerCall, results: Mapping[HandlerTask, TaskResult]) -> None:
        """Apply the results of a call; does nothing for a call that was abandoned."""
        with self._lock:
            if call.is_over:
                self.hung -= 1
            else:
                self._finish(call, results)

    def abandon(self, call: HandlerCall, results: Mapping[HandlerTask, TaskResult]) -> bool:
        """Apply the results of a call that has not ended; False when it ended in the meantime."""
        with self._lock:
            if call.is_over or not self._calls.is_running(call):
                return False
            call.abandon()
            self.hung += 1
            self._finish(call, results)
            return True

    def _finish(self, call: HandlerCall, results: Mapping[HandlerTask, TaskResult]) -> None:
        self._calls.remove(call)
        self._in_flight.note_duration(time.perf_counter() - call.started if call.started else 0.0)
        retries: dict[str, list[tuple[HandlerTask, float]]] = {}
        for task, result in results.items():
            of_key = retries.setdefault(task.key, []) if task.key is not None else None
            if self._apply(task, result):
                if of_key is not None:
                    of_key.append((task, result.delay))
                elif not self.stopping:
                    self._calls.submit_later(task, result.delay)
        if self.stopping:
            for task in results:
                self._leave(task.delivery)
            if not self.running:
                self._wake_main()
        else:
            self._calls.end(call, retries)
        if self._in_flight.is_held_back:
            self._in_flight.changed.notify_all()
        self._in_flight.wake(self._calls.pending)
        self.settlements.flush_now()

    def _apply(self, task: HandlerTask, result: TaskResult) -> bool:
        """Record a task's result; True when the task stays here to be retried."""
        delivery = task.delivery
        self.failed += result.disposition in (Disposition.FAILED, Disposition.DEAD)
        stays = delivery.end_call(task, result)
        if not delivery.open:
            self.settlements.add(delivery)
        elif delivery.entries:
            self.settlements.add_partial(delivery)
        return stays

    # -- deadlines ----------------------------------------------------------------------------------------------------

    def run_timers(self) -> tuple[float | None, list[HandlerCall]]:
        """Run what is due.

        Returns:
            The seconds until the next timer, None when there is none; and the calls that passed their deadline since
            the last time.
        """
        with self._lock:
            return self._calls.run_timers()

    def expire(self, call: HandlerCall, seconds: float) -> None:
        """Extend the deadline of a call that was asked to end."""
        with self._lock:
            self._calls.expire(call, seconds)

    # -- settled messages ---------------------------------------------------------------------------------------------

    def remove(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Remove settled deliveries from those in flight; other copies of their events get their turn."""
        with self._lock:
            for heir in self._in_flight.remove(deliveries):
                self._admit(heir)
            if not self.held:
                self._wake_main()

    def put_back(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Settle those of the deliveries later that are not settled yet."""
        with self._lock:
            left = [delivery for delivery in deliveries if self._in_flight.holds(delivery)]
        self.settlements.put_back(left)

    def leased_until(self, subscription: Subscription, moment: float) -> list[MessageDelivery]:
        """Return the messages in flight whose leases end before a moment, in seconds of ``uptime``."""
        with self._lock:
            return self._in_flight.leased_until(subscription, moment)

    def drop(self, deliveries: Sequence[MessageDelivery]) -> None:
        """Leave lost messages, except those with a running call; the settler releases them."""
        with self._lock:
            for delivery in deliveries:
                self._leave(delivery)
            self.settlements.flush_now()

    # -- stopping -----------------------------------------------------------------------------------------------------

    def begin_stop(self) -> None:
        """Begin no further call; ``stop`` does the rest. Needs no lock: a signal handler may call it."""
        self.stopping = True

    def stop(self) -> None:
        """Begin no further call and conclude everything that does not run: the settler releases it."""
        with self._lock:
            self.stopping = True
            self._calls.close()
            for delivery in self._in_flight:
                self._leave(delivery)
            self._in_flight.changed.notify_all()
            self.settlements.changed.notify_all()

    def close(self) -> int:
        """Stop waiting for running calls and return their number."""
        with self._lock:
            calls = self._calls.abandon_all()
            for call in calls:
                call.abandon()
                self.hung += 1
                for task in call.tasks:
                    task.abandon()
                for task in (*call.tasks, *call.dropped):
                    self._leave(task.delivery, despite_calls=True)
            return len(calls)

    def _leave(self, delivery: MessageDelivery, *, despite_calls: bool = False) -> None:
        if delivery.leave(despite_calls=despite_calls):
            self.settlements.add(delivery)
