"""A consumer of librdkafka, the thread that polls it, and the partitions that its group assigns to it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record

from balog.common.errors import TopicError
from balog.topics.kafka.commits import CommitQueue
from balog.topics.kafka.deliveries import DelayedRetries, Deliveries
from balog.topics.kafka.errors import as_kafka_error, explain
from balog.topics.kafka.fetcher import Fetcher, resume_partition
from balog.topics.kafka.partition import AssignedPartition, FetchedMessage
from balog.topics.kafka.settings import Settings

CATCH_UP = 5.0
"""Seconds that a receive waits longer for messages that are already in the log."""

DRAIN = 20.0
"""Seconds that a revoked partition waits for its messages in flight."""

COMMIT_EVERY = 1.0
"""Seconds between commits that nobody waits for: of releases, and of records without a message."""

log = logging.getLogger("balog.topics.kafka")


class Membership:
    """A process's place in a group, on one topic and the group's own retry topic. It ends with its thread.

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

    def close(self, timeout: float = 30.0) -> None:
        """Commit and leave the group, within ``timeout`` seconds; messages in flight are delivered again."""
        self.ask_to_close()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

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
        kafka_error = as_kafka_error(error)
        if kafka_error is None:
            return TopicError(f"{self._where}: {type(error).__name__}: {error}")
        return explain(kafka_error, self._where, self._denied, group=self._group)

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
        ready_at = time.monotonic() + delay if delay > 0 else None
        if held.partition.add(held, ready_at) and ready_at is not None:
            self._deliveries.push(held)

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
        topic_error = explain(error, self._where)
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._away = error
        elif not topic_error.retryable:
            self._denied = error
            self._break(topic_error)
        log.debug("%s", topic_error)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._changed:
            missing = [added for added in partitions if (added.topic, added.partition) not in self._partitions]
        committed = self._committed(consumer, missing)
        owned = [resume_partition(commit) for commit in committed]
        starts = [TopicPartition(commit.topic, commit.partition, commit.offset) for commit in committed]
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
            leaving = [owned for lost in partitions if (owned := self._partitions.get((lost.topic, lost.partition)))]
            for partition in leaving:
                partition.drain()
        deadline = time.monotonic() + DRAIN
        while not self._stopping and time.monotonic() < deadline:
            self._commits.serve()
            with self._changed:
                if not any(_is_in_flight(held) for partition in leaving for held in partition.held.values()):
                    break
                if not self._commits:
                    self._changed.wait(0.1)
        self._commits.commit_unrequested()
        self._give_up(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        log.info("%s: partitions were lost; their messages in flight are delivered again elsewhere", self._where)
        self._give_up(consumer, partitions)

    def _give_up(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._changed:
            for partition in partitions:
                self._partitions.pop((partition.topic, partition.partition), None)
            self._changed.notify_all()
        if partitions:
            consumer.incremental_unassign(partitions)


def _is_in_flight(held: FetchedMessage) -> bool:
    return bool(held.token) and (held.settling or held.ready_at > time.monotonic())


_quiet = logging.getLogger("balog.topics.kafka.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False
