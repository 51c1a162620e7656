"""Commit the offset of each changed partition, with the group's progress in its metadata."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from balog.errors import TopicError
from balog.topics.kafka.errors import as_kafka_error, is_fenced
from balog.topics.kafka.partition import AssignedPartition
from balog.topics.kafka.progress import ROOMY, encode

__all__ = ["Commits", "FencedError"]


class FencedError(Exception):
    """The group rebalances, or has moved partitions: nothing was committed."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error


class Commits:
    """Commits the progress of changed partitions.

    Args:
        partitions: the partitions assigned to the member; the member changes them.
        changed: the lock of the partitions.
        explain: returns the error to raise.
    """

    def __init__(
        self,
        consumer: Consumer,
        partitions: Mapping[tuple[str, int], AssignedPartition],
        changed: threading.Condition,
        explain: Callable[[Exception], TopicError],
    ) -> None:
        self._consumer = consumer
        self._partitions = partitions
        self._changed = changed
        self._explain = explain

    def write(self) -> None:
        """Commit, and wait for the result.

        Raises:
            TopicError: the commit failed.
            FencedError: the commit failed because the group rebalances.
        """
        with self._changed:
            changed = []
            for partition in self._partitions.values():
                if partition.dirty and (progress := partition.progress()) is not None:
                    partition.dirty = False
                    changed.append((partition, progress))
        if not changed:
            return
        offsets = []
        for partition, progress in changed:
            text, encoded_to = encode(progress)
            partition.roomy = len(text) <= ROOMY and encoded_to == progress.handed
            offsets.append(TopicPartition(partition.topic, partition.number, progress.commit, metadata=text))
        try:
            for written in self._consumer.commit(offsets=offsets, asynchronous=False):
                if written.error is not None:
                    raise KafkaException(written.error)
        except (KafkaException, RuntimeError) as error:
            with self._changed:
                for partition, _ in changed:
                    partition.dirty = True
            found = as_kafka_error(error)
            if found is not None and is_fenced(found):
                raise FencedError(found) from None
            raise self._explain(error) from None
