"""The consumer of a callback, and the circuit breaker of its endpoint: after several failures, only single probes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from balog.common.backoff import Backoff, BackoffSequence
from balog.common.errors import BalogError, SinkError
from balog.consumers import Engine, Hook, MessageConsumer, ReceivedEvent, Reject, Requeue
from balog.consumers.monitoring.failures import FailureEvents
from balog.consumers.routing import causes
from balog.delivery.attempt import SinkHealth
from balog.delivery.notices import ThrottledNotices
from balog.event import Event
from balog.service.document import Callback
from balog.service.jobs.callbacks.endpoint import Endpoint, PostFailure
from balog.topics import Received

WINDOW = 16
"""Events in flight for each concurrent request. The next events are received meanwhile."""

MAX_WINDOW_BYTES = 32 << 20
"""Bytes of the events in flight; the receive that exceeds this limit is the last."""

LEAST_ATTEMPTS = 3
"""Attempts of an event that is too old from the start, such as a dead letter that was redriven after days."""

MAX_PAUSE = 1.0
"""Seconds until ``room`` is asked again at most."""

THRESHOLD = 5
"""Consecutive failures that open the breaker."""

LONGEST = 60.0
"""Seconds between probes at most: one request a minute does no harm, and a recovery is noticed soon."""

_EXPIRED_AT_ONCE = 100
_MAX_COUNTED = 10_000
"""Events whose failures are counted; the counts of the oldest are dropped."""


class Breaker:
    """Decides when a request may be sent to an endpoint. Not thread-safe.

    Args:
        first: seconds until the first probe at most; doubled for each that fails, up to a minute, with full jitter.
        clock: returns monotonic seconds.
    """

    def __init__(self, first: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._delays = BackoffSequence(Backoff(min(first, LONGEST), LONGEST))
        self._paused_at = float("-inf")
        self._not_before = 0.0

    @property
    def is_open(self) -> bool:
        """Whether at most one request may be in flight."""
        return self._failures >= THRESHOLD

    @property
    def wait(self) -> float:
        """Seconds until the next request may be sent; 0.0 for now."""
        return max(0.0, self._not_before - self._clock())

    def succeed(self) -> None:
        """Record a response of a healthy endpoint."""
        self._failures = 0
        self._delays.reset()

    def fail(self, begun: float, retry_after: float | None = None) -> None:
        """Record a failure of the endpoint.

        Args:
            begun: when the request began, in seconds of the clock: concurrent failures lengthen the pause once.
            retry_after: seconds that the endpoint asked for, which apply whether the breaker is open or not.
        """
        self._failures += 1
        now = self._clock()
        if self.is_open and begun > self._paused_at:
            self._not_before = max(self._not_before, now + self._delays.next())
            self._paused_at = now
        if retry_after is not None:
            self._not_before = max(self._not_before, now + retry_after)


class CallbackConsumer(MessageConsumer, Hook):
    """Posts events, and says which of them come again, when, and how many may be in flight.

    Events wait in the topic, not in memory: a failed event is released with a delay, and while the breaker blocks
    requests, nothing is received. It is also a hook of its engine and its ``admission``, see ``room``.

    Args:
        group: its group in the topic, and its name.
        notices: sends lines to the operator.

    Attributes:
        window: events in flight at most.
        failed: failed requests.
    """

    def __init__(self, config: Callback, group: str, endpoint: Endpoint, notices: ThrottledNotices) -> None:
        super().__init__(self.take, config.source, name=group, where=config.where)
        self.window = WINDOW * config.concurrency
        self.failed = 0
        self.breaker = Breaker(config.retry.first)
        self._config = config
        self._endpoint = endpoint
        self._notices = notices
        self._failures = FailureEvents()
        self._lock = threading.Lock()
        self._sending = 0
        self._is_closed = False
        self._health = SinkHealth(notices, "trying again, its events stay in the topic")
        self._expires = False
        """The breaker blocks requests and the topic holds expired events."""
        self._failed: OrderedDict[str, int] = OrderedDict()
        """By id, the failures of events in this process: a delivery that ended with a process is not an attempt."""

    @property
    def error(self) -> str:
        """What is wrong with the endpoint, or why secrets could not be read again; "" when nothing is."""
        return self._error or self._endpoint.error

    @property
    def _error(self) -> str:
        return self._health.reason if self._health.is_failing else ""

    def close(self) -> None:
        """Abort all requests and close the connections."""
        self._is_closed = True
        self._endpoint.abort(everything=True)
        self._endpoint.close()

    # -- for the engine -----------------------------------------------------------------------------------------------

    def room(self, held: int, size: int) -> tuple[int, float]:
        """Return how many events may be received, and the seconds after which to ask again: the engine's admission."""
        if wait := self.breaker.wait:
            return (_EXPIRED_AT_ONCE - held if self._expires else 0), min(wait, MAX_PAUSE)
        if self.breaker.is_open:
            return 0 if held else 1, MAX_PAUSE
        return self.window - held if held <= self.window // 2 and size < MAX_WINDOW_BYTES else 0, MAX_PAUSE

    def tick(self, engine: Engine) -> None:
        """Abort requests that take too long, and read secrets again if that is due."""
        self._endpoint.abort()
        self._endpoint.refresh()

    def after_receive(self, topic: str, received: Sequence[Received]) -> None:
        """Note that no expired events are left."""
        if not received:
            self._expires = False

    def unreachable(self, topic: str, error: BalogError) -> None:
        """Report that the topic can't be reached."""
        if self._notices.is_due("topic"):
            self._notices.send(f"{error}; trying again")

    def dead(self, topic: str, received: Received, event: Event | None, reason: str, consumers: Sequence[str]) -> None:
        """Report a dead letter."""
        if self._notices.is_due("dead"):
            self._notices.send(f"{reason}; a dead letter of topic {topic}, group {self.name}")
        if event is None or self.name not in causes(event):  # otherwise its own failures could feed it without end
            self._failures.dead(topic, received, event, reason, [self.name])

    def take(self, settings: object, received: ReceivedEvent) -> None:
        """Post an event: the handler.

        Raises:
            Requeue: the event was not accepted, or not posted.
            Reject: it expired.
        """
        event, message = received
        if not self._may_begin():
            raise self._not_posted(message)
        begun = time.monotonic()
        failure = self._endpoint.post(event.header.id, message.body)
        with self._lock:
            self._sending -= 1
            if failure is None:
                self._succeed(message)
            else:
                self._fail(failure, begun)
                raise self._retry(message, failure)

    # -- results ------------------------------------------------------------------------------------------------------

    def _may_begin(self) -> bool:
        """Return whether a request may be sent now, and count it as in flight if so."""
        with self._lock:
            is_blocked = self._is_closed or self.breaker.wait
            if is_blocked or (self.breaker.is_open and self._sending):
                return False
            self._sending += 1
            return True

    def _not_posted(self, message: Received) -> BaseException:
        """Return the result of an event that can't be posted now: expired ones end here, since probes are too rare."""
        if self._expires and self.breaker.wait:
            now = time.time()
            if self._is_old(message, now):
                return Reject(dead_letter_reason(message, self._error, now))
            self._expires = False
        return Requeue(self._error or "no request may be sent now", counts=False)

    def _succeed(self, message: Received) -> None:
        self.breaker.succeed()
        self._failed.pop(message.id, None)
        self._health.recover()

    def _fail(self, failure: PostFailure, begun: float) -> None:
        self.failed += 1
        if failure.is_events:
            self.breaker.succeed()
        else:
            self.breaker.fail(begun, failure.retry_after)
        self._health.fail(SinkError(failure.reason))

    def _retry(self, message: Received, failure: PostFailure) -> BaseException:
        now = time.time()
        if self.breaker.is_open and self._is_old(message, now):
            self._expires = True
        failed = self._failed.pop(message.id, 0) + 1
        delay = next_delay(self._config, message, failure.retry_after, now, failed)
        if delay is None:
            return Reject(dead_letter_reason(message, failure.reason, now))
        self._failed[message.id] = failed
        if len(self._failed) > _MAX_COUNTED:
            self._failed.popitem(last=False)
        return Requeue(failure.reason, round(delay, 1))  # few different delays are few calls of the topic

    def _is_old(self, message: Received, now: float) -> bool:
        return message.published + self._config.give_up <= now


def next_delay(
    config: Callback,
    message: Received,
    retry_after: float | None,
    now: float,
    failed: int,
) -> float | None:
    """Return the seconds until the next attempt; None when this one was the last.

    The delay grows from ``retry.first`` to ``retry.longest`` with full jitter. A longer ``Retry-After`` of the endpoint
    wins. The last attempt is at ``give_up``.

    Args:
        message: as it was received for the attempt that failed.
        now: seconds since the epoch.
        failed: failed attempts including this one.
    """
    left = message.published + config.give_up - now
    if left <= 0 and failed >= LEAST_ATTEMPTS:
        return None
    delay = config.retry.backoff().delay(message.attempts)
    if left > 0:
        delay = min(delay, left)
    return max(delay, retry_after or 0.0)


def dead_letter_reason(message: Received, reason: str, now: float) -> str:
    """Return the reason of an expired event's dead letter."""
    hours = max(0.0, now - message.published) / 3600
    times = "1 attempt" if message.attempts == 1 else f"{message.attempts} attempts"
    return f"given up {hours:.1f} h after it came, {times}: {reason}"
