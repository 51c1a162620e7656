"""A member of a consumer group: a consumer of librdkafka, the thread that polls it, and its fetched messages.

Kafka commits offsets, not messages. The member keeps which messages are in flight, until when, and their attempts. It
commits them in the metadata of the offset before it delivers a message, so that an attempt counts even if it kills the
process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record

from balog.errors import TopicError
from balog.topics.base import Received
from balog.topics.kafka.commits import CommitQueue, FencedError
from balog.topics.kafka.delayed_retries import DelayedRetries
from balog.topics.kafka.deliveries import Deliveries
from balog.topics.kafka.errors import as_kafka_error, explain
from balog.topics.kafka.fetcher import Fetcher, resume_partition
from balog.topics.kafka.partition import AssignedPartition, FetchedMessage
from balog.topics.kafka.settings import Settings

JOIN_TIMEOUT = 10.0
"""Seconds that the first receive waits for the group to let it in."""

CATCH_UP = 5.0
"""Seconds that a receive waits longer for messages that are already in the log."""

DRAIN = 20.0
"""Seconds that a revoked partition waits for its messages in flight."""

FENCED_TIMEOUT = 30.0
"""Seconds that a commit is retried while the group rebalances."""

COMMIT_EVERY = 1.0
"""Seconds between commits that nobody waits for: of releases, and of records without a message."""

log = logging.getLogger("balog.topics.kafka")


class GroupMember:
    """One process's part in a group, on one topic and the group's own retry topic.

    Args:
        settings: the cluster's.
        topic: the topic's name.
        retry: the name of the group's retry topic, which may not exist yet.
        group: the group's name.
        where: the name of the topic in errors.
        bounds: returns the first offset of each partition of a topic, and the one after its last.
        move: writes pairs of a message and its due time (seconds since the epoch) to the retry topic, durably.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        retry: str,
        group: str,
        where: str,
        bounds: Callable[[str, Sequence[int]], Mapping[int, tuple[int, int]]],
        move: Callable[[Sequence[tuple[FetchedMessage, float]]], None],
    ) -> None:
        self._topics = [topic, retry]
        self._group = group
        self._where = where
        self._bounds = bounds
        self._changed = threading.Condition(threading.Lock())
        self._partitions: dict[tuple[str, int], AssignedPartition] = {}
        self._joined = False
        self._rejoin = False
        self._expecting = 0.0  # a receive waits until then for partitions of the retry topic
        self._stopping = False
        self._broken: TopicError | None = None
        self._denied: KafkaError | None = None
        self._away: KafkaError | None = None
        self._consumer = Consumer({**settings.member(group), "error_cb": self._on_error}, logger=_quiet)
        self._commits = CommitQueue(self._consumer, self._partitions, self._changed, where, self._explain)
        self._deliveries = Deliveries(self._partitions, where)
        self._fetcher = Fetcher(self._consumer, self._partitions, self._changed, self._hold)
        self._delayed = DelayedRetries(self._partitions, self._changed, retry, move)
        self._commit_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"balog-kafka-{topic}-{group}"[:60], daemon=True)
        self._thread.start()

    @property
    def usable(self) -> bool:
        """Whether the member can go on; if not, another one must replace it."""
        return self._broken is None and not self._stopping

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self, limit: int, wait: float, lease: float) -> list[Received]:
        """Receive messages, first those received before, then new ones.

        Raises:
            TopicError: the cluster does not answer, or denies access.
        """
        begin = time.monotonic()
        deadline = begin + wait
        looked = False
        while True:
            with self._changed:
                joined = self._joined
                taken = self._deliveries.take(limit, lease)
                if taken:
                    self._fetcher.wake()
                else:
                    self._raise_if_broken()
                    now = time.monotonic()
                    until = max(deadline, self._expecting if joined else begin + JOIN_TIMEOUT)
                    if now < until:
                        self._changed.wait(min(until - now, self._deliveries.seconds_to_next(now)))
                        continue
            if taken:
                try:
                    self._commits.commit()
                except FencedError:
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
                self._bounds(self._topics[0], [0])  # raises if the cluster does not answer
                return []
            if looked or (wait >= 0.5 and self._away is None):
                return []
            looked = True
            deadline = time.monotonic() + self._behind()

    def receipt(self, held: FetchedMessage) -> str:
        """Return the receipt of a message's current delivery."""
        return self._deliveries.receipt(held)

    def _received(self, held: FetchedMessage) -> Received:
        attempts, generation = held.before + held.attempts, held.partition.generation_of(held)
        return Received(
            held.id, held.body, self._deliveries.receipt(held), attempts, held.published, held.key, generation
        )

    def _put_back(self, taken: Sequence[FetchedMessage]) -> None:
        with self._changed:
            now = time.monotonic()
            for held in taken:
                if self._deliveries.is_held(held):
                    held.partition.take_back(held, now, attempted=False)
                    self._deliveries.push(held)

    def _behind(self) -> float:
        """Return the seconds to wait for messages that are in the log and not fetched yet; 0 at the end of the log.

        Raises:
            TopicError: the cluster does not answer.
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

    def settle(
        self, received: Sequence[Received], write: Callable[[Sequence[FetchedMessage]], None] | None = None
    ) -> int:
        """Settle messages durably, and return how many had a valid receipt.

        Args:
            write: called with the messages before a commit passes them; if it raises, they stay unsettled.
        """
        with self._changed:
            found = []
            for message in received:
                held = self._deliveries.find(message.receipt)
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
            self._commit_with_retries(found)
        except BaseException:
            with self._changed:
                for held in found:
                    held.settling = held.settled = False
                    held.partition.dirty = True
                    self._deliveries.push(held)
            raise
        with self._changed:
            owned = [held for held in found if self._deliveries.is_held(held)]
            for held in owned:
                held.partition.settle(held)
            self._fetcher.wake()
            self._changed.notify_all()
        return len(owned)

    def release(self, received: Sequence[Received], delay: float, *, attempted: bool) -> int:
        """Release messages, to be delivered again after ``delay`` seconds."""
        with self._changed:
            ready_at = time.monotonic() + delay
            found = [held for message in received if (held := self._deliveries.find(message.receipt)) is not None]
            for held in found:
                held.partition.take_back(held, ready_at, attempted=attempted)
                self._deliveries.push(held)
            self._changed.notify_all()
        return len(found)

    def extend(self, received: Sequence[Received], lease: float) -> int:
        """Extend leases to ``lease`` seconds from now."""
        with self._changed:
            until = time.monotonic() + lease
            found = [held for message in received if (held := self._deliveries.find(message.receipt)) is not None]
            for held in found:
                if until < held.ready_at:
                    self._deliveries.push(held, until)
                held.ready_at = until
        return len(found)

    # -- committing -----------------------------------------------------------------------------------------------

    def _commit_with_retries(self, held: Sequence[FetchedMessage]) -> None:
        """Commit, and retry while the group rebalances. Returns also if the partitions were lost."""
        deadline = time.monotonic() + FENCED_TIMEOUT
        while True:
            try:
                return self._commits.commit()
            except FencedError as fenced:
                with self._changed:
                    if not any(self._deliveries.is_held(one) for one in held):
                        return None
                    if time.monotonic() > deadline or not self.usable:
                        raise explain(fenced.error, self._where) from None
                    self._changed.wait(0.1)

    # -- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._subscribe()
            while not self._stopping and self._broken is None:
                if self._rejoin:
                    self._rejoin = False
                    self._subscribe()
                self._commits.serve()
                for record in self._fetcher.poll(self._is_wanted):
                    self._on_event(record)
                self._tidy()
        except Exception as error:
            self._break(error)
        try:
            if self._broken is None:
                self._commits.commit_unrequested()
            self._consumer.close()
        except Exception as error:
            log.debug("%s: %s", self._where, error)
        with self._changed:
            self._partitions.clear()
            self._stopping = True
            self._commits.close()
            self._changed.notify_all()

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _tidy(self) -> None:
        self._fetcher.steer()
        if self._delayed.move_out() or time.monotonic() >= self._commit_at:
            self._commit_at = time.monotonic() + COMMIT_EVERY
            self._commits.commit_unrequested()

    def _hold(self, held: FetchedMessage, delay: float) -> None:
        """Add a fetched message, to be delivered after ``delay`` seconds. Called with the lock."""
        if delay > 0:
            if held.partition.add(held, time.monotonic() + delay):
                self._deliveries.push(held)
        else:
            held.partition.add(held)

    def _is_wanted(self) -> bool:
        """Return whether the thread has more to do than to wait for messages."""
        return bool(self._commits) or self._stopping or self._rejoin

    def _on_event(self, record: Record) -> None:
        """Handle a record that is not a message."""
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
        owned = [resume_partition(one) for one in committed]
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
        """Wait for messages in flight, commit, and give up the partitions."""
        with self._changed:
            leaving = [found for one in partitions if (found := self._partitions.get((one.topic, one.partition)))]
            for partition in leaving:
                partition.draining = True
        deadline = time.monotonic() + DRAIN
        while not self._stopping and time.monotonic() < deadline:
            self._commits.serve()
            with self._changed:
                if not any(_is_in_flight(held) for partition in leaving for held in partition.held.values()):
                    break
                if not self._commits:
                    self._changed.wait(0.1)
        self._commits.commit_unrequested()
        self._drop(partitions)
        if partitions:
            consumer.incremental_unassign(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        log.info("%s: partitions were lost; their messages in flight are delivered again elsewhere", self._where)
        self._drop(partitions)
        if partitions:
            consumer.incremental_unassign(partitions)

    def _drop(self, partitions: Sequence[TopicPartition]) -> None:
        with self._changed:
            for one in partitions:
                self._partitions.pop((one.topic, one.partition), None)
            self._changed.notify_all()

    # -- the rest -------------------------------------------------------------------------------------------------

    def describe(self) -> dict[tuple[str, int], tuple[int | None, int, int, int, int]]:
        """Return for each partition: next offset, new messages, in flight, waiting, and the offset delivered up to."""
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
        """Subscribe to the group's retry topic, which was just created."""
        with self._changed:
            if any(topic == self._topics[1] for topic, _ in self._partitions):
                return
            self._expecting = time.monotonic() + CATCH_UP
            self._rejoin = True

    def ask_to_close(self) -> None:
        """Begin to close, without waiting for the end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def close(self) -> None:
        """Commit and leave the group; messages in flight are delivered again."""
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
            raise TopicError(str(self._broken), retryable=self._broken.retryable)
        if self._stopping:
            raise TopicError(f"{self._where}: closed during a receive; try again")

    def _explain(self, error: Exception) -> TopicError:
        found = as_kafka_error(error)
        if found is None:
            return TopicError(f"{self._where}: {type(error).__name__}: {error}")
        return explain(found, self._where, self._denied, group=self._group)


def _is_in_flight(held: FetchedMessage) -> bool:
    return bool(held.token) and (held.settling or held.ready_at > time.monotonic())


_quiet = logging.getLogger("balog.topics.kafka.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False
