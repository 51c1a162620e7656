"""Topics in memory, for tests: the same contract as other topics, without files, and with a settable clock."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from balog.counts import counted
from balog.errors import TopicError, TopicNotFoundError
from balog.topics.base import (
    DEFAULT_LEASE,
    DeadLetter,
    Generation,
    GivenUp,
    GroupState,
    Message,
    Received,
    Topic,
    Topics,
    TopicState,
    check_name,
)

_FIRST_REDRIVEN = -(2**62)


class MemoryTopics(Topics):
    """A backend in memory. It keeps all messages for its own lifetime, even handled ones.

    Args:
        clock: gives the seconds since the epoch.
        sleep: called with the seconds that a ``receive`` waits when there is nothing; a test's may move its clock.
            When omitted, it waits for real and wakes as soon as something is there.
    """

    def __init__(self, clock: Callable[[], float] = time.time, sleep: Callable[[float], object] | None = None) -> None:
        self.url = "memory:"
        self._clock = clock
        self._sleep = sleep
        self._topics: dict[str, MemoryTopic] = {}

    def topic(self, name: str) -> MemoryTopic:
        """Return the topic of that name; the same object each time."""
        check_name("topic", name)
        return self._topics.setdefault(name, MemoryTopic(name, self._clock, self._sleep))

    def names(self) -> list[str]:
        """List the topics that were published to, sorted."""
        return sorted(name for name, topic in list(self._topics.items()) if topic.exists())

    def close(self) -> None:
        """Do nothing; messages stay."""


class _Stored(NamedTuple):
    seq: int
    message: Message
    published: float


class _Lease(NamedTuple):
    """The lease of one message; ``number`` 0 means that nobody holds it. Immutable: a new lease replaces it."""

    stored: _Stored
    ready_at: float
    attempts: int
    number: int


class _Group(Struct):
    """A cursor and leases as in the local topic. The heaps may hold replaced leases."""

    cursor: int = 0
    replay: int = 0
    leases: dict[int, _Lease] = field(default_factory=dict)
    later: list[tuple[float, int, int, _Lease]] = field(default_factory=list)
    ready: list[tuple[int, int, _Lease]] = field(default_factory=list)
    dead: dict[int, tuple[DeadLetter, _Stored]] = field(default_factory=dict)


class MemoryTopic(Topic):
    """See ``MemoryTopics``. The same calls in the same order return the same results, including receipts."""

    poll_timeout: float = 0.02  # a test waits for it at its end

    def __init__(self, name: str, clock: Callable[[], float], sleep: Callable[[float], object] | None) -> None:
        self.name = name
        self._clock = clock
        self._sleep = sleep
        self._changed = threading.Condition(threading.RLock())
        self._messages: list[_Stored] = []
        self._ids: set[str] = set()
        self._groups: dict[str, _Group] = {}
        self._number = 0

    def exists(self) -> bool:
        """Return whether anything was published."""
        return bool(self._messages)

    def close(self) -> None:
        """Do nothing."""

    def publish(self, messages: Iterable[Message]) -> int:
        """Store messages and return the number of new ones."""
        return len(self.publish_new([*messages]))

    def publish_new(self, messages: Sequence[Message]) -> set[str]:
        """Store messages and return the ids of new ones."""
        wanted = [replace(message, body=bytes(message.body)) for message in messages]
        with self._changed:
            new, now = set(), self._clock()
            for message in wanted:
                if message.id not in self._ids:
                    self._ids.add(message.id)
                    new.add(message.id)
                    self._messages.append(_Stored(len(self._messages) + 1, message, now))
            self._changed.notify_all()
            return new

    # -- receiving and settling -----------------------------------------------------------------------------------

    def receive(self, group: str, limit: int = 100, wait: float = 0.0, lease: float = DEFAULT_LEASE) -> list[Received]:
        """Receive messages: redriven ones, then retries, then new ones."""
        check_name("group", group)
        deadline = time.monotonic() + wait
        with self._changed:
            received = self._deliver(group, limit, lease)
            if received or wait <= 0:
                return received
            if self._sleep is None:
                while not received and (left := deadline - time.monotonic()) > 0:
                    later = self._group(group).later
                    until_ready = max(later[0][0] - self._clock(), 0.001) if later else left
                    self._changed.wait(min(left, until_ready))
                    received = self._deliver(group, limit, lease)
                return received
        self._sleep(wait)
        with self._changed:
            return self._deliver(group, limit, lease)

    def _deliver(self, name: str, limit: int, seconds: float) -> list[Received]:
        self._check_exists()
        group, now = self._group(name), self._clock()
        while group.later and group.later[0][0] <= now:
            _, seq, number, lease = heapq.heappop(group.later)
            if group.leases.get(seq) is lease:
                heapq.heappush(group.ready, (seq, number, lease))
        received: list[Received] = []
        while group.ready and len(received) < limit:
            *_, lease = heapq.heappop(group.ready)
            if group.leases.get(lease.stored.seq) is lease:
                received.append(self._lend(group, lease.stored, now + seconds, lease.attempts + 1))
        for stored in self._messages[group.cursor : group.cursor + limit - len(received)]:
            received.append(self._lend(group, stored, now + seconds, 1))
            group.cursor = stored.seq
        return received

    def _lend(self, group: _Group, stored: _Stored, until: float, attempts: int) -> Received:
        self._number += 1
        message, receipt = stored.message, f"{stored.seq}.{self._number}"
        self._put(group, _Lease(stored, until, attempts, self._number))
        generation = Generation(group.replay, max(0, stored.seq - _FIRST_REDRIVEN) if stored.seq < 0 else 0)
        return Received(message.id, message.body, receipt, attempts, stored.published, message.key, generation)

    def _put(self, group: _Group, lease: _Lease) -> None:
        group.leases[lease.stored.seq] = lease
        self._number += 1  # no two entries of a heap are ever compared by their leases
        heapq.heappush(group.later, (lease.ready_at, lease.stored.seq, self._number, lease))
        self._changed.notify_all()

    def _held(self, group: str, received: Sequence[Received]) -> list[tuple[_Group, _Lease, Received]]:
        found = []
        for message in received:
            seq, _, number = message.receipt.partition(".")
            if not (seq.removeprefix("-").isdecimal() and number.isdecimal()):
                raise TopicError(f"message {message.id}: {message.receipt!r} is not a receipt of a topic in memory")
            lease = self._group(group).leases.get(int(seq))
            if lease is not None and lease.number == int(number):
                found.append((self._group(group), lease, message))
        return found

    def ack(self, group: str, received: Sequence[Received]) -> int:
        """Delete the leases."""
        with self._changed:
            held = self._held(group, received)
            for of, lease, _ in held:
                of.leases.pop(lease.stored.seq, None)
            return len(held)

    def release(self, group: str, received: Sequence[Received], delay: float = 0.0, *, attempted: bool = True) -> int:
        """Release messages; their receipts become stale."""
        with self._changed:
            held, ready_at = self._held(group, received), self._clock() + delay
            for of, lease, _ in held:
                self._put(of, _Lease(lease.stored, ready_at, lease.attempts - (not attempted), 0))
            return len(held)

    def extend(self, group: str, received: Sequence[Received], lease: float = DEFAULT_LEASE) -> int:
        """Extend leases from now. An expired lease is revived unless the message was delivered again."""
        with self._changed:
            held, until = self._held(group, received), self._clock() + lease
            for of, old, _ in held:
                self._put(of, old._replace(ready_at=until))
            return len(held)

    def dead_letter_each(self, group: str, given_up: Sequence[GivenUp]) -> int:
        """Move messages to the group's dead letters."""
        why = {one.received.receipt: one for one in given_up}
        with self._changed:
            held, now = self._held(group, [one.received for one in given_up]), self._clock()
            for of, lease, message in held:
                one = why[message.receipt]
                self._number += 1
                del of.leases[lease.stored.seq]
                dead_letter = DeadLetter(
                    message.id,
                    message.body,
                    group,
                    one.reason,
                    message.attempts,
                    now,
                    one.consumers,
                    one.traceback,
                    str(self._number),
                )
                of.dead[self._number] = dead_letter, lease.stored
            return len(held)

    def redrive(self, group: str, decide: Callable[[DeadLetter], bytes | None], limit: int | None = None) -> int:
        """Redrive dead letters to their group."""
        check_name("group", group)
        changed = 0
        for dead_letter in self.dead_letters(group, len(self._group(group).dead) if limit is None else limit):
            body = decide(dead_letter)
            with self._changed:
                of = self._group(group)
                if body is None or int(dead_letter.token) not in of.dead:
                    continue
                _, stored = of.dead.pop(int(dead_letter.token))
                again = _Stored(
                    _FIRST_REDRIVEN + int(dead_letter.token),
                    replace(stored.message, body=bytes(body)),
                    stored.published,
                )
                self._put(of, _Lease(again, self._clock(), 0, 0))
                changed += 1
        return changed

    def seek(self, group: str, to: float | Literal["earliest", "latest"]) -> GroupState:
        """Move a group to another message. Redriven messages stay, without attempts.

        Raises:
            TopicError: the group holds messages.
        """
        check_name("group", group)
        with self._changed:
            self._check_exists()
            if held := self.group_state(group).in_flight:
                raise TopicError(
                    f"topic {self.name}: group {group} holds {counted(held, 'message')}; stop its consumers"
                )
            of = self._group(group)
            of.replay += 1
            if to == "earliest":
                of.cursor = 0
            elif to == "latest":
                of.cursor = len(self._messages)
            else:
                of.cursor = next(
                    (stored.seq - 1 for stored in self._messages if stored.published >= to), len(self._messages)
                )
            kept = [lease for seq, lease in of.leases.items() if seq < 0]
            of.leases.clear()
            for lease in kept:
                self._put(of, _Lease(lease.stored, self._clock(), 0, 0))
            return self.group_state(group)

    # -- looking --------------------------------------------------------------------------------------------------

    def dead_letters(self, group: str, limit: int = 100) -> list[DeadLetter]:
        """Return a group's dead letters, oldest first."""
        with self._changed:
            self._check_exists()
            return [dead_letter for dead_letter, _ in self._group(group).dead.values()][: max(limit, 0)]

    def peek(self, limit: int = 10, *, newest: bool = False) -> list[Received]:
        """Return messages in the order of their publishing."""
        with self._changed:
            self._check_exists()
            chosen = self._messages[max(len(self._messages) - limit, 0) :] if newest else self._messages[:limit]
            return [
                Received(stored.message.id, stored.message.body, "", 0, stored.published, stored.message.key)
                for stored in chosen
            ]

    def group_state(self, group: str) -> GroupState:
        """Return the state of a group."""
        with self._changed:
            self._check_exists()
            of, now = self._group(group), self._clock()
            in_flight = sum(bool(lease.number) and lease.ready_at > now for lease in of.leases.values())
            lag = len(self._messages) - of.cursor
            return GroupState(group, of.cursor, lag, in_flight, len(of.leases) - in_flight, len(of.dead))

    def describe(self) -> TopicState:
        """Return the state of the topic. A group that never received does not count."""
        with self._changed:
            self._check_exists()
            groups = [
                self.group_state(name) for name, of in sorted(self._groups.items()) if of.cursor or of.leases or of.dead
            ]
            size = sum(len(stored.message.body) for stored in self._messages)
            return TopicState(self.name, len(self._messages), size, self._messages[0].published, groups)

    def _group(self, name: str) -> _Group:
        return self._groups.setdefault(name, _Group())

    def _check_exists(self) -> None:
        if not self._messages:
            raise TopicNotFoundError(f"topic {self.name}")
