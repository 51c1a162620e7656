"""What an engine has in hand: a delivery (one message), its tasks (one for each consumer), calls of handlers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from balog.consumers.attempts import Calls, describe_calls, describe_giving_up, describe_success
from balog.consumers.ledger import Entry
from balog.event import Event, decode
from balog.topics import Received, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from balog.consumers.desk import Desk
    from balog.consumers.hooks import Work
    from balog.consumers.routing import Router

__all__ = ["Call", "Delivery", "Lane", "Task"]


class Lane:
    """One topic as the engine reads it, and all of its messages that are in hand.

    ``io`` is held while messages are released or their leases extended: a message that is given back for later must not
    have its lease extended a moment after.
    """

    def __init__(self, topic: Topic, desks: Mapping[str, Desk], router: Router, default: Desk | None) -> None:
        self.topic = topic
        self.name = topic.name
        self.desks = desks
        self.router = router
        self.default = default
        self.held: dict[str, Delivery] = {}
        """By receipt: received and neither acked, released nor dead-lettered yet."""
        self.in_hand: dict[str, Delivery] = {}
        """By event id: the one copy whose tasks are under way."""
        self.io = threading.Lock()
        self.is_flowing = False
        """The last receive gave something and the next one will come at once."""
        self.last_receive: float | None = None
        self.trouble = ""

    @property
    def all_desks(self) -> list[Desk]:
        """The desks, and the default's behind them."""
        return [*self.desks.values(), *([self.default] if self.default else [])]


class Delivery:
    """One message in hand, and what became of it so far.

    Attributes:
        id: the event's; the message's when it is no event.
        done: consumers that are through with success, now or as the ledger knows.
        gave_up: consumers that gave up, with the reason in the first line and the traceback below.
        entries: what the ledger has not been told yet.
        tasks: what is to be done, the first of which may use ``event`` up.
        open: tasks that are neither through nor to be tried at a later delivery.
        running: tasks in a call that is under way.
        delay: seconds after which to be delivered again, since some consumer failed; None when none did.
        has_failed: some consumer failed, so that the delivery counts as an attempt.
        is_concluded: nothing more happens to it here; it is to be settled.
        is_left: it was concluded with tasks undone, since the run stops.
        calls: by consumer, its calls that did not succeed, in this generation.
        routing_error: what a consumer's own ``match_event`` raised.
        followers: other copies of the event, which came while this one was in hand and wait for what it comes to.
    """

    __slots__ = (
        *(
            "begun",
            "calls",
            "delay",
            "done",
            "entries",
            "event",
            "followers",
            "gave_up",
            "has_failed",
            "id",
            "is_concluded",
        ),
        *("is_duplicate", "is_left", "is_unwanted", "lane", "leased_at", "message", "open", "routing_error"),
        *("running", "tasks"),
    )

    def __init__(self, lane: Lane, message: Received, leased_at: float) -> None:
        self.lane = lane
        self.message = message
        self.leased_at = leased_at
        self.event: Event | None = None
        self.id = message.id
        self.done: set[str] = set()
        self.gave_up: dict[str, str] = {}
        self.entries: list[Entry] = []
        self.tasks: list[Task] = []
        self.open = 0
        self.running = 0
        self.delay: float | None = None
        self.has_failed = False
        self.begun = False
        self.calls: dict[str, Calls] = {}
        self.is_concluded = False
        self.is_left = False
        self.is_unwanted = False
        self.is_duplicate = False
        self.routing_error: BaseException | None = None
        self.followers: list[Delivery] = []

    def succeed(self, consumer: str) -> None:
        """Note that a consumer is through."""
        self.done.add(consumer)
        self.entries.append(Entry(self.id, consumer, describe_success(self.message.generation)))

    def give_up(self, consumer: str, reason: str) -> None:
        """Note that a consumer will not try again."""
        self.gave_up[consumer] = reason
        self.entries.append(Entry(self.id, consumer, describe_giving_up(reason, self.message.generation)))

    def note_calls(self, consumer: str, calls: Calls) -> None:
        """Note a consumer's calls so far."""
        self.calls[consumer] = calls
        self.entries.append(self.calls_entry(consumer, calls))

    def calls_entry(self, consumer: str, calls: Calls) -> Entry:
        """Return the ledger's entry for a consumer's calls."""
        return Entry(self.id, consumer, describe_calls(calls, self.message.generation))

    @property
    def wanted_by(self) -> list[str]:
        """The names of the consumers that want it; an empty name where a failure keeps the engine from knowing."""
        return [""] if self.routing_error is not None else [task.desk.name for task in self.tasks]

    @property
    def unexplained(self) -> int:
        """Earlier deliveries that ended and no call explains: a process ended, or a stop gave the message back."""
        explained = max([calls.explained for calls in self.calls.values()], default=0)
        return max(0, self.message.attempts - 1 - explained)


