"""What a member reads: records become messages that it holds, as many as there is room for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka import Message as Record

from balog.topics.base import Generation
from balog.topics.kafka.partition import FetchedMessage, Partition
from balog.topics.kafka.progress import Progress, decode
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

__all__ = ["MAX_TRAIL", "Fetcher", "resume_partition"]

FRESH_MESSAGES = 5000
FRESH_BYTES = 32 * 1024 * 1024
HELD_BYTES = 256 * 1024 * 1024
"""No more is read while so much is held: messages and bytes that were never handed out, bytes of all."""

MAX_TRAIL = 10_000
"""A partition is not read on while its commit is so many offsets behind what was handed out of it."""

FULL_FOR = 5.0
"""Seconds of having no room after which the partitions are paused."""

_BATCH = 500
_POLL = 0.1
_NAPS = (0.001, 0.02)  # a client's calls wait for each other, so nothing may wait inside of one

log = logging.getLogger("balog.topics.kafka")


class Fetcher:
    """Polls the consumer, which keeps the member in its group however long a handler takes.

    Args:
        partitions: those that are the member's, as they are now.
        changed: guards them; notified when messages came.
        hold: takes a message in, with the seconds until it may be delivered.
    """

    def __init__(
        self,
        consumer: Consumer,
        partitions: Mapping[tuple[str, int], Partition],
        changed: threading.Condition,
        hold: Callable[[FetchedMessage, float], None],
    ) -> None:
        self._consumer = consumer
        self._partitions = partitions
        self._changed = changed
        self._hold = hold
        self._full_since = 0.0
        self._nap = _NAPS[0]

    def poll(self, is_wanted: Callable[[], bool]) -> list[Record]:
        """Read what there is room for; return what came and was no message.

        Args:
            is_wanted: tells whether the thread has something else to do than to wait.
        """
        with self._changed:
            full = self._is_full()
        self._full_since = (self._full_since or time.monotonic()) if full else 0.0
        record = self._consumer.poll(0)
        if record is None:
            with self._changed:
                if not is_wanted():
                    self._changed.wait(_POLL if full else self._nap)
                self._nap = min(self._nap * 2, _NAPS[1])
            return []
        self._nap = _NAPS[0]
        records = [record] if full else [record, *self._consumer.consume(_BATCH - 1, 0)]
        read = [(one, _read(one)) for one in records]
        others: list[Record] = []
        with self._changed:
            for one, message in read:
                self._take(one, message, others)
            self._changed.notify_all()
            if full and not is_wanted():
                self._changed.wait(_POLL)
        return others

    def _take(
        self,
        record: Record,
        message: tuple[str, bytes, str | None, float, int, float, Generation] | None,
        others: list[Record],
    ) -> None:
        partition = self._partitions.get((record.topic() or "", record.partition() or 0))
        if message is not None:
            if partition is not None:
                id, body, key, published, attempts, delay, generation = message
                held = FetchedMessage(partition, record.offset() or 0, id, body, key, published)
                held.before = attempts
                held.generation = generation
                held.touched = attempts > 0
                self._hold(held, delay)
            return
        error = record.error()
        if error is None or error.code() != KafkaError._PARTITION_EOF:
            others.append(record)
        elif partition is not None:
            partition.reach(record.offset() or 0)

    def steer(self) -> None:
        """Pause the partitions that must not be read on, and those again that may."""
        with self._changed:
            stuck = bool(self._full_since) and time.monotonic() - self._full_since > FULL_FOR
            pause: list[TopicPartition] = []
            resume: list[TopicPartition] = []
            for partition in self._partitions.values():
                wanted = stuck or partition.trail > (MAX_TRAIL // 2 if partition.paused else MAX_TRAIL)
                if wanted != partition.paused:
                    (pause if wanted else resume).append(TopicPartition(partition.topic, partition.number))
                    partition.paused = wanted
        if pause:
            self._consumer.pause(pause)
        if resume:
            self._consumer.resume(resume)

    def wake(self) -> None:
        """Wake the poll if it waits for room; called with the lock."""
        if self._full_since and not self._is_full():
            self._changed.notify_all()

    def _is_full(self) -> bool:
        count = fresh = held = 0
        for partition in self._partitions.values():
            count += len(partition.fresh)
            fresh += partition.fresh_bytes
            held += partition.bytes
        return count >= FRESH_MESSAGES or fresh >= FRESH_BYTES or held >= HELD_BYTES


def resume_partition(committed: TopicPartition) -> Partition:
    """Return a partition as the group left it."""
    known = committed.offset >= 0
    progress = decode(committed.offset, committed.metadata) if known else None
    if known and progress is None:
        # Somebody else moved the group, with kafka-consumer-groups say: a replay, as `balog topics offsets` begins one.
        log.info("%s/%d: the commit is not balog's: going on at its offset", committed.topic, committed.partition)
        progress = Progress(committed.offset, committed.offset, {}, new_number())
    return Partition(committed.topic, committed.partition, committed.offset if known else None, progress)


def _read(record: Record) -> tuple[str, bytes, str | None, float, int, float, Generation] | None:
    """Return id, body, key, time, attempts, delay in seconds, generation; None where the record is no message."""
    if record.error() is not None:
        return None
    headers = read_headers(record)
    return (
        read_id(record, headers),
        body_of(record),
        read_key(record, headers),
        read_published(record, headers),
        attempts_of(headers),
        delay_of(record, headers, time.time()),
        generation_of(headers),
    )
