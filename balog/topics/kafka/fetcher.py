"""Fetch records as messages, up to the limits of what a member may hold."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka import Message as Record

from balog.topics.kafka.partition import AssignedPartition, FetchedMessage
from balog.topics.kafka.progress import CommittedProgress, decode
from balog.topics.kafka.records import (
    attempts_of,
    body_of,
    delay_of,
    generation_of,
    new_number,
    read_headers,
    read_id,
    read_key,
    read_published,
)

FRESH_MESSAGES = 5000
FRESH_BYTES = 32 * 1024 * 1024
HELD_BYTES = 256 * 1024 * 1024
"""Limits above which nothing is fetched: new messages, their bytes, and the bytes of all messages."""

MAX_TRAIL = 10_000
"""Number of offsets between commit and deliveries above which a partition is paused."""

FULL_FOR = 5.0
"""Seconds at the limits after which the partitions are paused."""

_BATCH = 500
_POLL = 0.1
_NAPS = (0.001, 0.02)  # a client's calls wait for each other, so nothing may wait inside of one

log = logging.getLogger("balog.topics.kafka")


@dataclass(eq=False)
class Fetcher:
    """Polls the consumer, which keeps the member in its group during long handler calls.

    Args:
        partitions: the partitions assigned to the member; the member changes them.
        changed: the lock of the partitions; notified when messages come.
        hold: adds a message, with the seconds until its delivery.
    """

    consumer: Consumer
    partitions: Mapping[tuple[str, int], AssignedPartition]
    changed: threading.Condition
    hold: Callable[[FetchedMessage, float], None]
    _full_since: float = field(default=0.0, init=False)
    _nap: float = field(default=_NAPS[0], init=False)

    def poll(self, is_wanted: Callable[[], bool]) -> list[Record]:
        """Fetch records within the limits; return those that are not messages.

        Args:
            is_wanted: returns whether the thread has more to do than to wait.
        """
        with self.changed:
            full = self._is_full()
        self._full_since = (self._full_since or time.monotonic()) if full else 0.0
        record = self.consumer.poll(0)
        if record is None:
            with self.changed:
                if not is_wanted():
                    self.changed.wait(_POLL if full else self._nap)
                self._nap = min(self._nap * 2, _NAPS[1])
            return []
        self._nap = _NAPS[0]
        records = [record] if full else [record, *self.consumer.consume(_BATCH - 1, 0)]
        read = [(fetched, self._read(fetched)) for fetched in records]
        others: list[Record] = []
        with self.changed:
            for fetched, message in read:
                if message is not None:
                    self.hold(*message)
                else:
                    self._note(fetched, others)
            self.changed.notify_all()
            if full and not is_wanted():
                self.changed.wait(_POLL)
        return others

    def _read(self, record: Record) -> tuple[FetchedMessage, float] | None:
        """Return a message and the seconds until its delivery; None for other records, and for other partitions.

        Called without the lock: only the thread that polls assigns partitions.
        """
        partition = self._partition_of(record)
        if record.error() is not None or partition is None:
            return None
        headers = read_headers(record)
        id, key, published = read_id(record, headers), read_key(record, headers), read_published(record, headers)
        before = attempts_of(headers)
        held = FetchedMessage(
            *(partition, record.offset() or 0, id, body_of(record), key, published),
            before=before,
            touched=before > 0,
            generation=generation_of(headers),
            is_tombstone=record.value() is None,
        )
        return held, delay_of(record, headers, time.time())

    def _note(self, record: Record, others: list[Record]) -> None:
        error, partition = record.error(), self._partition_of(record)
        if error is None:
            return  # of a partition that was given up
        if error.code() != KafkaError._PARTITION_EOF:
            others.append(record)
        elif partition is not None:
            partition.reach(record.offset() or 0)

    def _partition_of(self, record: Record) -> AssignedPartition | None:
        return self.partitions.get((record.topic() or "", record.partition() or 0))

    def steer(self) -> None:
        """Pause partitions at their limits, and resume the others."""
        with self.changed:
            stuck = bool(self._full_since) and time.monotonic() - self._full_since > FULL_FOR
            pause: list[TopicPartition] = []
            resume: list[TopicPartition] = []
            for partition in self.partitions.values():
                if (is_paused := partition.steer(MAX_TRAIL, is_stuck=stuck)) is not None:
                    (pause if is_paused else resume).append(TopicPartition(partition.topic, partition.number))
        if pause:
            self.consumer.pause(pause)
        if resume:
            self.consumer.resume(resume)

    def wake(self) -> None:
        """Wake the poll if it waits for room; called with the lock."""
        if self._full_since and not self._is_full():
            self.changed.notify_all()

    def _is_full(self) -> bool:
        count = fresh = held = 0
        for partition in self.partitions.values():
            count += len(partition.fresh)
            fresh += partition.fresh_bytes
            held += partition.bytes
        return count >= FRESH_MESSAGES or fresh >= FRESH_BYTES or held >= HELD_BYTES


def resume_partition(committed: TopicPartition) -> AssignedPartition:
    """Return a partition at the group's committed position."""
    known = committed.offset >= 0
    progress = decode(committed.offset, committed.metadata) if known else None
    if known and progress is None:
        # Another program moved the group, such as kafka-consumer-groups: a replay, as with `balog topics offsets`.
        log.info("%s/%d: the commit is not balog's: going on at its offset", committed.topic, committed.partition)
        progress = CommittedProgress(committed.offset, committed.offset, {}, new_number())
    return AssignedPartition(committed.topic, committed.partition, committed.offset if known else None, progress)