_NONE = Calls()


class Task:
    """One consumer's share of a delivery.

    Attributes:
        waits: calls that asked for another one later, which are no attempts.
        is_suspect: it was delivered before, and no failure explains why it came again. A handler may have ended its
            process, or the event was only prefetched by one that ended. The ledger records the call before it begins.
        runs_alone: a call of such a task runs while no other one like it does, so that a process that ends says which
            event ended it.
    """

    __slots__ = ("delivery", "desk", "is_suspect", "is_used", "key", "runs_alone", "waits")

    def __init__(self, delivery: Delivery, desk: Desk, key: str | None) -> None:
        self.delivery = delivery
        self.desk = desk
        self.key = key
        self.waits = 0
        self.is_suspect = False
        self.runs_alone = False
        self.is_used = False

    @property
    def calls(self) -> Calls:
        """Calls of the consumer at the event that did not succeed."""
        return self.delivery.calls.get(self.desk.name, _NONE)

    def calls_after(self, failed: bool) -> Calls:
        """Return the calls after one more that failed, or that asked for another one later.

        A task of a key stays in hand when it fails, so that nothing explains the end of its delivery yet.
        """
        calls, delivery = self.calls, self.delivery.message.attempts
        explained = delivery if failed and self.key is None else delivery - 1
        return calls._replace(failed=calls.failed + failed, explained=explained)

    @property
    def calls_unended(self) -> Calls:
        """The calls with one more that never ended."""
        calls = self.calls
        return calls._replace(unended=calls.unended + 1, explained=self.delivery.message.attempts)

    @property
    def attempt(self) -> int:
        """The number of the attempt that is next or under way."""
        return self.calls.spent + 1

    def take_event(self) -> Event:
        """Give the event for one call: a handler may change what it gets, so each gets its own."""
        event = self.delivery.event
        if event is None or self.is_used or self is not self.delivery.tasks[0]:
            return decode(self.delivery.message.body)
        self.is_used = True
        return event


class Call:
    """One call of a handler, with one task or, for a batch, several.

    Attributes:
        deadline: in monotonic seconds, when the consumer has a timeout.
        is_expired: it took too long and was asked to end.
        is_over: what it comes to was decided without waiting for its end, so a late return changes nothing.
        cancel: asks it to end, where that is possible.
        retire: replaces the thread that runs it, so that others need not wait.
    """

    __slots__ = (
        *("cancel", "deadline", "desk", "events", "is_expired", "is_over", "is_suspect", "retire", "runs_alone"),
        *("started", "tasks", "work"),
    )

    def __init__(self, desk: Desk, tasks: list[Task]) -> None:
        self.desk = desk
        self.tasks = tasks
        self.events: list[Event] = []
        self.work: Work | None = None
        self.is_suspect = tasks[0].is_suspect
        self.runs_alone = tasks[0].runs_alone
        self.started = 0.0
        self.deadline = 0.0
        self.is_expired = False
        self.is_over = False
        self.cancel: Callable[[], object] | None = None
        self.retire: Callable[[], object] | None = None
