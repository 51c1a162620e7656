"""The objects of a run: handler, subscription (a topic), delivery (a message), task (of a handler), call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from balog.common.backoff import Backoff
from balog.consumers.consumer import BatchOptions, Consumer
from balog.consumers.hooks import Work
from balog.consumers.ledgers.ledger import LedgerEntry
from balog.consumers.queueing.attempts import MAX_UNEXPLAINED, Calls, Known
from balog.consumers.routing import ConsumerRouter
from balog.event import Event, decode
from balog.topics import Received, Topic
from balog.topics.lease_clock import uptime


class Handler:
    """The function that one consumer of a run calls, and its limits.

    Args:
        consumer: declares the handler.
        function: handles one event, or a list of events when the consumer takes batches.
        max_attempts: failed calls for an event after which the event becomes a dead letter.
        backoff: the delays between attempts.
        max_calls: concurrent calls; None for as many as there are workers.
    """

    def __init__(
        self,
        consumer: Consumer,
        function: Callable[..., object],
        max_attempts: int,
        backoff: Backoff,
        max_calls: int | None,
    ) -> None:
        self.consumer = consumer
        self.name = consumer.name
        self.function = function
        self.max_attempts = max_attempts
        self.backoff = backoff
        self.max_calls = max_calls
        self.batch: BatchOptions | None = consumer.batch
        self.timeout: float | None = consumer.timeout
        self.is_async = consumer.is_async
        self.takes_messages = consumer.takes_messages


class Subscription:
    """One topic as an engine reads it, with the messages in flight.

    Attributes:
        ledger_prefix: what the names of consumers begin with in the ledger. Replays and attempts are a topic's own, and
            an event may be in several topics.
        held: by receipt, the messages that are received and neither acked, released nor dead-lettered yet.
        by_event: by event id, the one delivery whose tasks run; other copies of the event follow it.
        lease_lock: held while messages are released or their leases extended, so that no released message has its lease
            extended a moment later.
        is_flowing: the last receive returned messages and the next one follows at once.
        error: why the topic does not answer; "" while it does.
    """

    def __init__(
        self, topic: Topic, handlers: Mapping[str, Handler], router: ConsumerRouter, default: Handler | None
    ) -> None:
        self.topic = topic
        self.name = topic.name
        self.ledger_prefix = f"{topic.name}/"
        self.handlers = handlers
        self.router = router
        self.default = default
        self.held: dict[str, MessageDelivery] = {}
        self.by_event: dict[str, MessageDelivery] = {}
        self.lease_lock = threading.Lock()
        self.is_flowing = False
        self.error = ""

    def capacity(self, threads: int) -> int:
        """Return the number of messages that the handlers can be called with at once."""
        handlers = self.all_handlers
        return max((each.max_calls or threads) * (each.batch.size if each.batch else 1) for each in handlers)

    @property
    def all_handlers(self) -> list[Handler]:
        """The handlers, and the default one behind them."""
        return [*self.handlers.values(), *([self.default] if self.default else [])]


@dataclass(slots=True, eq=False)
class MessageDelivery:
    """One delivery of a message, and its progress.

    Attributes:
        id: the event's id; the message's id when it holds no event.
        done: consumers that succeeded, now or according to the ledger.
        gave_up: consumers that gave up, with the reason in the first line and the traceback below.
        entries: what the ledger does not hold yet.
        tasks: what is to be done; the first task may use ``event`` up.
        open: tasks that are neither finished nor left to a later delivery.
        running: tasks in running calls.
        delay: seconds until the next delivery, because a consumer failed; None when none did.
        has_failed: a consumer failed, so the delivery counts as an attempt.
        is_concluded: nothing more happens to it here; the settler settles it.
        is_left: it was concluded with unfinished tasks, because the run stops or the message is no longer this
            process's.
        leased_until: the end of its lease, in seconds of ``uptime``.
        known_at: when the ledger was asked about it, likewise.
        unwanted_type: the payload type of an event that no consumer wants; None for other events.
        calls: by consumer, its unsuccessful calls in this generation.
        followers: later copies of the event, which wait for the result of this one.
    """

    subscription: Subscription
    message: Received
    leased_until: float
    known_at: float = field(default_factory=uptime)
    event: Event | None = None
    id: str = field(init=False)
    done: set[str] = field(default_factory=set)
    gave_up: dict[str, str] = field(default_factory=dict)
    entries: list[LedgerEntry] = field(default_factory=list)
    tasks: list[HandlerTask] = field(default_factory=list)
    open: int = 0
    running: int = 0
    delay: float | None = None
    has_failed: bool = False
    begun: bool = False
    calls: dict[str, Calls] = field(default_factory=dict)
    is_concluded: bool = False
    is_left: bool = False
    unwanted_type: str | None = None
    is_duplicate: bool = False
    followers: list[MessageDelivery] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.id = self.message.id

    def succeed(self, consumer: str) -> None:
        """Record that a consumer succeeded."""
        self.done.add(consumer)
        self.entries.append(self.entry(consumer))

    def give_up(self, consumer: str, reason: str) -> None:
        """Record that a consumer will not try again."""
        self.gave_up[consumer] = reason
        self.entries.append(self.entry(consumer, gave_up=reason))

    def note_calls(self, consumer: str, calls: Calls) -> None:
        """Record a consumer's calls until now."""
        self.calls[consumer] = calls
        self.entries.append(self.entry(consumer, calls))

    def entry(self, consumer: str, calls: Calls | None = None, *, gave_up: str | None = None) -> LedgerEntry:
        """Return the ledger's entry for a consumer that succeeded, was called without success, or gave up."""
        text = Known(self.message.generation, calls, gave_up).text
        return LedgerEntry(self.id, f"{self.subscription.ledger_prefix}{consumer}", text)

    def requeue(self, task: HandlerTask, delay: float, counts: bool) -> None:
        """Record that the message returns to the topic for a delay.

        Args:
            counts: the delivery counts as one in the topic.
        """
        self.delay = max(delay, self.delay or 0.0)
        self.has_failed = self.has_failed or counts
        explained = task.calls._replace(explained=self.message.attempts)  # the end of this delivery
        self.note_calls(task.handler.name, explained)

    def inherit(self, first: MessageDelivery) -> None:
        """Copy what consumers did for an earlier copy of the event."""
        if first.message.generation.replay >= self.message.generation.replay:
            self.done |= first.done
        if first.message.generation >= self.message.generation:
            self.gave_up.update(first.gave_up)
            self.calls.update(first.calls)

    def is_held(self, group: str) -> bool:
        """Return whether the message is still this process's, as far as it knows without asking a server."""
        topic = self.subscription.topic
        return not self.is_concluded and self.leased_until > uptime() and topic.holds(group, self.message)

    def is_revivable(self, group: str) -> bool:
        """Return whether an extension revives its lease after its end, and fails if another process got the message.

        A queue may accept the receipt of an earlier delivery.
        """
        topic = self.subscription.topic
        return (
            topic.keeps_groups and not self.is_concluded and self.leased_until > 0 and topic.holds(group, self.message)
        )

    def leave(self) -> None:
        """Record that its unfinished tasks are left to a later delivery."""
        self.is_left = True
        for task in self.tasks:
            if task.is_suspect and task.postponements and not self.is_finished(task.handler.name):
                self.note_calls(task.handler.name, task.calls)  # in case the ledger missed the end of the last call

    def is_finished(self, consumer: str) -> bool:
        """Return whether a consumer succeeded or gave up."""
        return consumer in self.done or consumer in self.gave_up

    @property
    def wanted_by(self) -> list[str]:
        """The names of the consumers that want it."""
        return [task.handler.name for task in self.tasks]

    @property
    def may_be_known(self) -> bool:
        """Whether the ledger may have entries of it.

        Where every event is one message, it has entries only after an earlier delivery, or, for a redriven dead letter,
        of the consumers that succeeded before it died or in a replay since.
        """
        if not self.wanted_by:
            return False
        is_single = self.subscription.topic.keeps_ids and not self.message.generation.replay
        return not is_single or self.message.attempts > 1 or len(self.tasks) > 1

    @property
    def unexplained(self) -> int:
        """The number of earlier deliveries that no call explains: a process ended, or a stop released the message."""
        explained = max([calls.explained for calls in self.calls.values()], default=0)
        return max(0, self.message.attempts - 1 - explained)


