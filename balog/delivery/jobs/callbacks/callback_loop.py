"""The delivery loop of a callback: receives messages, posts them, and settles them according to the results."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import suppress

from balog.backoff import Backoff, BackoffSequence
from balog.consumers.causes import causes
from balog.consumers.failures import FailureEvents
from balog.delivery.document import Callback
from balog.delivery.jobs.callbacks.breaker import Breaker
from balog.delivery.jobs.callbacks.endpoint import Endpoint, PostFailure
from balog.delivery.jobs.callbacks.expiry import dead_letter_reason, next_delay
from balog.delivery.jobs.callbacks.in_flight import InFlightMessages
from balog.delivery.jobs.callbacks.posts import PostQueue
from balog.delivery.jobs.callbacks.switch import Switch
from balog.delivery.jobs.callbacks.worker_pool import CallbackWorkerPool, PostResult
from balog.errors import BalogError, EventError, TopicError
from balog.event import Event, decode
from balog.expressions import Expression
from balog.outbound.notices import ThrottledNotices
from balog.topics import GivenUp, Received, Topic

__all__ = ["CallbackLoop"]

WINDOW = 16
"""Events in flight for each concurrent request; with batches, two batches. The next events are received meanwhile."""

MAX_WINDOW = 10_000
MAX_WINDOW_BYTES = 32 << 20
"""Events in flight at most, and the bytes of their bodies; the receive that exceeds a limit is the last."""

BUSY_PAUSE = 0.2
"""Seconds between receives from an empty topic while requests are in flight."""

LAG_SECONDS = 2.0
"""Seconds that the lag is cached."""

MAX_PAUSE = 5.0
"""Seconds between tries at most while the topic is unreachable: the leases of messages in flight need extending."""

_EXPIRED_AT_ONCE = 100
_MAX_COUNTED = 10_000
"""Events whose failures are counted; the counts of the oldest are dropped."""


class CallbackLoop:
    """The thread of a callback.

    Events wait in the topic, not in memory: a failed event is released with a delay, and while the breaker blocks
    requests, nothing is received. The engine of :mod:`balog.consumers` would hold such events in flight.

    Args:
        group: its group in the topic.
        notices: sends lines to the operator.

    Attributes:
        taken: deliveries of events.
        done: events that were posted, or that ``where`` excludes.
        failed: failed requests.
        dead: dead letters.
        lag: see ``JobStatus``.
        error: what is wrong with the endpoint; "" when nothing is.
        topic_error: what is wrong with the topic; "" when nothing is.
    """

    def __init__(
        self, config: Callback, topic: Topic, group: str, endpoint: Endpoint, switch: Switch, notices: ThrottledNotices
    ) -> None:
        self.taken = self.done = self.failed = self.dead = 0
        self.lag: int | None = None
        self.error = ""
        self.topic_error = ""
        self.breaker = Breaker(config.retry.first)
        self.in_flight = InFlightMessages(topic, group, self._note_dead)
        self._config = config
        self._wanted = Expression(config.where) if config.where is not None else None
        self._topic = topic
        self._group = group
        self._endpoint = endpoint
        self._switch = switch
        self._notices = notices
        self._failures = FailureEvents()
        self._queue = PostQueue(config)
        self._workers = CallbackWorkerPool(lambda post: endpoint.post(post.id, post.body), f"balog {group}")
        self._over = threading.Event()
        self._end = 0.0
        self._lag_at = float("-inf")
        self._is_there = False
        self._failed: OrderedDict[str, int] = OrderedDict()
        """By id, the failures of events in this process: a delivery that ended with a process is not an attempt."""
        self._empty_until = 0.0
        self._expires = False

    def stop(self, end: float) -> None:
        """End ``run``. May be called from any thread.

        Args:
            end: when requests in flight are aborted, in seconds of ``time.monotonic``.
        """
        self._end = end
        self._over.set()
        self._workers.wake()

    def run(self) -> None:
        """Run until ``stop``; errors never end the loop."""
        delays = BackoffSequence(Backoff(0.5, MAX_PAUSE))
        while not self._over.is_set():
            try:
                self._turn()
                self.topic_error = ""
                delays.reset()
            except TopicError as error:
                self.topic_error = str(error)
                if self._notices.is_due("topic"):
                    self._notices.send(f"{error}; trying again")
                self._over.wait(delays.next())
            except Exception as error:  # a defect of balog
                self.topic_error = f"begins anew after {type(error).__name__}: {error}"
                self._notices.send(self.topic_error)
                self._reset()
                self._over.wait(MAX_PAUSE)
        self._finish()

    def _turn(self) -> None:
        self._endpoint.abort()
        self._endpoint.refresh()
        self._switch.check()
        if self._switch.is_off:
            self.in_flight.release(self._queue.clear(), attempted=False)
        else:
            self._post()
            self._receive()
            self._post()
        for result in self._workers.take(self._wait_time()):
            self._apply(result)
        self.in_flight.settle()
        self.in_flight.extend()
        self._ask_lag()

    def _wait_time(self) -> float:
        """Return the seconds to wait for the result of a request."""
        if self.in_flight.is_due:
            return 0.0
        if self._workers.busy:
            rest = self._queue.rest
            return BUSY_PAUSE if rest is None else min(max(rest, 0.01), BUSY_PAUSE)
        if self._switch.is_off or not self._is_there:
            return 1.0
        return min(self.breaker.wait, 1.0)

    def _receive(self) -> None:
        if not self._is_there:
            self._is_there = self._topic.exists()
            return
        if self.breaker.wait:
            if self._expires:
                self._expire()
            return
        room = self._room()
        if not room or time.monotonic() < self._empty_until:
            return
        rest = self._queue.rest
        timeout = self._topic.poll_timeout
        wait = 0.0 if self._workers.busy else timeout if rest is None else min(timeout, rest)
        received = self.in_flight.receive(room, wait)
        self.taken += len(received)
        if not received and self._workers.busy:
            self._empty_until = time.monotonic() + BUSY_PAUSE
        for message in received:
            self._accept(message)

    def _room(self) -> int:
        """Return the number of events to receive; 0 while enough are in flight."""
        config, held = self._config, len(self.in_flight)
        if self.breaker.is_open:
            return 0 if held else 1
        each = 2 * config.batch.events if config.per == "batch" else WINDOW
        window = min(each * config.concurrency, MAX_WINDOW)
        return window - held if held <= window // 2 and self.in_flight.bytes < MAX_WINDOW_BYTES else 0

    def _accept(self, message: Received) -> None:
        event = self._decode(message)
        if event is None:
            return
        if self._wanted is not None and not self._wanted.matches(event):
            self.in_flight.ack([message])
            self.done += 1
        else:
            self._queue.add(event.header.id, message)

    def _decode(self, message: Received) -> Event | None:
        try:
            return decode(message.body)
        except EventError as error:
            self.in_flight.give_up(message, f"is not an event: {error}")
            return None

    def _post(self) -> None:
        breaker = self.breaker
        if breaker.wait:
            self.in_flight.release(self._queue.clear(), attempted=False)
        most = 1 if breaker.is_open else self._config.concurrency
        while not breaker.wait and self._workers.busy < most:
            post = self._queue.take(at_once=breaker.is_open)
            if post is None:
                return
            self._workers.submit(post)

    # -- results ------------------------------------------------------------------------------------------------------

    def _apply(self, result: PostResult) -> None:
        post, failure = result.post, result.failure
        if failure is None:
            self.breaker.succeed()
            self.in_flight.ack(post.messages)
            for message in post.messages:
                self._failed.pop(message.id, None)
            self.done += len(post.messages)
            self._note_recovery()
            return
        self.failed += 1
        if failure.is_gone:
            self.in_flight.release(post.messages, attempted=False)
            self._switch.turn_off(failure.reason)
            return
        if failure.is_events:
            self.breaker.succeed()
            self._note_error(failure)
            if len(post.ids) > 1 and not self._over.is_set():
                self._queue.split(post)
                return
        else:
            self.breaker.fail(result.begun, failure.retry_after)
            self._note_error(failure)
        for message in post.messages:
            self._retry(message, failure)

    def _retry(self, message: Received, failure: PostFailure) -> None:
        now = time.time()
        if self.breaker.is_open and self._is_old(message, now):
            self._expires = True
        failed = self._failed.pop(message.id, 0) + 1
        delay = next_delay(self._config, message, failure.retry_after, now, failed)
        if delay is not None:
            self._failed[message.id] = failed
            if len(self._failed) > _MAX_COUNTED:
                self._failed.popitem(last=False)
            self.in_flight.release([message], delay, attempted=True)
        else:
            self.in_flight.give_up(message, dead_letter_reason(message, failure.reason, now))

    def _is_old(self, message: Received, now: float) -> bool:
        return message.published + self._config.give_up <= now

    def _expire(self) -> None:
        """Dead-letter expired events without a request: probes are too rare to try each of them."""
        received = self.in_flight.receive(_EXPIRED_AT_ONCE, 0.0)
        now = time.time()
        young = [one for one in received if not self._is_old(one, now)]
        for message in received:
            if self._is_old(message, now):
                self.in_flight.give_up(message, dead_letter_reason(message, self.error, now))
        self.in_flight.release(young, attempted=False)
        self.taken += len(received) - len(young)
        self._expires = bool(received) and not young

    def _note_error(self, failure: PostFailure) -> None:
        was_healthy, self.error = not self.error, failure.reason
        if was_healthy and self._notices.is_due("trouble"):
            self._notices.send(f"{failure.reason}; trying again, its events stay in the topic")

    def _note_recovery(self) -> None:
        was_healthy, self.error = not self.error, ""
        if not was_healthy and self._notices.was_sent("trouble") and self._notices.is_due("recovery"):
            self._notices.send("takes events again")

    def _note_dead(self, given_up: GivenUp) -> None:
        self.dead += 1
        if self._notices.is_due("dead"):
            self._notices.send(f"{given_up.reason}; a dead letter of topic {self._config.source}, group {self._group}")
        event = None
        with suppress(EventError):
            event = decode(given_up.received.body)
        if event is None or self._group not in causes(event):  # otherwise its own failures could feed it without end
            self._failures.dead(self._config.source, given_up.received, event, given_up.reason, given_up.consumers)

    def _ask_lag(self) -> None:
        now = time.monotonic()
        if self._is_there and now - self._lag_at >= LAG_SECONDS:
            self._lag_at = now
            self.lag = self._topic.group_state(self._group).lag

    def _reset(self) -> None:
        """Release everything, so that no message stays in flight unnoticed."""
        self._queue.clear()
        self._endpoint.abort(everything=True)
        while self._workers.busy and not self._over.is_set():
            self._workers.take(BUSY_PAUSE)
        self.in_flight.release_all()

    # -- stopping -----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        self.in_flight.release(self._queue.clear(), attempted=False)
        with suppress(BalogError):
            self.in_flight.settle()
        while self._workers.busy and (rest := self._end - time.monotonic()) > 0:
            self._endpoint.abort()
            for result in self._workers.take(min(rest, BUSY_PAUSE)):
                self._apply(result)
            with suppress(BalogError):
                self.in_flight.extend()
        self._endpoint.abort(everything=True)
        last = time.monotonic() + 1.0
        while self._workers.busy and (rest := last - time.monotonic()) > 0:
            for result in self._workers.take(min(rest, BUSY_PAUSE)):
                self._apply(result)
        self.in_flight.release_all()
        try:
            self.in_flight.settle()
        except TopicError as error:
            self._notices.send(f"{error}; what was in flight comes back when its lease runs out")
        self._endpoint.abort(everything=True)
        self._workers.close(1.0)
