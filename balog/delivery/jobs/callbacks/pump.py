"""The loop of a callback: receives from its topic, has events posted, and settles them by what became of it."""

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
from balog.delivery.jobs.callbacks.crew import Crew, Outcome
from balog.delivery.jobs.callbacks.endpoint import Endpoint, Refusal
from balog.delivery.jobs.callbacks.giving_up import last_words, next_delay
from balog.delivery.jobs.callbacks.hand import Hand
from balog.delivery.jobs.callbacks.posts import Waiting
from balog.delivery.jobs.callbacks.switch import Switch
from balog.errors import BalogError, EventError, TopicError
from balog.event import Event, decode
from balog.expressions import Expression
from balog.outbound.notices import ThrottledNotices
from balog.topics import GivenUp, Received, Topic

__all__ = ["Pump"]

WINDOW = 16
"""Events in hand for each request that may be under way, or two batches: the next are received meanwhile."""

MAX_WINDOW = 10_000
MAX_WINDOW_BYTES = 32 << 20
"""Events in hand at most, and bytes of theirs; the receive that goes past them is the last."""

BUSY_PAUSE = 0.2
"""Seconds after which a topic that had nothing is asked again while requests are under way."""

LAG_SECONDS = 2.0
"""Seconds that an answer on the lag is good for."""

MOST_PAUSE = 5.0
"""Seconds between tries at most while the topic is out of reach: what is in hand has leases to extend."""

_EXPIRED_AT_ONCE = 100
_REMEMBERED = 10_000
"""Events whose failures are counted at once; of more, the oldest begin to count anew."""