_NONE = Calls()


@dataclass(slots=True, eq=False)
class HandlerTask:
    """One consumer's share of a delivery.

    Attributes:
        postponements: calls that asked for a later one, which do not count as attempts.
        is_suspect: no recorded failure explains why the message was delivered again. A handler may have ended its
            process, or the event was only prefetched by a process that ended. The ledger records the call before it
            begins.
        runs_alone: no other such call runs at the same time, so that a process that ends identifies the event that
            ended it.
    """

    delivery: MessageDelivery
    handler: Handler
    key: str | None
    postponements: int = 0
    is_suspect: bool = False
    runs_alone: bool = False
    is_used: bool = False

    @property
    def calls(self) -> Calls:
        """The consumer's unsuccessful calls for the event."""
        return self.delivery.calls.get(self.handler.name, _NONE)

    def calls_after(self, failed: bool) -> Calls:
        """Return the calls after one more that failed, or that asked for a later one.

        A failed task with a key stays in flight, so nothing explains the end of its delivery yet.
        """
        calls, delivery = self.calls, self.delivery.message.attempts
        explained = delivery if failed and self.key is None else delivery - 1
        return calls._replace(failed=calls.failed + failed, explained=explained)

    @property
    def calls_unended(self) -> Calls:
        """The calls with one more that never ended."""
        calls = self.calls
        return calls._replace(unended=calls.unended + 1, explained=self.delivery.message.attempts)

    def is_open(self, has_ledger: bool) -> bool:
        """Return whether the handler is to be called, and decide how; a consumer whose calls never end gives up.

        Args:
            has_ledger: a ledger remembers calls.
        """
        delivery, handler = self.delivery, self.handler
        if delivery.is_finished(handler.name):
            return False
        attempts, calls = delivery.message.attempts, self.calls
        # A call that did not end may have run beside the one that ended the process: it gets another one, alone.
        is_spent = calls.spent >= handler.max_attempts and calls.unended > 1
        if is_spent or (not has_ledger and attempts > handler.max_attempts + MAX_UNEXPLAINED):
            what = f"{calls.unended} of {calls.spent} calls" if is_spent else f"{attempts - 1} deliveries"
            reason = f"{what} came to no end: the handler may kill its process, or never return"
            delivery.give_up(handler.name, f"{handler.name}: {reason}")
            return False
        unexplained = delivery.unexplained
        self.is_suspect = bool(unexplained or calls.unended)
        self.runs_alone = bool(unexplained >= handler.max_attempts or calls.unended)
        return True

    def abandon(self) -> None:
        """Record that its call did not end."""
        self.delivery.running = 0
        self.delivery.has_failed = True
        self.is_suspect = False
        self.delivery.note_calls(self.handler.name, self.calls_unended)

    @property
    def attempt(self) -> int:
        """The number of the next or running attempt."""
        return self.calls.spent + 1

    def take_event(self) -> Event:
        """Return the event for one call. Each call gets its own copy, because a handler may change it."""
        event = self.delivery.event
        if event is None or self.is_used or self is not self.delivery.tasks[0]:
            return decode(self.delivery.message.body)
        self.is_used = True
        return event


@dataclass(slots=True, eq=False)
class HandlerCall:
    """One call of a handler, with one task or, for a batch, several.

    Attributes:
        deadline: when the call must end, in seconds of ``time.monotonic``; 0 without a timeout.
        is_expired: the call took too long and was asked to end.
        is_over: the result was decided without the call's end; a late return changes nothing.
        dropped: former tasks that were not called: True for one that succeeded elsewhere, False for a lost message.
        cancel: asks the call to end, where that is possible.
        retire: replaces the thread that runs the call, so that other calls need not wait.
    """

    handler: Handler
    tasks: list[HandlerTask]
    dropped: dict[HandlerTask, bool] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    work: Work | None = None
    is_suspect: bool = field(init=False)
    runs_alone: bool = field(init=False)
    started: float = 0.0
    deadline: float = 0.0
    is_expired: bool = False
    is_over: bool = False
    cancel: Callable[[], object] | None = None
    retire: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        self.is_suspect = self.tasks[0].is_suspect
        self.runs_alone = self.tasks[0].runs_alone
