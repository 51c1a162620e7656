"""A delivery of a message: which consumers it is for, what they did with it, and what becomes of it then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from balog.consumers.error_text import error_line
from balog.consumers.ledgers.ledger import Calls, Known, LedgerEntry, read
from balog.consumers.outcomes import Disposition, TaskResult
from balog.consumers.routing import Handler, Routed, Subscription
from balog.event import Event, decode
from balog.topics import Received
from balog.topics.base import uptime

MAX_UNEXPLAINED = 100
"""Deliveries beyond a consumer's limit after which an event is given up, where no ledger counts its calls."""

KEEP_SECONDS = 300.0
"""Seconds that an unwanted event stays away after it was returned to its topic."""


@dataclass(slots=True, eq=False)
class MessageDelivery:
    """One delivery of a message, and its progress. Others call its methods; after ``admit``, with the schedule's lock.

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
        leased_until: the end of its lease, in seconds of ``uptime``; 0 when another process has got the message.
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
    has_begun: bool = False
    calls: dict[str, Calls] = field(default_factory=dict)
    is_concluded: bool = False
    is_left: bool = False
    unwanted_type: str | None = None
    is_duplicate: bool = False
    followers: list[MessageDelivery] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.id = self.message.id

    # -- before its calls ---------------------------------------------------------------------------------------------

    def route(self, unwanted: str) -> Routed:
        """Decode the message, and make a task for each handler; the engine's ``unwanted`` is for one without any."""
        routed = self.subscription.route(self.message)
        self.event, tasks, self.unwanted_type, error = routed
        self.tasks = [HandlerTask(self, handler, key) for handler, key in tasks]
        if self.event is None:
            if error is not None:
                self.gave_up[""] = f"not an event: {error}"
            return routed
        self.id = self.event.header.id
        if error is not None:
            self.gave_up[""] = f"cannot be routed to a handler: {error_line(error)}"
        elif self.unwanted_type is not None and self.subscription.default is None:
            if unwanted == "keep":
                self.delay = KEEP_SECONDS
            elif unwanted == "dead":
                self.gave_up[""] = f"no consumer wants it: {self.unwanted_type[:100]}"
        return routed

    @property
    def may_be_known(self) -> bool:
        """Whether the ledger may have entries of it.

        Where every event is one message, it has entries only after an earlier delivery, or, for a redriven dead letter,
        of the consumers that succeeded before it died or in a replay since.
        """
        is_single = self.subscription.topic.keeps_ids and not self.message.generation.replay
        return len(self.tasks) > 1 or (bool(self.tasks) and not (is_single and self.message.attempts == 1))

    def learn(self, known: Mapping[str, str]) -> list[LedgerEntry]:
        """Note which consumers have handled the event, and how often the others were called.

        Args:
            known: the ledger's entries for the event.

        Returns:
            Entries that void those of another message with the same event, which was sent twice.
        """
        void = []
        wanted_by = {task.handler.name for task in self.tasks}
        for name, text in known.items():
            consumer, entry = name.removeprefix(self.subscription.ledger_prefix), read(text)
            if consumer == name or not entry.holds_for(self.message.generation):
                continue
            if entry.is_success:
                self.done.add(consumer)
            elif consumer not in wanted_by:
                continue
            elif self.message.attempts == 1:
                void.append(self.entry(consumer, Calls()))
            elif entry.calls is not None:
                self.calls[consumer] = entry.calls
            else:
                self.gave_up[consumer] = entry.gave_up or ""
        return void

    def count_deliveries(self) -> None:
        """Count earlier deliveries as failed calls, because no ledger remembers calls."""
        before = self.message.attempts - 1
        self.calls = {task.handler.name: Calls(before, 0, before) for task in self.tasks}

    def admit(self, has_ledger: bool) -> Sequence[HandlerTask]:
        """Return the tasks that are to be done; without any, the delivery is over."""
        wanted = self.tasks
        self.tasks = [task for task in wanted if task.is_open(has_ledger)]
        self.open = len(self.tasks)
        self.is_duplicate = bool(wanted) and not (self.tasks or self.gave_up)
        return self.tasks

    # -- from its calls to its end -----------------------------------------------------------------------------------

    def begin_call(self) -> bool:
        """Note that a call begins; return whether it is the first one."""
        self.running += 1
        if self.has_begun:
            return False
        self.has_begun = True
        return True

    def end_call(self, task: HandlerTask, result: TaskResult) -> bool:
        """Note the result of a call; return whether its task stays here to be retried."""
        disposition = result.disposition
        consumer = task.handler.name
        self.running -= 1
        if disposition is Disposition.SUCCEEDED:
            self.done.add(consumer)
            self.entries.append(self.entry(consumer))
        elif disposition is Disposition.KNOWN:
            self.done.add(consumer)
            self.is_duplicate = not (self.entries or self.gave_up)
        elif disposition is Disposition.LEFT:
            self.is_left = True
        elif disposition is Disposition.DEAD:
            self.give_up(consumer, result.reason)
        elif disposition is Disposition.FAILED:
            self.note_calls(consumer, task.calls_after(failed=True), has_failed=True)
            if task.key is not None:
                return True
            self.delay = max(result.delay, self.delay or 0.0)
        elif disposition is Disposition.POSTPONED or task.key is not None:
            return task.postpone(result.error)
        else:  # it returns to the topic: the end of this delivery
            self.delay = max(result.delay, self.delay or 0.0)
            explained = task.calls._replace(explained=self.message.attempts)
            self.note_calls(consumer, explained, has_failed=result.counts)
        self.open -= 1
        return False

    def give_up(self, consumer: str, reason: str) -> None:
        """Note that a consumer will not try again."""
        self.gave_up[consumer] = reason
        self.entries.append(self.entry(consumer, gave_up=reason))

    def note_calls(self, consumer: str, calls: Calls, *, has_failed: bool = False) -> None:
        """Note a consumer's calls until now, and whether the last one failed."""
        self.has_failed = self.has_failed or has_failed
        self.calls[consumer] = calls
        self.entries.append(self.entry(consumer, calls))

    def entry(self, consumer: str, calls: Calls | None = None, *, gave_up: str | None = None) -> LedgerEntry:
        """Return the ledger's entry for a consumer that succeeded, was called without success, or gave up."""
        text = Known(self.message.generation, calls, gave_up).text
        return LedgerEntry(self.id, f"{self.subscription.ledger_prefix}{consumer}", text)

    def is_finished(self, consumer: str) -> bool:
        """Return whether a consumer succeeded or gave up."""
        return consumer in self.done or consumer in self.gave_up

    def is_held(self, group: str) -> bool:
        """Return whether the message is still this process's, as far as it knows without asking a server."""
        topic = self.subscription.topic
        return not self.is_concluded and self.leased_until > uptime() and topic.holds(group, self.message)

    def is_revivable(self, group: str) -> bool:
        """Return whether an extension revives its lease after its end, and fails if another process got the message.

        A queue may accept the receipt of an earlier delivery.
        """
        topic, has_lease = self.subscription.topic, self.leased_until > 0
        return topic.keeps_groups and not self.is_concluded and has_lease and topic.holds(group, self.message)

    def extend_lease(self, until: float) -> None:
        """Note the new end of its lease."""
        self.leased_until = until

    def conclude(self) -> bool:
        """Note that nothing more happens to it here; return False if that was so before."""
        if self.is_concluded:
            return False
        self.is_concluded = True
        return True

    def leave(self, *, despite_calls: bool = False) -> bool:
        """Leave unfinished tasks to a later delivery; return False if it is concluded, or has a running call."""
        if self.is_concluded or (self.running and not despite_calls):
            return False
        self.is_left = True
        for task in self.tasks:
            if task.is_suspect and task.postponements and not self.is_finished(task.handler.name):
                self.note_calls(task.handler.name, task.calls)  # in case the ledger missed the end of the last call
        return True

    def take_entries(self) -> list[LedgerEntry]:
        """Return the entries that the ledger does not hold yet, and forget them."""
        entries, self.entries = self.entries, []
        return entries

    def settle(self) -> MessageDelivery | None:
        """Forget its tasks, which refer back to it; return the next copy of the event, which knows what was done."""
        self.tasks = []
        copies = self.followers and [each for each in self.followers if not each.is_concluded]
        return copies[0].inherit(self, copies[1:]) if copies else None

    def inherit(self, first: MessageDelivery, others: Sequence[MessageDelivery]) -> MessageDelivery:
        """Copy what consumers did for an earlier copy of the event, and follow it with the other copies."""
        self.followers += others
        if first.message.generation.replay >= self.message.generation.replay:
            self.done |= first.done
        if first.message.generation >= self.message.generation:
            self.gave_up.update(first.gave_up)
            self.calls.update(first.calls)
        return self


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

    @property
    def calls_unended(self) -> Calls:
        """The calls with one more that never ended."""
        calls = self.calls
        return calls._replace(unended=calls.unended + 1, explained=self.delivery.message.attempts)

    def calls_after(self, failed: bool) -> Calls:
        """Return the calls after one more that failed, or that asked for a later one.

        A failed task with a key stays in flight, so nothing explains the end of its delivery yet.
        """
        calls, delivery = self.calls, self.delivery.message.attempts
        explained = delivery if failed and self.key is None else delivery - 1
        return calls._replace(failed=calls.failed + failed, explained=explained)

    def is_open(self, has_ledger: bool) -> bool:
        """Return whether the handler is to be called, and decide how; a consumer whose calls never end gives up."""
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
        # Earlier deliveries that no call explains: a process ended, or a stop released the message.
        explained = max([calls.explained for calls in delivery.calls.values()], default=0)
        unexplained = max(0, attempts - 1 - explained)
        self.is_suspect = bool(unexplained or calls.unended)
        self.runs_alone = bool(unexplained >= handler.max_attempts or calls.unended)
        return True

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

    def is_known(self, known: Mapping[str, str]) -> bool:
        """Return whether the consumer has succeeded, according to the ledger's entries for the event."""
        delivery = self.delivery
        text = known.get(f"{delivery.subscription.ledger_prefix}{self.handler.name}")
        entry = read(text) if text is not None else None
        return entry is not None and entry.is_success and entry.holds_for(delivery.message.generation)

    def postpone(self, error: BaseException | None) -> bool:
        """Count a call that asked for a later one; return True."""
        self.postponements += error is not None
        return True

    def abandon(self) -> None:
        """Note that its call did not end."""
        self.is_suspect = False
        self.delivery.note_calls(self.handler.name, self.calls_unended, has_failed=True)
