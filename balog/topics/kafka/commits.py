"""Committing: an offset for each partition of which something changed, and the text beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from balog.errors import TopicError
from balog.topics.kafka.errors import as_kafka_error, is_fenced
from balog.topics.kafka.partition import Partition
from balog.topics.kafka.progress import ROOMY, encode

__all__ = ["Commits", "FencedError"]


class FencedError(Exception):
    """Partitions are being moved, or are somebody else's by now: nothing was committed."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error


class Commits:
    """Writes what changed.

    Args:
        partitions: those that are the member's, as they are now.
        changed: guards them.
        explain: gives the error to raise.
    """

    def __init__(
        self,
        consumer: Consumer,
        partitions: Mapping[tuple[str, int], Partition],
        changed: threading.Condition,
        explain: Callable[[Exception], TopicError],
    ) -> None:
        self._consumer = consumer
        self._partitions = partitions
        self._changed = changed
        self._explain = explain

    def write(self) -> None:
        """Commit, and wait until it is done.

        Raises:
            TopicError: it is not.
            FencedError: it is not, since partitions are being moved.
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
            text, told = encode(progress)
            partition.roomy = len(text) <= ROOMY and told == progress.handed
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