class Pump:
    """What one thread does for a callback.

    Its events are not held in memory while they wait: one that failed is given back to the topic with a delay, and
    while the endpoint is left alone nothing is received at all.

    Args:
        group: its group in the topic.
        notices: takes lines for people.

    Attributes:
        taken: deliveries of events; ``done``: events that were posted, or not wanted; ``failed``: requests that failed;
            ``dead``: dead letters; ``lag``: see ``JobStatus``.
        trouble: what is wrong with the endpoint; ``topic_trouble``: with the topic. "" when nothing is.
    """

    def __init__(
        self, config: Callback, topic: Topic, group: str, endpoint: Endpoint, switch: Switch, notices: ThrottledNotices
    ) -> None:
        self.taken = self.done = self.failed = self.dead = 0
        self.lag: int | None = None
        self.trouble = ""
        self.topic_trouble = ""
        self.breaker = Breaker(config.retry.first)
        self.hand = Hand(topic, group, self._note_dead)
        self._config = config
        self._wanted = Expression(config.where) if config.where is not None else None
        self._topic = topic
        self._group = group
        self._endpoint = endpoint
        self._switch = switch
        self._notices = notices
        self._failures = FailureEvents()
        self._waiting = Waiting(config)
        self._crew = Crew(lambda post: endpoint.post(post.id, post.body), f"balog {group}")
        self._over = threading.Event()
        self._end = 0.0
        self._lag_at = float("-inf")
        self._is_there = False
        self._failed: OrderedDict[str, int] = OrderedDict()
        """By id, how often events failed in this process: a delivery that the end of a process ended is no attempt."""
        self._empty_until = 0.0
        self._expires = False

    def stop(self, end: float) -> None:
        """End ``run``; requests under way have until then (monotonic seconds). From any thread."""
        self._end = end
        self._over.set()
        self._crew.wake()

    def run(self) -> None:
        """Go on until it is stopped, whatever happens."""
        delays = BackoffSequence(Backoff(0.5, MOST_PAUSE))
        while not self._over.is_set():
            try:
                self._turn()
                self.topic_trouble = ""
                delays.reset()
            except TopicError as error:
                self.topic_trouble = str(error)
                if self._notices.is_due("topic"):
                    self._notices.send(f"{error}; trying again")
                self._over.wait(delays.next())
            except Exception as error:  # a mistake of this release
                self.topic_trouble = f"begins anew after {type(error).__name__}: {error}"
                self._notices.send(self.topic_trouble)
                self._begin_anew()
                self._over.wait(MOST_PAUSE)
        self._finish()

    def _turn(self) -> None:
        self._endpoint.cut()
        self._endpoint.refresh()
        self._switch.look()
        if self._switch.is_off:
            self.hand.release(self._waiting.clear(), attempted=False)
        else:
            self._post()
            self._receive()
            self._post()
        for outcome in self._crew.take(self._patience()):
            self._conclude(outcome)
        self.hand.settle()
        self.hand.extend()
        self._ask_lag()

    def _patience(self) -> float:
        """Give the seconds to wait for the end of a request: there is nothing else to do."""
        if self.hand.is_due:
            return 0.0
        if self._crew.busy:
            rest = self._waiting.rest
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
        rest = self._waiting.rest
        wait = (
            0.0
            if self._crew.busy
            else self._topic.poll_timeout
            if rest is None
            else min(self._topic.poll_timeout, rest)
        )
        received = self.hand.receive(room, wait)
        self.taken += len(received)
        if not received and self._crew.busy:
            self._empty_until = time.monotonic() + BUSY_PAUSE
        for message in received:
            self._sort(message)

    def _room(self) -> int:
        """Give the number of events to receive; 0 as long as there are enough in hand."""
        config, held = self._config, len(self.hand)
        if self.breaker.is_open:
            return 0 if held else 1
        each = 2 * config.batch.events if config.per == "batch" else WINDOW
        window = min(each * config.concurrency, MAX_WINDOW)
        return window - held if held <= window // 2 and self.hand.bytes < MAX_WINDOW_BYTES else 0

    def _sort(self, message: Received) -> None:
        event = self._read(message)
        if event is None:
            return
        if self._wanted is not None and not self._wanted.matches(event):
            self.hand.ack([message])
            self.done += 1
        else:
            self._waiting.add(event.header.id, message)

    def _read(self, message: Received) -> Event | None:
        try:
            return decode(message.body)
        except EventError as error:
            self.hand.give_up(message, f"is not an event: {error}")
            return None

    def _post(self) -> None:
        breaker = self.breaker
        if breaker.wait:
            self.hand.release(self._waiting.clear(), attempted=False)
        most = 1 if breaker.is_open else self._config.concurrency
        while not breaker.wait and self._crew.busy < most:
            post = self._waiting.take(at_once=breaker.is_open)
            if post is None:
                return
            self._crew.submit(post)

    # -- what became of it ----------------------------------------------------------------------------------------

    def _conclude(self, outcome: Outcome) -> None:
        post, refusal = outcome.post, outcome.refusal
        if refusal is None:
            self.breaker.succeed()
            self.hand.ack(post.messages)
            for message in post.messages:
                self._failed.pop(message.id, None)
            self.done += len(post.messages)
            self._recover()
            return
        self.failed += 1
        if refusal.is_gone:
            self.hand.release(post.messages, attempted=False)
            self._switch.turn_off(refusal.reason)
            return
        if refusal.is_events:
            self.breaker.succeed()
            self._complain(refusal)
            if len(post.ids) > 1 and not self._over.is_set():
                self._waiting.split(post)
                return
        else:
            self.breaker.fail(outcome.begun, refusal.retry_after)
            self._complain(refusal)
        for message in post.messages:
            self._again(message, refusal)

    def _again(self, message: Received, refusal: Refusal) -> None:
        now = time.time()
        if self.breaker.is_open and self._is_old(message, now):
            self._expires = True
        failed = self._failed.pop(message.id, 0) + 1
        delay = next_delay(self._config, message, refusal.retry_after, now, failed)
        if delay is not None:
            self._failed[message.id] = failed
            if len(self._failed) > _REMEMBERED:
                self._failed.popitem(last=False)
            self.hand.release([message], delay, attempted=True)
        else:
            self.hand.give_up(message, last_words(message, refusal.reason, now))

    def _is_old(self, message: Received, now: float) -> bool:
        return message.published + self._config.give_up <= now

    def _expire(self) -> None:
        """Give up what is too old behind a probe that was: the endpoint is asked too seldom to be asked for each."""
        received = self.hand.receive(_EXPIRED_AT_ONCE, 0.0)
        now = time.time()
        young = [one for one in received if not self._is_old(one, now)]
        for message in received:
            if self._is_old(message, now):
                self.hand.give_up(message, last_words(message, self.trouble, now))
        self.hand.release(young, attempted=False)
        self.taken += len(received) - len(young)
        self._expires = bool(received) and not young

    def _complain(self, refusal: Refusal) -> None:
        was_well, self.trouble = not self.trouble, refusal.reason
        if was_well and self._notices.is_due("trouble"):
            self._notices.send(f"{refusal.reason}; trying again, its events stay in the topic")

    def _recover(self) -> None:
        was_well, self.trouble = not self.trouble, ""
        if not was_well and self._notices.was_sent("trouble") and self._notices.is_due("recovery"):
            self._notices.send("takes events again")

    def _note_dead(self, given_up: GivenUp) -> None:
        self.dead += 1
        if self._notices.is_due("dead"):
            self._notices.send(f"{given_up.reason}; a dead letter of topic {self._config.source}, group {self._group}")
        event = None
        with suppress(EventError):
            event = decode(given_up.received.body)
        if event is None or self._group not in causes(event):  # else its own failures could feed it without an end
            self._failures.dead(self._config.source, given_up.received, event, given_up.reason, given_up.consumers)

    def _ask_lag(self) -> None:
        now = time.monotonic()
        if self._is_there and now - self._lag_at >= LAG_SECONDS:
            self._lag_at = now
            self.lag = self._topic.group_state(self._group).lag

    def _begin_anew(self) -> None:
        """Give everything back, so that nothing is forgotten in hand."""
        self._waiting.clear()
        self._endpoint.cut(everything=True)
        while self._crew.busy and not self._over.is_set():
            self._crew.take(BUSY_PAUSE)
        self.hand.release_all()

    # -- the end --------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        self.hand.release(self._waiting.clear(), attempted=False)
        with suppress(BalogError):
            self.hand.settle()
        while self._crew.busy and (rest := self._end - time.monotonic()) > 0:
            self._endpoint.cut()
            for outcome in self._crew.take(min(rest, BUSY_PAUSE)):
                self._conclude(outcome)
            with suppress(BalogError):
                self.hand.extend()
        self._endpoint.cut(everything=True)
        last = time.monotonic() + 1.0
        while self._crew.busy and (rest := last - time.monotonic()) > 0:
            for outcome in self._crew.take(min(rest, BUSY_PAUSE)):
                self._conclude(outcome)
        self.hand.release_all()
        try:
            self.hand.settle()
        except TopicError as error:
            self._notices.send(f"{error}; what was in hand comes back when its lease runs out")
        self._endpoint.cut(everything=True)
        self._crew.close(1.0)
