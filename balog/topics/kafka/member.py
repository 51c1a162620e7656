"""A member of a consumer group: one consumer of librdkafka's, one thread that polls it, and what it holds.

Kafka knows offsets, not messages. Which messages are in hand, until when, and how often they were, is kept here, and
written beside the committed offset before anything is handed out: what a process was killed over counts as tried.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record

from balog.errors import TopicError
from balog.topics.base import Received
from balog.topics.kafka.commits import Commits, Fenced
from balog.topics.kafka.delayed_retries import Stragglers
from balog.topics.kafka.errors import as_kafka_error, explain
from balog.topics.kafka.fetcher import Intake, begin
from balog.topics.kafka.partition import Held, Partition
from balog.topics.kafka.settings import Settings

__all__ = ["Member"]

JOIN_PATIENCE = 10.0
"""Seconds that the first receive waits for the group to let it in."""

CATCH_UP = 5.0
"""Seconds that a receive waits longer for what is in the log already."""

DRAIN = 20.0
"""Seconds that partitions which move to another member wait for what is in hand of them."""

MAX_RECEIVED_BYTES = 64 * 1024 * 1024
"""A batch ends after the message whose body takes it past this size."""

FENCE_PATIENCE = 30.0
"""Seconds that a commit is tried again while the group rebalances."""

PRUNE = 1000
"""Leases that are kept without looking which of them are still of use."""

COMMIT_EVERY = 1.0
"""Seconds until what nobody waits for is committed: releases, and what was read and held no message."""

log = logging.getLogger("balog.topics.kafka")


class Member:
    """One process's part in a group, on one topic and the group's own retry topic.

    Args:
        settings: of the cluster.
        topic: the topic's name.
        retry: the name of the group's retry topic, which may not exist yet.
        group: the group's name.
        where: what errors call it.
        bounds: asks where partitions of a topic begin and end.
        move: writes messages to the retry topic, durably; ``(held, due)``, seconds since the epoch.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        retry: str,
        group: str,
        where: str,
        bounds: Callable[[str, Sequence[int]], Mapping[int, tuple[int, int]]],
        move: Callable[[Sequence[tuple[Held, float]]], None],
    ) -> None:
        self._topics = [topic, retry]
        self._group = group
        self._where = where
        self._bounds = bounds
        self._changed = threading.Condition(threading.Lock())
        self._tickets: list[_Ticket] = []
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._name = secrets.token_hex(6)
        self._deliveries = 0
        self._pushes = 0
        self._later: list[tuple[float, int, Held]] = []
        self._prune_at = PRUNE
        self._ready: list[tuple[int, int, Held]] = []
        self._joined = False
        self._rejoin = False
        self._expecting = 0.0  # until then, or until partitions come, a receive waits for those of the retry topic
        self._stopping = False
        self._over = False
        self._broken: TopicError | None = None
        self._denied: KafkaError | None = None
        self._away: KafkaError | None = None
        self._consumer = Consumer({**settings.member(group), "error_cb": self._on_error}, logger=_quiet)
        self._commits = Commits(self._consumer, self._partitions, self._changed, self._explain)
        self._intake = Intake(self._consumer, self._partitions, self._changed, self._hold)
        self._stragglers = Stragglers(self._partitions, self._changed, retry, move)
        self._commit_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"balog-kafka-{topic}-{group}"[:60], daemon=True)
        self._thread.start()

    @property
    def usable(self) -> bool:
        """False when another member has to be made in its place."""
        return self._broken is None and not self._stopping

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self, limit: int, wait: float, lease: float) -> list[Received]:
        """Take messages: first those that come again, then new ones.

        Raises:
            TopicError: the cluster is out of reach, or refuses us.
        """
        begin = time.monotonic()
        deadline = begin + wait
        looked = False
        while True:
            with self._changed:
                joined = self._joined
                taken = self._take(limit, lease)
                if not taken:
                    self._raise_if_broken()
                    now = time.monotonic()
                    until = max(deadline, self._expecting if joined else begin + JOIN_PATIENCE)
                    if now < until:
                        self._changed.wait(min(until - now, self._next_due(now)))
                        continue
            if taken:
                try:
                    self._commit()
                except Fenced:
                    self._put_back(taken)
                    time.sleep(0.05)
                    if time.monotonic() > deadline:
                        return []
                    continue
                except TopicError:
                    self._put_back(taken)
                    raise
                return [self._received(held) for held in taken]
            if not joined:
                self._bounds(self._topics[0], [0])  # raises when that is since the cluster is out of reach
                return []
            if looked or (wait >= 0.5 and self._away is None):
                return []
            looked = True
            deadline = time.monotonic() + self._behind()

    def _take(self, limit: int, lease: float) -> list[Held]:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            _, _, held = heappop(self._later)
            if held.ready_at > now:  # its lease was extended
                self._push(held)
            elif self._is_held(held) and not held.settling:
                self._pushes += 1
                heappush(self._ready, (held.offset, self._pushes, held))
        taken: list[Held] = []
        size = 0
        postponed: list[tuple[int, int, Held]] = []
        self._deliveries += 1
        while self._ready and len(taken) < limit and size < MAX_RECEIVED_BYTES:
            entry = heappop(self._ready)
            held = entry[2]
            if not self._is_held(held) or held.settling or held.ready_at > now or held.token == self._deliveries:
                continue
            if held.partition.draining:
                postponed.append(entry)
                continue
            size += self._hand_out(held, now + lease)
            taken.append(held)
        for entry in postponed:
            heappush(self._ready, entry)
        for partition in self._partitions.values():
            if partition.draining or not partition.roomy:
                continue
            while partition.fresh and len(taken) < limit and size < MAX_RECEIVED_BYTES:
                held = partition.pop_fresh()
                size += self._hand_out(held, now + lease)
                taken.append(held)
        if taken:
            self._intake.made_room()
        return taken

    def _hand_out(self, held: Held, until: float) -> int:
        held.partition.hand_out(held, self._deliveries, until)
        self._push(held)
        return len(held.body)

    def receipt(self, held: Held) -> str:
        """Give what stands for the delivery that a message is in."""
        partition = held.partition
        return f"{self._name}.{held.token}.{partition.number}.{held.offset}.{partition.topic}"

    def _received(self, held: Held) -> Received:
        attempts, generation = held.before + held.attempts, held.partition.generation_of(held)
        return Received(held.id, held.body, self.receipt(held), attempts, held.published, held.key, generation)

    def _put_back(self, taken: Sequence[Held]) -> None:
        with self._changed:
            now = time.monotonic()
            for held in taken:
                if self._is_held(held):
                    held.partition.take_back(held, now, attempted=False)
                    self._push(held)

    def _behind(self) -> float:
        """Give the seconds to wait for what is there and was not fetched yet: none when we are at the end.

        Raises:
            TopicError: the cluster is out of reach.
        """
        with self._changed:
            owned = {key: partition.next_offset for key, partition in self._partitions.items()}
        for topic in {topic for topic, _ in owned}:
            numbers = [number for name, number in owned if name == topic]
            for number, (start, end) in self._bounds(topic, numbers).items():
                if end > max(start, owned[topic, number] or 0):
                    return CATCH_UP
        self._away = None
        return 0.0

    # -- settling -------------------------------------------------------------------------------------------------

    def settle(self, received: Sequence[Received], write: Callable[[Sequence[Held]], None] | None = None) -> int:
        """Settle messages durably and give the number that this changed.

        Args:
            write: called with the messages before any commit passes them; what it raises leaves them as they were.
        """
        with self._changed:
            found = []
            for message in received:
                held = self._find(message.receipt)
                if held is not None:
                    held.settling = True
                    found.append(held)
        if not found:
            return 0
        try:
            if write is not None:
                write(found)
            with self._changed:
                for held in found:
                    held.settled = True
                    held.partition.dirty = True
            self._commit_patiently(found)
        except BaseException:
            with self._changed:
                for held in found:
                    held.settling = held.settled = False
                    held.partition.dirty = True
                    self._push(held)
            raise
        with self._changed:
            owned = [held for held in found if self._is_held(held)]
            for held in owned:
                held.partition.settle(held)
            self._intake.made_room()
            self._changed.notify_all()
        return len(owned)

    def release(self, received: Sequence[Received], delay: float, *, attempted: bool) -> int:
        """Take messages back from their deliveries."""
        with self._changed:
            ready_at = time.monotonic() + delay
            found = [held for message in received if (held := self._find(message.receipt)) is not None]
            for held in found:
                held.partition.take_back(held, ready_at, attempted=attempted)
                self._push(held)
            self._changed.notify_all()
        return len(found)

    def extend(self, received: Sequence[Received], lease: float) -> int:
        """Let leases run from now."""
        with self._changed:
            until = time.monotonic() + lease
            found = [held for message in received if (held := self._find(message.receipt)) is not None]
            for held in found:
                if until < held.ready_at:
                    self._push(held, until)
                held.ready_at = until
        return len(found)

    def _find(self, receipt: str) -> Held | None:
        try:
            name, token, number, offset, topic = receipt.split(".", 4)
            if name != self._name:
                return None
            partition = self._partitions.get((topic, int(number)))
            held = partition.held.get(int(offset)) if partition else None
        except ValueError:
            raise TopicError(f"{self._where}: {receipt!r:.80} is not a receipt of a Kafka topic") from None
        return held if held is not None and str(held.token) == token and not held.settling else None

    def _is_held(self, held: Held) -> bool:
        partition = held.partition
        owned = self._partitions.get((partition.topic, partition.number))
        return owned is partition and partition.held.get(held.offset) is held

    def _push(self, held: Held, at: float | None = None) -> None:
        self._pushes += 1
        heappush(self._later, (held.ready_at if at is None else at, self._pushes, held))
        if len(self._later) > self._prune_at:  # most are settled by now, and not to stay until their leases are over
            self._later = [entry for entry in self._later if self._is_held(entry[2])]
            heapify(self._later)
            self._prune_at = max(PRUNE, 2 * len(self._later))

    def _next_due(self, now: float) -> float:
        return max(0.001, self._later[0][0] - now) if self._later else 3600.0

    # -- committing -----------------------------------------------------------------------------------------------

    def _commit_patiently(self, held: Sequence[Held]) -> None:
        """Commit, waiting out a rebalance; returns also when the partitions were lost to somebody else."""
        deadline = time.monotonic() + FENCE_PATIENCE
        while True:
            try:
                return self._commit()
            except Fenced as fenced:
                with self._changed:
                    if not any(self._is_held(one) for one in held):
                        return None
                    if time.monotonic() > deadline or not self.usable:
                        raise explain(fenced.error, self._where) from None
                    self._changed.wait(0.1)

    def _commit(self) -> None:
        """Have the thread commit whatever changed, for all that wait for it at once.

        Raises:
            TopicError: not done.
            Fenced: not done, since partitions are being moved.
        """
        ticket = _Ticket()
        with self._changed:
            self._tickets.append(ticket)
            self._changed.notify_all()
            while not ticket.done:
                if self._over:
                    raise TopicError(f"{self._where}: closed before it was committed; what was in hand comes again")
                self._changed.wait(1.0)
        if ticket.error is not None:
            raise ticket.error

    def _serve(self) -> None:
        """Commit for those who wait for it. Only the thread does: a client's calls wait for each other."""
        with self._changed:
            tickets, self._tickets = self._tickets, []
        if not tickets:
            return
        error: TopicError | Fenced | None = None
        try:
            self._commits.write()
        except (TopicError, Fenced) as caught:
            error = caught
        with self._changed:
            for ticket in tickets:
                ticket.error, ticket.done = error, True
            self._changed.notify_all()

    def _commit_quietly(self) -> None:
        try:
            self._commits.write()
        except (TopicError, Fenced) as error:
            log.debug("%s: %s", self._where, error)

    # -- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._subscribe()
            while not self._stopping and self._broken is None:
                if self._rejoin:
                    self._rejoin = False
                    self._subscribe()
                self._serve()
                for record in self._intake.poll(self._is_wanted):
                    self._on_event(record)
                self._tidy()
        except Exception as error:
            self._break(error)
        try:
            if self._broken is None:
                self._commit_quietly()
            self._consumer.close()
        except Exception as error:
            log.debug("%s: %s", self._where, error)
        with self._changed:
            self._partitions.clear()
            self._stopping = self._over = True
            self._changed.notify_all()

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _tidy(self) -> None:
        self._intake.steer()
        if self._stragglers.leave() or time.monotonic() >= self._commit_at:
            self._commit_at = time.monotonic() + COMMIT_EVERY
            self._commit_quietly()

    def _hold(self, held: Held, delay: float) -> None:
        """Take a fetched message in, to be delivered after ``delay`` seconds; called with the lock."""
        if delay > 0:
            if held.partition.add(held, time.monotonic() + delay):
                self._push(held)
        else:
            held.partition.add(held)

    def _is_wanted(self) -> bool:
        """Tell whether the thread has something to do but to wait for messages."""
        return bool(self._tickets) or self._stopping or self._rejoin

    def _on_event(self, record: Record) -> None:
        """Look at what came instead of a message."""
        error = record.error()
        if error is None:
            return
        if error.fatal() or error.code() == KafkaError._MAX_POLL_EXCEEDED:
            raise KafkaException(error)
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return
        self._on_error(error)

    def _on_error(self, error: KafkaError) -> None:
        found = explain(error, self._where)
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._away = error
        elif not found.retryable:
            self._denied = error
            self._break(found)
        log.debug("%s", found)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._changed:
            missing = [one for one in partitions if (one.topic, one.partition) not in self._partitions]
        committed = self._committed(consumer, missing)
        owned = [begin(one) for one in committed]
        starts = [TopicPartition(one.topic, one.partition, one.offset) for one in committed]
        if starts:
            consumer.incremental_assign(starts)
        with self._changed:
            for partition in owned:
                self._partitions[partition.topic, partition.number] = partition
            self._joined = True
            self._expecting = 0.0
            self._away = None
            self._changed.notify_all()

    def _committed(self, consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
        deadline = time.monotonic() + 60
        while partitions:
            try:
                return consumer.committed(partitions, timeout=10)
            except KafkaException as error:
                if self._stopping or time.monotonic() > deadline or not self._explain(error).retryable:
                    raise
                time.sleep(0.2)
        return []

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Let what is in hand be settled, write how far we are, and let go."""
        with self._changed:
            leaving = [found for one in partitions if (found := self._partitions.get((one.topic, one.partition)))]
            for partition in leaving:
                partition.draining = True
        deadline = time.monotonic() + DRAIN
        while not self._stopping and time.monotonic() < deadline:
            self._serve()
            with self._changed:
                if not any(_is_in_hand(held) for partition in leaving for held in partition.held.values()):
                    break
                if not self._tickets:
                    self._changed.wait(0.1)
        self._commit_quietly()
        self._drop(partitions)
        if partitions:
            consumer.incremental_unassign(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        log.info("%s: partitions were taken away; what is in hand of them comes again elsewhere", self._where)
        self._drop(partitions)
        if partitions:
            consumer.incremental_unassign(partitions)

    def _drop(self, partitions: Sequence[TopicPartition]) -> None:
        with self._changed:
            for one in partitions:
                self._partitions.pop((one.topic, one.partition), None)
            self._changed.notify_all()

    # -- the rest -------------------------------------------------------------------------------------------------

    def look(self) -> dict[tuple[str, int], tuple[int | None, int, int, int, int]]:
        """Tell of each partition of ours: next offset, never handed out, in flight, waiting, handed out up to."""
        with self._changed:
            now = time.monotonic()
            seen = {}
            for key, partition in self._partitions.items():
                untouched = in_flight = waiting = 0
                for held in partition.held.values():
                    if held.settling:
                        in_flight += 1
                    elif not held.touched:
                        untouched += 1
                    elif held.token and held.ready_at > now:
                        in_flight += 1
                    else:
                        waiting += 1
                seen[key] = (partition.next_offset, untouched, in_flight, waiting, partition.handed)
            return seen

    def find_retries(self) -> None:
        """Look for the group's retry topic, which was just made."""
        with self._changed:
            if any(topic == self._topics[1] for topic, _ in self._partitions):
                return
            self._expecting = time.monotonic() + CATCH_UP
            self._rejoin = True

    def ask_to_close(self) -> None:
        """Begin to close, without waiting for it."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def close(self) -> None:
        """Write how far we are and leave the group; what is in hand comes again."""
        self.ask_to_close()
        if threading.current_thread() is not self._thread:
            self._thread.join(30)

    def _break(self, error: Exception) -> None:
        with self._changed:
            if self._broken is None:
                self._broken = error if isinstance(error, TopicError) else self._explain(error)
            self._changed.notify_all()

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            again = TopicError(str(self._broken))
            again.retryable = self._broken.retryable
            raise again
        if self._stopping:
            raise TopicError(f"{self._where}: closed while it was received from; try again")

    def _explain(self, error: Exception) -> TopicError:
        found = as_kafka_error(error)
        if found is None:
            return TopicError(f"{self._where}: {type(error).__name__}: {error}")
        return explain(found, self._where, self._denied, group=self._group)


class _Ticket:
    """Somebody waits for a commit."""

    def __init__(self) -> None:
        self.done = False
        self.error: TopicError | Fenced | None = None


def _is_in_hand(held: Held) -> bool:
    return bool(held.token) and (held.settling or held.ready_at > time.monotonic())


_quiet = logging.getLogger("balog.topics.kafka.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False
